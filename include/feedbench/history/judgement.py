"""Tonight against the nights before: which variants changed, since when, and what changed with them.

A night belongs to a series of its variant. Where the machine allows other cores or memory than the night before, a new
series begins: nothing of it is ever mixed with the old one. But its first night is held against the old one's, so that
a change which comes with half of the cores is told, with that as its cause, on the night it comes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from feedbench.analysis import changes as maths
from feedbench.history import causes
from feedbench.records import Accepted, Change, Changes, Interval, Night
from feedbench.units import share

MEMORY = 200
"""Nights of a series that are looked at. A slower level that nobody accepted is forgotten after as many."""
_COMPARED = 5
"""Recent good nights whose stages and ceilings are compared with tonight's."""


@dataclass(frozen=True)
class Judgement:
    changes: Changes
    suspicions: tuple[str, ...]
    """Variants that are off tonight, and whether that lasts is not known yet."""


@dataclass(frozen=True)
class _Held:
    """One variant held against the nights of its series, or of the series before it."""

    variant: str
    past: list[Night]
    night: maths.Night
    new_machine: bool

    @property
    def reference(self) -> list[Night]:
        return [self.past[number] for number in self.night.reference]

    @property
    def changed(self) -> bool:
        return self.night.state == "changed" or (self.new_machine and self.night.state == "suspect")


def judge(tonight: Night, earlier: Sequence[Night], accepted: Accepted, min_effect: float) -> Judgement:
    """What changed on `tonight` against `earlier`, all nights before it, oldest first."""
    held = [_hold(variant, tonight, earlier, accepted, min_effect) for variant in tonight.results]
    last_good = [it.reference[-1] for it in held if it.reference]
    compared = max(last_good, key=lambda night: night.created_at, default=None)
    changes = Changes(
        compared_with=compared.run_id if compared else None,
        nights=max((len(it.night.reference) for it in held), default=0),
        changes=tuple(_change(it, tonight, accepted) for it in held if it.changed),
        environment=_surroundings(tonight, compared, earlier, held),
    )
    suspects = [it for it in held if it.night.state == "suspect" and not it.changed]
    return Judgement(changes, tuple(_suspicion(it) for it in suspects))


def _hold(variant: str, tonight: Night, earlier: Sequence[Night], accepted: Accepted, min_effect: float) -> _Held:
    mine = tonight.results[variant]
    past = [n for n in earlier if variant in n.results and n.results[variant].series == mine.series][-MEMORY:]
    kin = [] if past else [n for n in earlier if variant in n.results and n.results[variant].kin == mine.kin]
    if kin:
        last = kin[-1].results[variant].series
        past = [n for n in kin if n.results[variant].series == last][-MEMORY:]
    results = [night.results[variant] for night in (*past, tonight)]
    taken = {n for n, night in enumerate(past) if variant in accepted.reasons.get(night.run_id, {})}
    *_, night = maths.judge(
        [math.log(result.step_time_ms) for result in results], [result.error for result in results], taken, min_effect
    )
    return _Held(variant, past, night, bool(kin))


def _change(held: _Held, tonight: Night, accepted: Accepted) -> Change:
    shift = held.night.shift
    first = tonight if shift.first == len(held.past) else held.past[shift.first]
    value, low, high = (math.expm1(size) for size in (shift.size, shift.low, shift.high))
    return Change(
        variant=held.variant,
        size=Interval(value=value, ci_low=low, ci_high=high),
        direction="slower" if value > 0 else "faster",
        since_run=first.run_id,
        since=first.created_at[:10],
        confidence=shift.confidence,
        lasting=held.night.lasting,
        causes=_causes(held, tonight, value),
        accepted=accepted.reasons.get(tonight.run_id, {}).get(held.variant),
    )


def _causes(held: _Held, tonight: Night, size: float) -> tuple[str, ...]:
    reference, mine = held.reference[-_COMPARED:], tonight.results[held.variant]
    change_ms = mine.step_time_ms * size / (1 + size)
    return (
        *causes.stages([night.results[held.variant].stages for night in reference], mine.stages, change_ms),
        *causes.model(reference, tonight, size),
        *causes.environment(reference[-1], tonight),
    )


def _surroundings(
    tonight: Night, compared: Night | None, earlier: Sequence[Night], held: Sequence[_Held]
) -> tuple[str, ...]:
    """What differs from the last good night; for a new series, from the last night of all, and that it is new."""
    before = compared or next((night for night in reversed(earlier) if night.results), None)
    if before is None:
        return ()
    differences = causes.environment(before, tonight)
    new = [it.variant for it in held if it.new_machine or not it.past]
    if not new:
        return differences
    which = "" if len(new) == len(held) else f" for {', '.join(new)}"
    kept = "no later night is compared with those before"
    return (f"a new series begins tonight{which}: {kept}", *differences)


def _suspicion(held: _Held) -> str:
    size = math.expm1(held.night.shift.size)
    direction = "slower" if size > 0 else "faster"
    return (
        f"{held.variant} is {share(abs(size))} {direction} tonight than in its recent nights. "
        "One night alone is no change yet; the next one will tell."
    )
