"""What trials left behind, and whether it may be compared: what ran is held against what was written."""

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from feedbench.records import PipelineCheck, PlannedTrial, Profile, Trial, VariantSpec

NO_RECORD = (
    "no result was written: the worker was lost, its disk was full, the task was cancelled, or it has not run yet"
)


@dataclass(frozen=True)
class Evidence:
    """What one planned trial left behind; None for what is not there."""

    planned: PlannedTrial
    trial: Trial | None
    profile: Profile | None
    logdir: str
    """TensorBoard's folder, relative to the run's."""
    unreadable: str | None = None
    """Why a record that is there is no trial's."""

    @property
    def failure(self) -> str | None:
        if self.trial is None:
            return self.unreadable or NO_RECORD
        return self.trial.reason or "failed" if self.trial.status == "failed" else None


def home_class(evidence: Sequence[Evidence]) -> str | None:
    """The machine class that most trials ran on; trials elsewhere are not compared with it."""
    classes = [e.trial.machine.machine_class for e in evidence if e.trial and e.trial.machine]
    return statistics.mode(classes) if classes else None


def usable(e: Evidence, home: str | None) -> bool:
    return (
        e.trial is not None
        and e.trial.status == "ok"
        and e.trial.machine is not None
        and e.trial.machine.machine_class == home
    )


def digest_of(trials: Sequence[Evidence]) -> str | None:
    return next((e.trial.batch_digest for e in trials if e.trial and e.trial.batch_digest), None)


@dataclass(frozen=True)
class Check:
    status: Literal["ok", "failed", "invalid"]
    reason: str | None
    pipeline: PipelineCheck


def check(spec: VariantSpec, trials: Sequence[Evidence], home: str | None, digest: str | None) -> Check:
    """Failed, invalid or ok: what ran is held against what was written, round by round.

    `digest`: of the baseline's first batches; None where no trial of it got so far: then batches are not compared.
    """
    seen = [_way(e.profile, spec.declared) for e in trials if e.profile and e.profile.executed_pipeline]
    executed = next((way for way in seen if way != spec.declared), seen[0] if seen else None)
    matches = None if executed is None else executed == spec.declared
    pipeline = PipelineCheck(written=spec.written, declared=spec.declared, executed=executed, matches=matches)
    failures = [f"round {e.planned.round}: {e.failure}" for e in trials if e.failure]
    if failures:
        return Check("failed", "; ".join(dict.fromkeys(failures)), pipeline)
    elsewhere = [e for e in trials if not usable(e, home)]
    if elsewhere:
        names = ", ".join(sorted({f"{e.trial.machine.hostname}, {e.trial.machine.cpu_model}" for e in elsewhere}))
        return Check(
            "invalid", f"{len(elsewhere)} of {len(trials)} rounds ran on another kind of machine ({names})", pipeline
        )
    if digest is not None and any(e.trial.batch_digest != digest for e in trials):
        return Check("invalid", "its first batches are not the baseline's: other photos, order or pixels", pipeline)
    if matches is False and not spec.rewritten:
        return Check("invalid", _mismatch(spec.declared, executed), pipeline)
    return Check("ok", None, pipeline)


def _way(profile: Profile, declared: tuple[str, ...]) -> tuple[str, ...]:
    """Through the pipeline that ran: the way that was declared, where there is one, else the main one."""
    return declared if declared in profile.branches else profile.executed_pipeline


def _mismatch(declared: Sequence[str], executed: Sequence[str]) -> str:
    wanted, ran = Counter(declared), Counter(executed)  # in order of first appearance
    extra = [op for op in ran if op not in wanted]
    missing = [op for op in wanted if op not in ran]
    parts = [
        f"executed {', '.join(extra)}; not declared" if extra else "",
        f"declared {', '.join(missing)}; not executed in the profiled steps" if missing else "",
        *(
            f"declared {op} {_times(wanted[op])}, executed {op} {_times(ran[op])}"
            for op in wanted
            if 0 < ran[op] != wanted[op]
        ),
    ]
    return "; ".join(part for part in parts if part) or "executed in another order: " + " > ".join(executed)


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def typical(good: Sequence[Evidence]) -> Evidence:
    """The trial of median step time, of those with a profile if there are any: the one to look at."""
    seen = [e for e in good if e.profile and e.profile.status == "ok"] or list(good)
    return sorted(seen, key=lambda e: np.mean(e.trial.step_times_ms))[(len(seen) - 1) // 2]
