"""Trials and their profiles in, one comparison out."""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from feedbench.analysis import stats
from feedbench.analysis.diagnose import Diagnosis, diagnose
from feedbench.analysis.verdict import verdict_sentence
from feedbench.config import A_A_TWIN, BASELINE, CEILING
from feedbench.records import (
    Comparison,
    Interval,
    PipelineCheck,
    PlannedTrial,
    Profile,
    Run,
    StepTimeSummary,
    Trial,
    VariantResult,
    VariantSpec,
    XprofStatement,
)
from feedbench.units import share

NO_RECORD = "no result was written: the worker was lost, or the task was cancelled"


@dataclass(frozen=True)
class Evidence:
    """What one planned trial left behind; None for what is not there."""

    planned: PlannedTrial
    trial: Trial | None
    profile: Profile | None
    logdir: str
    """TensorBoard's folder, relative to the run's."""

    @property
    def failure(self) -> str | None:
        if self.trial is None:
            return NO_RECORD
        return self.trial.reason or "failed" if self.trial.status == "failed" else None


def compare(run: Run, evidence: Sequence[Evidence], xprof: Callable[[Evidence], XprofStatement]) -> Comparison:
    """The comparison of a run. `xprof` is asked once a variant, for the representative trial."""
    by_variant = {spec.name: [e for e in evidence if e.planned.variant == spec.name] for spec in run.variants}
    home = _home_class(evidence)
    ceiling = [e for e in evidence if e.planned.variant == CEILING and _usable(e, home)]
    ceiling_ms = float(np.mean([np.mean(e.trial.step_times_ms) for e in ceiling])) if ceiling else None
    digest = _digest_of(by_variant[BASELINE])
    checked = {spec.name: _check(spec, by_variant[spec.name], home, digest) for spec in run.variants}
    good = {name: [e for e in by_variant[name] if _usable(e, home)] for name in by_variant}
    family = stats.family(
        {name: {e.planned.round: e.trial.step_times_ms for e in trials} for name, trials in good.items() if trials},
        block=_block(good),
    )
    results = [
        _result(spec, good[spec.name], by_variant[spec.name], checked[spec.name], family, ceiling_ms, run, xprof)
        for spec in run.variants
    ]
    fastest = _fastest(results, family, run)
    accelerator = next((e.trial.accelerator for e in evidence if e.trial and e.trial.accelerator), None)
    noise_floor, smallest = _resolution(family, run)
    comparison = Comparison(
        run_id=run.run_id,
        verdict="",
        baseline=BASELINE,
        fastest=fastest,
        accelerator=accelerator,
        ceiling_ms=ceiling_ms,
        variants=tuple(results),
        noise_floor=noise_floor,
        smallest_detectable_effect=smallest,
        steps_per_pass=next((e.trial.steps_per_pass for e in evidence if e.trial and e.trial.steps_per_pass), None),
        batch_size=run.settings.batch_size,
        warnings=tuple(_warnings(run, evidence, family, home)),
    )
    return comparison.model_copy(update={"verdict": verdict_sentence(comparison, run)})


def settled(run: Run, evidence: Sequence[Evidence]) -> bool:
    """Whether every variant's speed-up is known to within the smallest effect that matters.

    The rule looks at the width of the intervals only, never at where they lie: stopping on that does not favour
    finding a difference (fixed-width stopping; Chow and Robbins, Ann. Math. Stat. 36, 1965).
    """
    home = _home_class(evidence)
    samples: dict[str, dict[int, Sequence[float]]] = {}
    for e in evidence:
        if e.planned.variant != CEILING and _usable(e, home):
            samples.setdefault(e.planned.variant, {})[e.planned.round] = e.trial.step_times_ms
    if BASELINE not in samples or min(len(rounds) for rounds in samples.values()) < 2:
        return False
    family = stats.family(samples)
    ratios = (family.ratio(BASELINE, name) for name in samples if name != BASELINE)
    limit = math.log1p(run.settings.min_effect)
    return all(ratio is not None and math.log(ratio.high / ratio.low) / 2 <= limit for ratio in ratios)


# ---- what counts -----------------------------------------------------------------------------------------------


def _home_class(evidence: Sequence[Evidence]) -> str | None:
    """The machine class that most trials ran on; trials elsewhere are not compared with it."""
    classes = [e.trial.machine.machine_class for e in evidence if e.trial and e.trial.machine]
    return statistics.mode(classes) if classes else None


