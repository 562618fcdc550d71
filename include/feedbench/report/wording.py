"""How values of the records are written where `units` alone does not say it, and how hostile text is made harmless."""

import math
from collections.abc import Iterable
from typing import Any, TypeVar

from feedbench import units
from feedbench.records import Interval, Record, VariantResult, dump

IN_PICTURES = 26
"""Characters of a name where a picture has room for no more."""
_R = TypeVar("_R", bound=Record)


def visible(record: _R) -> _R:
    """The same record with every invisible character in every string written out as `\\u202e`."""
    return type(record).model_validate(_visible(dump(record)))


def _visible(value: Any) -> Any:
    if isinstance(value, str):
        return units.printable(value)
    if isinstance(value, dict):
        return {_visible(key): _visible(item) for key, item in value.items()}
    return [_visible(item) for item in value] if isinstance(value, list) else value


def shortened(text: str, length: int) -> str:
    """On one line and at most `length` characters, for places that cannot grow."""
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def picture_name(variant: VariantResult) -> str:
    return shortened(variant.name, IN_PICTURES)


def round_shown(variant: VariantResult) -> str:
    """Which round the steps, the profile and the details are of: `round 2 of 3`; nothing where it cannot be told."""
    times, means = variant.step_times_ms, variant.round_means_ms
    mean = sum(times) / len(times) if times else 0.0
    place = next((place for place, of in enumerate(means, start=1) if math.isclose(of, mean, rel_tol=1e-6)), None)
    return f"round {place} of {len(means)}" if place else ""


def interval_ms(low: float, high: float) -> str:
    return f"[{units.ms(low)} – {units.ms(high)}]"


def interval_times(interval: Interval) -> str:
    return f"[{interval.ci_low:.2f} – {interval.ci_high:.2f}]"


def interval_share(interval: Interval) -> str:
    return f"[{units.signed_share(interval.ci_low)} – {units.signed_share(interval.ci_high)}]"


def duration(seconds: float | None) -> str:
    """Seconds of a phase: `0.42 s`, `9.3 s`, then as `units.seconds` has it."""
    return units.seconds(seconds) if seconds is None or seconds >= 9.95 else f"{units.ms(seconds)} s"


def size(number_of_bytes: int | None) -> str:
    """`8 B`, `60 KB`, then as `units.mb` has it."""
    if number_of_bytes is None or number_of_bytes >= units.BYTES_PER_MB:
        return units.mb(None if number_of_bytes is None else number_of_bytes / units.BYTES_PER_MB)
    return f"{number_of_bytes} B" if number_of_bytes < 1000 else f"{number_of_bytes / 1000:.0f} KB"


def unknown(value: int | None) -> str:
    """A number the trace may not know: never 0 for unknown."""
    return units.DASH if value is None else f"{value:,}"


def sentences(parts: Iterable[str | None]) -> str:
    return " · ".join(part for part in parts if part)
