"""Whether a nightly series changed. Plain maths on plain sequences; imports nothing of ours.

A series is the log of a variant's mean step time, night by night. Nights differ for no reason: machines drift, and on
a shared one some nights are simply bad. So

* a night is held against the median of the last RECENT good nights;
* the unit of difference is what a night is usually off from its neighbours before it (the median of the last such
  deviations), so drift, night-to-night and within-run noise are all in it. While nights are few, PRIOR_DEVIATION
  stands in for it, and limits come from Student's t;
* one night is no change: it is a suspicion, and no reference for later nights. A change lasts: tonight and last night
  both lie beyond a limit, or the median of the last three nights does. Only a night that is off by more than ENORMOUS
  is told at once, for nobody would want to wait;
* a slower level is never taken for good by itself: it is told every night until it is gone, or until a person accepts
  it. A faster one is told once and is the reference from then on;
* a level that was not reached at a step is drift and no change, once STEP nights on both sides show it.

Sizes are logarithms of ratios here. How often this is wrong and how soon it is right is counted by `make history-test`.
"""

import functools
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

import numpy as np
import ruptures
from scipy import special

RECENT = 8
"""Good nights that make the reference: enough for a steady median, few enough to follow a drift."""
NEAR = 5
FEW = 2
"""With fewer deviations learned, those across a change are left out, for they would pass for the usual; later on, the
median does without, and a series taken for changed all the time still shows how wild it is."""
LEARNED = 60
"""The usual deviation is learned from so many nights, each against the NEAR ones before it, good or bad: a series that
is wild all over is then known to be wild, whatever was thought of its first nights."""
PRIOR_DEVIATION = 0.012
PRIOR_NIGHTS = 4
LEAST = 0.03
"""A share: what is smaller is left to drift, which moves a machine by two per cent within months."""
STEP = 5
"""Nights before and after a step that tell it from drift."""
ENORMOUS = math.log(1.3)
CONFIDENCE = 0.95

# One-sided tail probabilities of the limits of one, two and three nights, and of a single enormous one.
_OUTLYING, _PAIR, _TRIPLE, _CERTAIN = 2e-3, 6e-3, 1.2e-2, 1e-4
_PER_MAD = 1 / float(special.ndtri(0.75))
_SHORTEST = 3
_PENALTY = 1.5
_OF_MEDIAN = math.sqrt(math.pi / 2)
"""Standard error of a median over that of a mean."""


@dataclass(frozen=True)
class Shift:
    """A change of level; `size`, `low` and `high` are log ratios, positive for slower."""

    size: float
    low: float
    high: float
    first: int
    """Number of the first night of the new level."""
    nights: int
    confidence: float


@dataclass(frozen=True)
class Night:
    """One night, judged by those before it."""

    state: Literal["first", "steady", "crept", "suspect", "changed"]
    """crept: away from the nights before, but by drift; from now on held against the last ones."""
    shift: Shift | None = None
    """Of a changed night; of a suspect one what it would be if it lasted."""
    reference: tuple[int, ...] = ()
    """Numbers of the good nights it was held against, the last good one last."""
    lasting: bool = False
    """False for a change told after one night, because it is enormous."""


def judge(
    values: Sequence[float], errors: Sequence[float] = (), accepted: Collection[int] = (), min_effect: float = 0.02
) -> Iterator[Night]:
    """Each night of a series in turn, judged by the nights up to it; costs the same for each night.

    `values`: log step times, oldest first; `errors`: their standard errors within the run, if known; `accepted`:
    numbers of nights whose level a person took for good; `min_effect`: a smaller change (a share) is none, nor is one
    smaller than LEAST.
    """
    walk = _Walk(values, errors, min_effect)
    for number in range(len(values)):
        yield walk.step(number, number in accepted)


def levels(values: Sequence[float], min_effect: float = 0.02) -> tuple[int, ...]:
    """Numbers of the nights at which a whole series, seen from its end, changed level for three nights or more.

    PELT with a Gaussian kernel (Arlot, Celisse and Harchaoui, JMLR 20, 2019; by ruptures), three noise deviations wide:
    a bad night counts as different, however bad it is. Chosen over the L1 step fit that airspeed velocity uses, on one
    seed of history_simulation.py (120 series, 60 for L1): 0.01 to 0.03 false steps in 100 nights at neighbouring
    penalties against 0.04 to 0.32, 98 % of 5 % changes placed to within two nights against 97 to 100 %, in 1.3 ms
    against 311 to 375. `make history-test` counts the first two again, with the penalty in use.
    """
    if len(values) < 2 * _SHORTEST:
        return ()
    series = np.asarray(values, float)
    spread = max(_PER_MAD * float(np.median(np.abs(np.diff(series)))) / math.sqrt(2), 0.002)
    search = ruptures.KernelCPD("rbf", min_size=_SHORTEST, params={"gamma": 1 / (2 * (3 * spread) ** 2)})
    ends = search.fit(series.reshape(-1, 1)).predict(pen=_PENALTY * math.log(len(series)))
    starts, kept = [0, *ends[:-1]], [0]
    for start, end in zip(starts[1:], ends[1:], strict=True):
        before, after = np.median(series[kept[-1] : start]), np.median(series[start:end])
        if abs(after - before) > math.log1p(min_effect):
            kept.append(int(start))
    return tuple(kept[1:])