def _usable(e: Evidence, home: str | None) -> bool:
    return (
        e.trial is not None
        and e.trial.status == "ok"
        and e.trial.machine is not None
        and e.trial.machine.machine_class == home
    )


def _digest_of(trials: Sequence[Evidence]) -> str | None:
    return next((e.trial.batch_digest for e in trials if e.trial and e.trial.batch_digest), None)


@dataclass(frozen=True)
class _Check:
    status: str
    reason: str | None
    pipeline: PipelineCheck


def _check(spec: VariantSpec, trials: Sequence[Evidence], home: str | None, digest: str | None) -> _Check:
    """Failed, invalid or ok: what ran is held against what was written, round by round."""
    profiles = [e.profile for e in trials if e.profile and e.profile.executed_pipeline]
    executed = next((p.executed_pipeline for p in profiles if p.executed_pipeline != spec.declared), None)
    executed = executed or (profiles[0].executed_pipeline if profiles else None)
    matches = None if executed is None else executed == spec.declared
    pipeline = PipelineCheck(written=spec.written, declared=spec.declared, executed=executed, matches=matches)
    failures = [f"round {e.planned.round}: {e.failure}" for e in trials if e.failure]
    if failures:
        return _Check("failed", "; ".join(dict.fromkeys(failures)), pipeline)
    elsewhere = [e for e in trials if not _usable(e, home)]
    if elsewhere:
        names = ", ".join(sorted({f"{e.trial.machine.hostname}, {e.trial.machine.cpu_model}" for e in elsewhere}))
        return _Check(
            "invalid", f"{len(elsewhere)} of {len(trials)} rounds ran on another kind of machine ({names})", pipeline
        )
    if any(e.trial.batch_digest != digest for e in trials):
        return _Check("invalid", "its first batches are not the baseline's: other photos, order or pixels", pipeline)
    if matches is False and not spec.rewritten:
        return _Check("invalid", _mismatch(spec.declared, executed), pipeline)
    return _Check("ok", None, pipeline)


def _mismatch(declared: Sequence[str], executed: Sequence[str]) -> str:
    extra = [op for op in executed if op not in declared]
    missing = [op for op in declared if op not in executed]
    parts = [
        f"executed {', '.join(extra)}; not declared" if extra else "",
        f"declared {', '.join(missing)}; not executed" if missing else "",
    ]
    return "; ".join(part for part in parts if part) or "executed in another order: " + " > ".join(executed)


# ---- one variant -----------------------------------------------------------------------------------------------


def _result(
    spec: VariantSpec,
    good: Sequence[Evidence],
    planned: Sequence[Evidence],
    check: _Check,
    family: stats.Family,
    ceiling_ms: float | None,
    run: Run,
    xprof: Callable[[Evidence], XprofStatement],
) -> VariantResult:
    known = {
        "name": spec.name,
        "why": spec.why,
        "status": check.status,
        "reason": check.reason,
        "rounds": len(good),
        "pipeline": check.pipeline,
    }
    if not good:
        return VariantResult(**known, verdict_reason=check.reason)
    typical = _typical(good)
    profile = typical.profile
    step_time = _step_time(good, run.settings.seed)
    utilisation = ceiling_ms / step_time.mean if ceiling_ms else None
    wait_share = _mean([e.profile.input_wait_share for e in good if e.profile])
    judged = diagnose(wait_share, utilisation, None if wait_share is not None else _no_trace(profile))
    ratio = family.ratio(BASELINE, spec.name) if BASELINE in family.log_means and spec.name != BASELINE else None
    return VariantResult(
        **known,
        **_judged(judged),
        step_time_ms=step_time,
        examples_per_s=run.settings.batch_size / step_time.mean * 1000,
        speedup=Interval(value=ratio.value, ci_low=ratio.low, ci_high=ratio.high) if ratio else None,
        input_wait_share=wait_share,
        input_only_ms=_mean([float(np.mean(e.trial.input_only_ms)) for e in good if e.trial.input_only_ms]),
        accelerator_utilisation=utilisation,
        slowest_stage=profile.slowest_stage if profile else None,
        notes=tuple(_notes(spec, check, planned, profile)),
        profile=typical.logdir if profile else None,
        round_means_ms=tuple(float(np.mean(e.trial.step_times_ms)) for e in good),
        step_times_ms=typical.trial.step_times_ms,
        first_measured_step=typical.trial.first_measured_step,
        window=typical.trial.window,
        summary=profile,
        xprof=xprof(typical) if profile else None,
        **{name: _mean([getattr(e.trial, name) for e in good]) for name in _AVERAGED},
    )


