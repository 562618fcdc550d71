"""One variant's row: its step time, what limits it, what ran."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from feedbench.analysis import stats
from feedbench.analysis.advise import what_if
from feedbench.analysis.diagnose import diagnose
from feedbench.analysis.evidence import Check, Evidence, typical
from feedbench.analysis.forecast import runs_ahead
from feedbench.config import BASELINE, Settings
from feedbench.records import Interval, Profile, StepTimeSummary, VariantResult, VariantSpec, XprofStatement

_AVERAGED = ("first_batch_s", "fill_s", "peak_rss_mb", "cache_mb", "loss", "accuracy", "val_accuracy")


def result(
    spec: VariantSpec,
    good: Sequence[Evidence],
    check: Check,
    family: stats.Family,
    ceiling_ms: float | None,
    settings: Settings,
    xprof: Callable[[Evidence], XprofStatement],
) -> VariantResult:
    """The row of a variant whose usable trials are `good`; without any, its status and reason alone."""
    row: dict[str, Any] = {
        "name": spec.name,
        "why": spec.why,
        "status": check.status,
        "reason": check.reason,
        "rounds": len(good),
        "pipeline": check.pipeline,
    }
    if not good:
        return VariantResult(**row, verdict_reason=check.reason)
    seen = typical(good)
    row |= _times(spec, good, family, settings)
    row |= _limits(good, seen, ceiling_ms, row["step_time_ms"].mean)
    row |= _typical_round(seen, xprof)
    if row["input_only_ms"]:
        ran = check.pipeline.executed or spec.declared
        row["what_if"] = what_if(row["input_only_ms"], runs_ahead(ran), settings.batch_size)
    row["notes"] = tuple(_notes(spec, check, seen.profile))
    return VariantResult(**row, **{name: _mean([getattr(e.trial, name) for e in good]) for name in _AVERAGED})


def _times(spec: VariantSpec, good: Sequence[Evidence], family: stats.Family, settings: Settings) -> dict[str, Any]:
    step_time = _step_time(good, settings.seed)
    compared = spec.name != BASELINE and BASELINE in family.log_means
    ratio = family.ratio(BASELINE, spec.name) if compared else None
    return {
        "step_time_ms": step_time,
        "examples_per_s": settings.batch_size / step_time.mean * 1000,
        "speedup": Interval(value=ratio.value, ci_low=ratio.low, ci_high=ratio.high) if ratio else None,
        "input_only_ms": _mean([float(np.mean(e.trial.input_only_ms)) for e in good if e.trial.input_only_ms]),
        "round_means_ms": tuple(float(np.mean(e.trial.step_times_ms)) for e in good),
    }


def _limits(good: Sequence[Evidence], seen: Evidence, ceiling_ms: float | None, step_ms: float) -> dict[str, Any]:
    """What limits it: both witnesses, over all rounds."""
    wait_share = _mean([e.profile.input_wait_share for e in good if e.profile])
    utilisation = ceiling_ms / step_ms if ceiling_ms else None
    judged = diagnose(wait_share, utilisation, _no_trace(seen.profile) if wait_share is None else None)
    return {
        "input_wait_share": wait_share,
        "accelerator_utilisation": utilisation,
        "verdict": judged.verdict,
        "verdict_reason": judged.reason,
        "slowest_stage": seen.profile.slowest_stage if seen.profile else None,
    }


def _typical_round(seen: Evidence, xprof: Callable[[Evidence], XprofStatement]) -> dict[str, Any]:
    """What the pictures and details are drawn from."""
    return {
        "profile": seen.logdir if seen.profile else None,
        "step_times_ms": seen.trial.step_times_ms,
        "first_measured_step": seen.trial.first_measured_step,
        "window": seen.trial.window,
        "summary": seen.profile,
        "xprof": xprof(seen) if seen.profile else None,
    }


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


def _notes(spec: VariantSpec, check: Check, profile: Profile | None) -> list[str]:
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
