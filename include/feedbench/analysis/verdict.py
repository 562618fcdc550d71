"""The one sentence of a run: what to ship, how much faster, what limits it now, what to try next."""

import math
from collections.abc import Sequence

from feedbench.analysis.diagnose import GOOD_UTILISATION
from feedbench.config import A_A_TWIN
from feedbench.records import Comparison, VariantResult
from feedbench.units import share, times

_TELLING_LEAD = 0.05
_NAMED = 3
"""More names than that make no sentence; the table marks them all."""
_MOST = 0.5
_UNSTEADY = 1.1
"""Nothing is faster than the model alone, but in a minute in which the machine was."""


def verdict_sentence(comparison: Comparison) -> str:
    results = {result.name: result for result in comparison.variants}
    baseline = results[comparison.baseline]
    if not comparison.fastest:
        reason = baseline.reason or next((r.reason for r in results.values() if r.reason), "no trial gave a result")
        return f"No answer: no variant gave a valid result ({reason})."
    ship = results[comparison.fastest[0]]
    parts = [_what_to_ship(ship, baseline, comparison), _limit(ship), _next(comparison, ship)]
    bad = [r.name for r in results.values() if r.status != "ok"]
    if bad:
        parts.append(f"{', '.join(bad)} gave no valid result")
    return "; ".join(part for part in parts if part) + "."


def _what_to_ship(ship: VariantResult, baseline: VariantResult, comparison: Comparison) -> str:
    if baseline.name in comparison.fastest:
        others = [name for name in comparison.fastest if name != baseline.name]
        if not others:
            has_rivals = any(r.status == "ok" and r.name not in (baseline.name, A_A_TWIN) for r in comparison.variants)
            why = "no other variant is as fast" if has_rivals else "it is the only variant with a valid result"
            return f"Keep {baseline.name}: {why}"
        return f"No clear winner: {_not_told_apart(baseline, comparison)}"
    if ship.speedup is None:
        return f"Ship {ship.name}; how much faster it is than {baseline.name} was not measured"
    s = ship.speedup
    return (
        f"Ship {ship.name}: {times(s.value)} as fast as {baseline.name} (95 % CI {s.ci_low:.2f}–{s.ci_high:.2f})"
        + _equals(ship, comparison)
    )


def _not_told_apart(baseline: VariantResult, comparison: Comparison) -> str:
    others = [name for name in comparison.fastest if name not in (baseline.name, A_A_TWIN)]
    best = lowest(comparison)
    if best.name == baseline.name:
        return f"{baseline.name} had the lowest mean, but {_listed(others)} cannot be told apart from it"
    ahead = _ahead(comparison, baseline)
    maybe = f", {_lead(ahead, baseline)}" if ahead else ""
    return f"{baseline.name} is not distinguishable from the best ({best.name}{maybe})"


def _equals(ship: VariantResult, comparison: Comparison) -> str:
    others = [name for name in comparison.fastest if name not in (ship.name, A_A_TWIN)]
    if not others:
        return ""
    ahead = _ahead(comparison, ship)
    maybe = f"; {ahead.name} was {_lead(ahead, ship)}" if ahead else ""
    return f", and nothing tried is certainly faster ({_listed(others)} not distinguishable{maybe})"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= _NAMED else f"{len(names)} others"


def lowest(comparison: Comparison) -> VariantResult:
    """Of the variants that cannot be told apart from the fastest, the one of the lowest mean."""
    starred = [r for r in comparison.variants if r.name in comparison.fastest and r.name != A_A_TWIN]
    return min(starred, key=lambda r: r.step_time_ms.mean)


def _ahead(comparison: Comparison, ship: VariantResult) -> VariantResult | None:
    """The variant of the lowest mean, if that lies so far below that of the one to ship that a reader will ask."""
    best = lowest(comparison)
    return best if best.step_time_ms.mean < (1 - _TELLING_LEAD) * ship.step_time_ms.mean else None


def _lead(ahead: VariantResult, ship: VariantResult) -> str:
    lead = ship.step_time_ms.mean / ahead.step_time_ms.mean
    return f"{times(lead)} as fast as {ship.name}, which only more rounds can confirm"


def _limit(ship: VariantResult) -> str:
    au = ship.accelerator_utilisation
    if ship.verdict == "compute-bound" or (au is not None and au >= GOOD_UTILISATION):
        used = "" if au is None else f" (utilisation {share(au)})"
        if au is not None and au > _UNSTEADY:
            used = f" (utilisation {share(au)}: the machine was faster then than when the model ran alone)"
        return f"the accelerator is the limit now{used}"
    if ship.verdict == "not measured":
        return f"what limits it was not measured ({ship.verdict_reason})"
    waits = (
        f"{ship.name} still waits {share(ship.input_wait_share)} of a step for input{_where(ship)}"
        if ship.input_wait_share is not None
        else ""
    )
    if ship.verdict == "input-bound":
        return waits or f"input is the limit (utilisation {share(au)})"
    return f"input and accelerator are about balanced{' (utilisation ' + share(au) + ')' if au is not None else ''}"


def _where(ship: VariantResult) -> str:
    """The stage that the wait is for; `most` only of what is at least half of it."""
    if not ship.slowest_stage:
        return ""
    profile = ship.summary
    stages = profile.stages if profile else ()
    blocking = [s.blocking_ms.mean for s in stages if s.operator == ship.slowest_stage and s.blocking_ms]
    wait = profile.input_wait_ms.mean if profile and profile.input_wait_ms else 0.0
    is_most = bool(blocking) and max(blocking) >= _MOST * wait > 0
    return f", {'most' if is_most else 'the largest part'} of it in {ship.slowest_stage}"


def _next(comparison: Comparison, ship: VariantResult) -> str:
    best, ahead = next(iter(comparison.next_steps), None), _ahead(comparison, ship)
    if no_clear_winner(comparison) and (comparison.smallest_detectable_effect or math.inf) > _TELLING_LEAD:
        then = f", then {best.change} (predicted gain {share(best.gain)})" if best and best.gain > 0 else ""
        return f"next to try: more rounds{then}"
    if best is None:
        return ""
    if best.gain <= 0:
        return f"beyond {ahead.name} there is {best.change}" if ahead else best.change
    return f"next to try: {best.change} (predicted gain {share(best.gain)})"


def no_clear_winner(comparison: Comparison) -> bool:
    """Whether the baseline is among those that cannot be told apart from the fastest, and not alone."""
    return comparison.baseline in comparison.fastest and len(comparison.fastest) > 1