_AVERAGED = ("first_batch_s", "fill_s", "peak_rss_mb", "cache_mb", "loss", "accuracy", "val_accuracy")


def _judged(judged: Diagnosis) -> dict[str, str | None]:
    return {"verdict": judged.verdict, "verdict_reason": judged.reason}


def _typical(good: Sequence[Evidence]) -> Evidence:
    """The trial of median step time, of those with a profile if there are any: the one to look at."""
    seen = [e for e in good if e.profile and e.profile.status == "ok"] or list(good)
    return sorted(seen, key=lambda e: np.mean(e.trial.step_times_ms))[(len(seen) - 1) // 2]


def _step_time(good: Sequence[Evidence], seed: int) -> StepTimeSummary:
    rounds = [e.trial.step_times_ms for e in good]
    interval = stats.mean_interval(rounds, block=good[0].trial.steps_per_pass or 1, seed=seed)
    every = np.concatenate([np.asarray(r) for r in rounds])
    return StepTimeSummary(
        mean=interval.value,
        ci_low=interval.low,
        ci_high=interval.high,
        median=float(np.median(every)),
        p95=float(np.quantile(every, 0.95)),
    )


def _no_trace(profile: Profile | None) -> str:
    if profile is None:
        return "no profile was found"
    return profile.reason or next(iter(profile.notes), "the profile has no step markers")


def _notes(spec: VariantSpec, check: _Check, planned: Sequence[Evidence], profile: Profile | None) -> list[str]:
    notes = []
    if spec.cache:
        warm = check.pipeline.executed is not None and check.pipeline.executed[0] == spec.declared[0]
        notes.append(
            f"warm: nothing ran below {spec.declared[0]} in the profiled steps"
            if warm
            else "not proved warm: "
            + ("no profile" if check.pipeline.executed is None else "operators ran below the cache")
        )
    if spec.rewritten and check.pipeline.matches is False:
        notes.append("rewritten by TensorFlow: " + " > ".join(check.pipeline.executed))
    if profile is not None and profile.status != "ok":
        notes.append(f"profile unusable: {profile.reason}")
    return notes


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


# ---- the whole run ---------------------------------------------------------------------------------------------


def _fastest(results: Sequence[VariantResult], family: stats.Family, run: Run) -> tuple[str, ...]:
    """The valid variants that are not certainly slower than the best one, the simplest first.

    What TensorFlow rewrites comes last: its speed hangs on the version, not on what was written.
    """
    valid = [r for r in results if r.status == "ok" and r.step_time_ms and r.name != A_A_TWIN]
    if not valid:
        return ()
    best = min(valid, key=lambda r: r.step_time_ms.mean)
    rewritten = {spec.name for spec in run.variants if spec.rewritten}
    equal = [r for r in valid if r is best or not family.is_slower(r.name, best.name, run.settings.min_effect)]
    return tuple(
        r.name for r in sorted(equal, key=lambda r: (r.name in rewritten, r.cache_mb or 0, len(r.pipeline.written)))
    )


def _resolution(family: stats.Family, run: Run) -> tuple[float | None, float | None]:
    """Noise floor and smallest detectable effect: of the A/A pair where it ran, else of the noisiest pair."""
    others = [name for name in family.log_means if name != BASELINE]
    if BASELINE not in family.log_means or not others:
        return None, None
    twin = A_A_TWIN if A_A_TWIN in others else None
    noise = (
        family.noise(BASELINE, twin)
        if twin
        else max(filter(None, (family.noise(BASELINE, o) for o in others)), default=None)
    )
    found = max(filter(None, (family.smallest_detectable(BASELINE, o) for o in others)), default=None)
    return noise, max(found, run.settings.min_effect) if found is not None else None


def _block(good: dict[str, list[Evidence]]) -> int:
    return next((e.trial.steps_per_pass or 1 for trials in good.values() for e in trials), 1)


def _warnings(run: Run, evidence: Sequence[Evidence], family: stats.Family, home: str | None) -> list[str]:
    warnings = []
    if run.settings.rounds == 1:
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
    classes = {e.trial.machine.machine_class for e in evidence if e.trial and e.trial.machine}
    if len(classes) > 1:
        warnings.append(f"Trials ran on {len(classes)} kinds of machine; only those on {home} are compared.")
    if run.settings.weights == "none" and run.settings.accelerator != "emulated":
        warnings.append("Random start weights: step times are those of real training, accuracy means nothing.")
    warnings.append("Every photo was read while indexing, so all variants start with a warm page cache.")
    return warnings
