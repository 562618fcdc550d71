"""A variant's series as a whole: its nights, what each was judged to be, and the levels seen from the end."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from feedbench.analysis import changes as maths
from feedbench.history.causes import environment
from feedbench.records import Accepted, Night


@dataclass(frozen=True)
class Point:
    """One night of a series; times in ms."""

    run_id: str
    date: str
    step_time_ms: float
    low_ms: float
    high_ms: float
    """The 95 % interval from within the run."""
    state: str
    """As in analysis/changes.py: first, steady, suspect, changed."""
    size: float | None
    """Relative change against the recent good nights, where there was one."""
    around: tuple[str, ...]
    """What differs from the night before in machine, software and code."""


@dataclass(frozen=True)
class Trend:
    variant: str
    series: str
    machine: str
    points: tuple[Point, ...]
    levels: tuple[int, ...]
    """Numbers of the points at which a new level begins."""


def trends(nights: Sequence[Night], accepted: Accepted, variant: str | None = None) -> Iterator[Trend]:
    """Every series of every variant (or of one), the one with the latest night first. `nights`: oldest first."""
    series: dict[tuple[str, str], list[Night]] = {}
    for night in nights:
        for name, result in night.results.items():
            if variant in (None, name):
                series.setdefault((name, result.series), []).append(night)
    for (name, key), mine in sorted(series.items(), key=lambda it: it[1][-1].created_at, reverse=True):
        yield _trend(name, key, mine, accepted)


def _trend(variant: str, series: str, nights: Sequence[Night], accepted: Accepted) -> Trend:
    results = [night.results[variant] for night in nights]
    values = [math.log(result.step_time_ms) for result in results]
    taken = {n for n, night in enumerate(nights) if variant in accepted.reasons.get(night.run_id, {})}
    judged = maths.judge(values, [result.error for result in results], taken)
    before = (nights[0], *nights)
    points = [_point(variant, *it) for it in zip(before, nights, judged, strict=False)]
    machine = nights[-1].machine
    return Trend(variant, series, f"{machine.cpu_model}, {machine.cores} cores", tuple(points), maths.levels(values))


def _point(variant: str, before: Night, night: Night, judged: maths.Night) -> Point:
    result = night.results[variant]
    half = 1.96 * result.error * result.step_time_ms
    return Point(
        night.run_id,
        night.created_at[:10],
        result.step_time_ms,
        result.step_time_ms - half,
        result.step_time_ms + half,
        judged.state,
        math.expm1(judged.shift.size) if judged.shift else None,
        environment(before, night),
    )
