"""Seconds of a piece of work, and how several of them are told."""

import statistics
import time
from collections.abc import Callable, Sequence


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Median and extremes: `0.66 (0.56 to 0.70)`."""
    median, low, high = statistics.median(values), min(values), max(values)
    return f"{median:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"