class _Walk:
    """What has been learned of a series so far."""

    def __init__(self, values: Sequence[float], errors: Sequence[float], min_effect: float) -> None:
        self.values, self.errors, self.least = values, errors, math.log1p(max(min_effect, LEAST))
        self.good: list[int] = []
        self.deviations: list[float] = []

    def step(self, number: int, accepted: bool) -> Night:
        night = self._judged(number)
        if night.state in ("first", "steady"):
            self.good.append(number)
        elif night.state == "changed" and (accepted or (night.lasting and night.shift.size < 0)):
            self.good = [n for n in range(night.shift.first, number + 1) if self._beyond(n, night)]
        elif night.state == "crept":
            self.good = list(range(number - STEP, number + 1))
        elif night.lasting:
            self.good = [n for n in self.good if n < night.shift.first]
        elif accepted:
            self.good = [number]
        told = night.state == "changed" and len(self.deviations) < FEW
        began = night.shift.first if told else 0
        if neighbours := range(max(began, number - NEAR), number):  # a change is no noise
            self.deviations.append(abs(self.values[number] - self._level(neighbours)))
        return night

    def _judged(self, number: int) -> Night:
        for nights, limit in ((2, _PAIR), (3, _TRIPLE)):
            if night := self._lasting(number, nights, limit):
                return Night("crept", None, night.reference) if self._crept(night.shift) else night
        reference = self._reference(number)
        if not reference:
            return Night("first")
        off = self.values[number] - self._level(reference)
        if abs(off) > max(ENORMOUS, self._limit(_CERTAIN, number)):
            return Night("changed", self._shift(off, number, reference), reference)
        if abs(off) > max(self.least, self._limit(_OUTLYING, number)):
            return Night("suspect", self._shift(off, number, reference), reference)
        return Night("steady", None, reference)

    def _lasting(self, number: int, nights: int, tail: float) -> Night | None:
        """Changed, if what the last two or three nights agree on is beyond the limit."""
        first = number - nights + 1
        reference = self._reference(first)
        if first < 1 or not reference:
            return None
        level = self._level(reference)
        offs = [self.values[n] - level for n in range(first, number + 1)]
        together = _agreed(offs)
        if together * offs[-1] <= 0 or abs(offs[-1]) < abs(together) / 2:  # tonight is back
            return None
        if abs(together) <= max(self.least, self._limit(tail, number)):
            return None
        return Night("changed", self._shift(together, number, reference), reference, lasting=True)

    def _crept(self, shift: Shift) -> bool:
        """Whether a level that has stood for a while was not reached at a step: then it is drift, and no change."""
        if shift.nights <= STEP:
            return False
        before, after = range(max(shift.first - STEP, 0), shift.first), range(shift.first, shift.first + STEP)
        return (self._level(after) - self._level(before)) / shift.size < 0.5

    def _shift(self, off: float, number: int, reference: tuple[int, ...]) -> Shift:
        """The change that tonight belongs to: from the first of the nights that lie past half of it."""
        level, first = self._level(reference), number
        earliest = reference[-1] + 1
        for n in range(number, earliest - 1, -1):
            if (self.values[n] - level) / off > 0.5:
                first = n
        offs = [self.values[n] - level for n in range(first, number + 1)]
        size = median(offs)
        scale = self._deviation(number)
        error = _OF_MEDIAN * scale * math.sqrt(1 / len(offs) + 1 / len(reference))
        half = _quantile((1 - CONFIDENCE) / 2, round(self._degrees())) * error
        confidence = float(1 - 2 * special.stdtr(self._degrees(), -abs(size) / error))
        return Shift(size, size - half, size + half, first, number - first + 1, confidence)

    def _beyond(self, number: int, night: Night) -> bool:
        return (self.values[number] - self._level(night.reference)) / night.shift.size > 0.5

    def _reference(self, before: int) -> tuple[int, ...]:
        recent = [n for n in self.good[-RECENT - 3 :] if n < before]
        return tuple(recent[-RECENT:])

    def _level(self, nights: Collection[int]) -> float:
        return median(self.values[n] for n in nights)

    def _degrees(self) -> float:
        """Of the learned deviation: a median knows as much as 0.37 times as many squares would."""
        return PRIOR_NIGHTS + 0.37 * len(self.deviations[-LEARNED:])

    def _deviation(self, number: int) -> float:
        learned = self.deviations[-LEARNED:]
        own = self._degrees() - PRIOR_NIGHTS
        squares = PRIOR_NIGHTS * PRIOR_DEVIATION**2 + (own * (_PER_MAD * median(learned)) ** 2 if learned else 0.0)
        within = self.errors[number] if self.errors else 0.0
        return max(math.sqrt(squares / self._degrees()), within)

    def _limit(self, tail: float, number: int) -> float:
        return _quantile(tail, round(self._degrees())) * self._deviation(number)


def _agreed(offs: Sequence[float]) -> float:
    """Of two nights the lesser, if both lie to one side; of three the median."""
    if len(offs) > 2:
        return median(offs)
    return min(offs, key=abs) if offs[0] * offs[1] > 0 else 0.0


@functools.lru_cache(maxsize=1024)
def _quantile(tail: float, degrees: int) -> float:
    return float(special.stdtrit(degrees, 1 - tail))
