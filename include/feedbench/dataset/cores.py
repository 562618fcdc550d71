"""The cores that this process may use, and work spread over them by threads.

JPEG decoding and hashing let go of Python's lock. Processes are no faster here (1,820 against 1,770 photos a second on
two cores), and Airflow's workers may not start any with multiprocessing.
"""

import math
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from itertools import islice
from pathlib import Path
from typing import TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")
_AT_ONCE = 4096
_CPU_MAX = Path("/sys/fs/cgroup/cpu.max")


def allowed_cores() -> int:
    """Cores this process may use: its affinity, cut by a cgroup v2 quota (rounded up)."""
    affinity = len(os.sched_getaffinity(0))
    quota = _quota()
    return affinity if quota is None else max(1, min(affinity, math.ceil(quota)))


def in_order(pool: Executor, work: Callable[[_T], _R], items: Iterable[_T]) -> Iterator[_R]:
    """`pool.map` with bounded memory: it would make a future for each of ten million files before the first result."""
    items = iter(items)
    while portion := list(islice(items, _AT_ONCE)):
        yield from pool.map(work, portion)


def _quota() -> float | None:
    """Cores' worth of time that the cgroup allows; None without a limit."""
    try:
        quota, _, period = _CPU_MAX.read_text().strip().partition(" ")
    except OSError:
        return None
    return None if quota == "max" else int(quota) / int(period)
