"""Trials and their profiles in, one comparison out."""

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import median

import numpy as np

from feedbench.analysis import stats
from feedbench.analysis.advise import next_steps
from feedbench.analysis.evidence import Evidence, check, digest_of, home_class, typical, usable
from feedbench.analysis.forecast import Costs, costs, forecast_ms, rewritten
from feedbench.analysis.result import result
from feedbench.analysis.verdict import verdict_sentence
from feedbench.config import A_A_TWIN, BASELINE, CEILING
from feedbench.records import (
    Accelerator,
    Comparison,
    NextStep,
    OperatorRates,
    Run,
    VariantResult,
    VariantSpec,
    XprofStatement,
)
from feedbench.units import BYTES_PER_MB, share


def compare(run: Run, evidence: Sequence[Evidence], xprof: Callable[[Evidence], XprofStatement]) -> Comparison:
    """The comparison of a run. `xprof` is asked once a variant, for the representative trial."""
    planned = {spec.name: [e for e in evidence if e.planned.variant == spec.name] for spec in run.variants}
    home = home_class(evidence)
    good = {name: [e for e in trials if usable(e, home)] for name, trials in planned.items()}
    ceiling_ms = _step_ms([e for e in evidence if e.planned.variant == CEILING and usable(e, home)])
    family = stats.family(_samples(good), block=_steps_per_pass(evidence) or 1)
    digest = digest_of(planned[BASELINE])
    results = [
        result(
            spec,
            good[spec.name],
            check(spec, planned[spec.name], home, digest),
            family,
            ceiling_ms,
            run.settings,
            xprof,
        )
        for spec in run.variants
    ]
    baseline = _costs(good[BASELINE], ceiling_ms, run)
    noise_floor, smallest = _resolution(family, run)
    comparison = Comparison(
        run_id=run.run_id,
        verdict="",
        baseline=BASELINE,
        fastest=_fastest(results, family, run),
        accelerator=next((e.trial.accelerator for e in evidence if e.trial and e.trial.accelerator), None),
        machine=next((e.trial.machine for e in evidence if usable(e, home)), None),
        ceiling_ms=ceiling_ms,
        variants=tuple(_with_forecast(spec, r, baseline) for spec, r in zip(run.variants, results, strict=True)),
        next_steps=_next_steps(results, baseline, run),
        noise_floor=noise_floor,
        smallest_detectable_effect=smallest,
        steps_per_pass=_steps_per_pass(evidence),
        batch_size=run.settings.batch_size,
        warnings=tuple(_warnings(run, evidence, family, home)),
    )
    return comparison.model_copy(update={"verdict": verdict_sentence(comparison)})


def settled(run: Run, evidence: Sequence[Evidence]) -> bool:
    """Whether every variant's speed-up is known to within the smallest effect that matters.

    The rule looks at the width of the intervals only, never at where they lie: stopping on that does not favour
    finding a difference (fixed-width stopping; Chow and Robbins, Ann. Math. Stat. 36, 1965).
    """
    home = home_class(evidence)
    trials: dict[str, list[Evidence]] = {}
    for e in evidence:
        if e.planned.variant != CEILING and usable(e, home):
            trials.setdefault(e.planned.variant, []).append(e)
    samples = _samples(trials)
    if BASELINE not in samples or min(len(rounds) for rounds in samples.values()) < 2:
        return False
    return stats.family(samples).knows(BASELINE, run.settings.min_effect)


def _fastest(results: Sequence[VariantResult], family: stats.Family, run: Run) -> tuple[str, ...]:
    """The valid variants that are not certainly slower than the best one, the simplest first.

    Where the baseline is none of them, those that may not be faster than it come after those that are. What TensorFlow
    rewrites comes last of each: its speed hangs on the version, not on what was written.
    """
    valid = [r for r in results if r.status == "ok" and r.step_time_ms and r.name != A_A_TWIN]
    if not valid:
        return ()
    best = min(valid, key=lambda r: r.step_time_ms.mean)
    rewritten = {spec.name for spec in run.variants if spec.rewritten}
    equal = [r for r in valid if r is best or not family.is_slower(r.name, best.name, run.settings.min_effect)]
    keep = BASELINE in [r.name for r in equal]

    def rank(result: VariantResult) -> tuple[bool, bool, float, int]:
        unproved = not keep and result.speedup is not None and result.speedup.ci_low <= 1
        return unproved, result.name in rewritten, result.cache_mb or 0, len(result.pipeline.written)

    return tuple(result.name for result in sorted(equal, key=rank))


def _resolution(family: stats.Family, run: Run) -> tuple[float | None, float | None]:
    """Noise floor and smallest detectable effect: of the A/A pair where it ran, else of the noisiest pair."""
    others = [name for name in family.log_means if name != BASELINE]
    if BASELINE not in family.log_means or not others:
        return None, None
    equals = [A_A_TWIN] if A_A_TWIN in others else others
    noise = max(filter(None, (family.noise(BASELINE, name) for name in equals)), default=None)
    if noise is not None and (gap := _gap(family)):  # what equals did differ by is noise, however steadily they did
        noise = max(noise, math.expm1(abs(math.log(gap.value))))
    found = max(filter(None, (family.smallest_detectable(BASELINE, o) for o in others)), default=None)
    return noise, max(found, run.settings.min_effect) if found is not None else None


