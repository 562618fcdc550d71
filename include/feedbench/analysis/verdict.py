"""The one sentence of a run: what to ship, how much faster, what limits it now, what to try next."""

from feedbench.analysis.diagnose import GOOD_UTILISATION
from feedbench.config import A_A_TWIN
from feedbench.records import Comparison, VariantResult
from feedbench.units import share, times

_TELLING_LEAD = 0.05
_NAMED = 3
"""More names than that make no sentence; the table marks them all."""
_UNSTEADY = 1.1
"""Nothing is faster than the model alone, but in a minute in which the machine was."""


def verdict_sentence(comparison: Comparison) -> str:
    results = {result.name: result for result in comparison.variants}
    baseline = results[comparison.baseline]
    if not comparison.fastest:
        reason = baseline.reason or next((r.reason for r in results.values() if r.reason), "no trial gave a result")
        return f"No answer: no variant gave a valid result ({reason})."
    ship = results[comparison.fastest[0]]
    parts = [_what_to_ship(ship, baseline, comparison), _limit(ship), _next(comparison)]
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
        return f"No clear winner: {baseline.name} is not distinguishable from the best ({others[0]})"
    if ship.speedup is None:
        return f"Ship {ship.name}; how much faster it is than {baseline.name} was not measured"
    s = ship.speedup
    return (
        f"Ship {ship.name}: {times(s.value)} as fast as {baseline.name} (95 % CI {s.ci_low:.2f}–{s.ci_high:.2f})"
        + _equals(ship, comparison)
    )


def _equals(ship: VariantResult, comparison: Comparison) -> str:
    others = [name for name in comparison.fastest if name not in (ship.name, A_A_TWIN)]
    if not others:
        return ""
    ahead = _ahead(comparison)
    maybe = ""
    if ahead:
        lead = ship.step_time_ms.mean / ahead.step_time_ms.mean
        maybe = f"; {ahead.name} was {times(lead)} as fast as it, which only more rounds can confirm"
    which = ", ".join(others) if len(others) <= _NAMED else f"{len(others)} others"
    return f", and nothing tried is certainly faster ({which} not distinguishable{maybe})"


def _ahead(comparison: Comparison) -> VariantResult | None:
    """The variant of the lowest mean, if that lies so far below that of the one to ship that a reader will ask."""
    results = [r for r in comparison.variants if r.name in comparison.fastest and r.name != A_A_TWIN]
    ship = next(r for r in results if r.name == comparison.fastest[0])
    best = min(results, key=lambda r: r.step_time_ms.mean)
    return best if best.step_time_ms.mean < (1 - _TELLING_LEAD) * ship.step_time_ms.mean else None


def _limit(ship: VariantResult) -> str:
    au = ship.accelerator_utilisation
    if ship.verdict == "compute-bound" or (au is not None and au >= GOOD_UTILISATION):
        used = "" if au is None else f" (utilisation {share(au)})"
        if au is not None and au > _UNSTEADY:
            used = f" (utilisation {share(au)}: the machine was faster then than when the model ran alone)"
        return f"the accelerator is the limit now{used}"
    if ship.verdict == "not measured":
        return f"what limits it was not measured ({ship.verdict_reason})"
    stage = f", most of it in {ship.slowest_stage}" if ship.slowest_stage else ""
    waits = (
        f"it still waits {share(ship.input_wait_share)} of a step for input{stage}"
        if ship.input_wait_share is not None
        else ""
    )
    if ship.verdict == "input-bound":
        return waits or f"input is the limit (utilisation {share(au)})"
    return f"input and accelerator are about balanced{' (utilisation ' + share(au) + ')' if au is not None else ''}"


def _next(comparison: Comparison) -> str:
    if not comparison.next_steps:
        return ""
    best, ahead = comparison.next_steps[0], _ahead(comparison)
    if best.gain <= 0:
        return f"beyond {ahead.name} there is {best.change}" if ahead else best.change
    return f"next to try: {best.change} (predicted gain {share(best.gain)})"
