"""A variant's series as a whole: its nights, what was told on each, and the levels seen from the end."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from feedbench.history.causes import environment, in_words
from feedbench.records import Machine, Night
from feedbench.units import count, mb


@dataclass(frozen=True)
class Point:
    """One night of a series; times in ms."""

    run_id: str
    date: str
    step_time_ms: float
    low_ms: float
    high_ms: float
    """The 95 % interval from within the run."""
    change: float | None
    """Relative change that was told on this night, against the good nights before it."""
    around: tuple[str, ...]
    """What differs from the night before in machine, software and code."""


@dataclass(frozen=True)
class Trend:
    variant: str
    series: str
    machine: str
    conditions: dict[str, str]
    points: tuple[Point, ...]

    @property
    def title(self) -> str:
        return f"{self.machine}; {self.conditions.get('accelerator', 'accelerator not known')}"

    @property
    def in_common(self) -> str:
        """What all nights of a series have in common, by name."""
        known = {name: in_words(value) for name, value in sorted(self.conditions.items()) if name != "accelerator"}
        return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in known.items())

    def levels(self) -> tuple[int, ...]:
        """Numbers of the points at which a new level begins, as seen from the last one."""
        from feedbench.analysis.changes import levels  # scipy and ruptures: an overview can do without

        return levels([math.log(point.step_time_ms) for point in self.points])


class Trends:
    """The series of some nights, given oldest first. A trend is made when it is asked for."""

    def __init__(self, nights: Sequence[Night]) -> None:
        self._series: dict[tuple[str, str], list[Night]] = {}
        for night in nights:
            for variant, result in night.results.items():
                self._series.setdefault((variant, result.series), []).append(night)
        self._around: dict[tuple[str, str], tuple[str, ...]] = {}

    def all(self, variant: str | None = None) -> Iterator[Trend]:
        """Of every variant or of one, the one with the latest night first."""
        for (name, series), nights in sorted(self._series.items(), key=lambda it: it[1][-1].created_at, reverse=True):
            if variant in (None, name):
                yield self._trend(name, series, nights)

    def _trend(self, variant: str, series: str, nights: Sequence[Night]) -> Trend:
        last = nights[-1]
        pairs = zip((nights[0], *nights), nights, strict=False)
        return Trend(
            variant=variant,
            series=series,
            machine=_words(last.machine),
            conditions=last.conditions,
            points=tuple(self._point(variant, before, night) for before, night in pairs),
        )

    def _point(self, variant: str, before: Night, night: Night) -> Point:
        result = night.results[variant]
        return Point(
            run_id=night.run_id,
            date=night.created_at[:10],
            step_time_ms=result.step_time_ms,
            low_ms=result.step_time_ms - result.half_width_ms,
            high_ms=result.step_time_ms + result.half_width_ms,
            change=result.change,
            around=self._differences(before, night),
        )

    def _differences(self, before: Night, night: Night) -> tuple[str, ...]:
        """Most variants have the same two nights beside each other: said once for all of them."""
        pair = before.run_id, night.run_id
        if pair not in self._around:
            self._around[pair] = environment(before, night)
        return self._around[pair]


def _words(machine: Machine) -> str:
    """All that tells one machine class from another."""
    return ", ".join((machine.cpu_model, count(machine.cores, "core"), mb(machine.memory_mb), *machine.gpus))
