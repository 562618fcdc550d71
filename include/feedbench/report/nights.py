"""A variant's step time over many nights as a picture: numbers to draw, and the same in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from feedbench.units import count, ms, signed_share


@dataclass(frozen=True)
class Level:
    """Nights `first` to `last`, by their places, that are alike."""

    first: int
    last: int
    median_ms: float
    label: str


@dataclass(frozen=True)
class NightByNight:
    dates: tuple[str, ...]
    step_ms: tuple[float, ...]
    low_ms: tuple[float, ...]
    high_ms: tuple[float, ...]
    levels: tuple[Level, ...]
    marks: tuple[int, ...]
    """Places of nights around which something else changed."""

    def in_words(self) -> str:
        steps = "; ".join(f"from {self.dates[level.first]} {level.label}" for level in self.levels[1:])
        return f"{count(len(self.dates), 'night')}, at first {self.levels[0].label}; {steps or 'one level throughout'}."


def night_by_night(
    dates: Sequence[str],
    step_ms: Sequence[float],
    low_ms: Sequence[float],
    high_ms: Sequence[float],
    starts: Sequence[int],
    marks: Sequence[int],
) -> NightByNight:
    """`starts`: places at which a new level begins, without the first; `marks`: see `NightByNight.marks`."""
    firsts, ends = (0, *starts), (*starts, len(dates))
    medians = [median(step_ms[first:end]) for first, end in zip(firsts, ends, strict=True)]
    labels = [f"{ms(medians[0])} ms", *map(_step, medians, medians[1:])]
    levels = [Level(*it) for it in zip(firsts, (end - 1 for end in ends), medians, labels, strict=True)]
    return NightByNight(tuple(dates), tuple(step_ms), tuple(low_ms), tuple(high_ms), tuple(levels), tuple(marks))


def _step(before_ms: float, after_ms: float) -> str:
    return f"{signed_share(after_ms / before_ms - 1)}: {ms(after_ms)} ms"