def _gap(family: stats.Family) -> stats.Estimate | None:
    """The twin's step time over the baseline's: what an A/A pair makes of two equals."""
    return family.ratio(A_A_TWIN, BASELINE) if {A_A_TWIN, BASELINE} <= family.log_means.keys() else None


def _samples(good: Mapping[str, Sequence[Evidence]]) -> stats.Samples:
    return {name: {e.planned.round: e.trial.step_times_ms for e in trials} for name, trials in good.items() if trials}


def _step_ms(trials: Sequence[Evidence]) -> float | None:
    return float(np.mean([np.mean(e.trial.step_times_ms) for e in trials])) if trials else None


def _steps_per_pass(evidence: Sequence[Evidence]) -> int | None:
    return next((e.trial.steps_per_pass for e in evidence if e.trial and e.trial.steps_per_pass), None)


def _costs(baseline: Sequence[Evidence], ceiling_ms: float | None, run: Run) -> Costs | None:
    """What the baseline's own trials say a batch costs; None where they cannot.

    Input drained alone may take longer than in the loop (a busy minute); it is never more than the step beyond the
    ceiling, or the model would come out faster than by itself.
    """
    told = [e for e in baseline if e.trial.rates and e.trial.input_only_ms and e.profile and e.profile.stages]
    if not told:
        return None
    one = typical(told)
    cores, step_ms = one.trial.machine.cores, _step_ms(told)
    input_ms = float(np.mean([np.mean(e.trial.input_only_ms) for e in told]))
    if ceiling_ms is not None:
        input_ms = min(input_ms, max(step_ms - ceiling_ms, 0.0))
    model_ms = max(step_ms - input_ms, 0.0)
    rates = _median_rates([e.trial.rates for e in told])
    work_ms = _work_on_cores(model_ms, one.trial.accelerator, cores)
    return costs(
        one.profile,
        rates,
        input_ms=input_ms,
        model_ms=model_ms,
        model_work_ms=work_ms,
        batch_size=run.settings.batch_size,
        cores=cores,
    )


def _median_rates(rates: Sequence[OperatorRates]) -> OperatorRates:
    return OperatorRates(**{name: median(getattr(r, name) for r in rates) for name in OperatorRates.model_fields})


def _work_on_cores(model_ms: float, accelerator: Accelerator, cores: int) -> float:
    """Of a step without its input, what keeps cores busy, in ms of one core."""
    if accelerator.kind == "emulated":
        return max(model_ms - accelerator.step_ms, 0.0)
    return model_ms * cores if accelerator.kind == "cpu" else 0.0


def _with_forecast(spec: VariantSpec, row: VariantResult, baseline: Costs | None) -> VariantResult:
    if baseline is None or not spec.builtin:
        return row
    operators = rewritten(spec.written) if spec.rewritten else spec.declared
    return row.model_copy(update={"forecast_ms": forecast_ms(operators, baseline)})


def _next_steps(results: Sequence[VariantResult], baseline: Costs | None, run: Run) -> tuple[NextStep, ...]:
    measured = [r for r in results if r.status == "ok" and r.step_time_ms]
    if baseline is None or not measured:
        return ()
    chains = {s.name: rewritten(s.written) if s.rewritten else s.declared for s in run.variants if s.builtin}
    known = [r for r in measured if r.name in chains]
    if not known:
        return ()
    fastest, best = (min(some, key=lambda r: r.step_time_ms.mean) for some in (measured, known))
    size = run.settings.image_size
    steps = next_steps(
        baseline,
        chains[best.name],
        best.step_time_ms.mean,
        [chains[r.name] for r in known],
        run.data.train_photos * size * size * 3 * 4 / BYTES_PER_MB,
        run.settings.min_effect,
    )
    if fastest is best:
        return steps
    gains = (
        step.model_copy(update={"gain": 1 - step.forecast_ms / fastest.step_time_ms.mean}) for step in steps
    )  # against a pipeline of the user's own, of which no forecast is known
    return tuple(step for step in gains if step.gain > run.settings.min_effect)


def _warnings(run: Run, evidence: Sequence[Evidence], family: stats.Family, home: str | None) -> list[str]:
    warnings = []
    if all(len(rounds) == 1 for rounds in family.log_means.values()):
        warnings.append(
            "One round: the intervals know the spread of steps within a process, not that between processes. "
            "Use rounds=3 or more before you decide."
        )
    extent, chance = stats.drift(family.log_means)
    if chance < 0.01 and extent > run.settings.min_effect:
        warnings.append(
            f"The machine drifted: rounds differ by {share(extent)}, more than noise explains. "
            "Speed-ups are paired by round and stand; step times of different nights may not."
        )
    if (gap := _gap(family)) and not gap.low <= 1 <= gap.high:
        warnings.append(
            f"{BASELINE} and {A_A_TWIN} are the same pipeline, and yet differ by {share(abs(gap.value - 1))}: "
            "believe no difference of this run that is not clearly larger."
        )
    classes = {e.trial.machine.machine_class for e in evidence if e.trial and e.trial.machine}
    if len(classes) > 1:
        warnings.append(f"Trials ran on {len(classes)} kinds of machine; only those on {home} are compared.")
    if run.settings.weights == "none" and run.settings.accelerator != "emulated":
        warnings.append("Random start weights: step times are those of real training, accuracy means nothing.")
    return warnings
