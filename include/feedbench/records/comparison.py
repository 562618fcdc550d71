"""comparison.json, the contract that other tools read, and its few lines for lists of runs."""

from typing import Literal

from feedbench.records.base import Document, Interval, Record, RunId, Share, StepMs, Time, Verdict
from feedbench.records.nights import Changes
from feedbench.records.profile import Profile, XprofStatement
from feedbench.records.run import Machine, Run
from feedbench.records.trial import Accelerator, Window


class StepTimeSummary(Record):
    mean: StepMs
    ci_low: float
    ci_high: float
    median: float
    p95: float


class PipelineCheck(Record):
    """What was written against what ran; `matches` is None where no profile could tell."""

    written: tuple[str, ...]
    declared: tuple[str, ...]
    executed: tuple[str, ...] | None
    matches: bool | None


class WhatIf(Record):
    """Photos per second against accelerator step time; the curve that says which accelerator this pipeline feeds."""

    accelerator_step_ms: tuple[float, ...]
    photos_per_s: tuple[float, ...]
    keeps_up_from_ms: float
    """Shortest accelerator step that this pipeline still feeds at 90 % utilisation."""


class VariantResult(Record):
    name: str
    why: str
    status: Literal["ok", "failed", "invalid"]
    reason: str | None = None
    rounds: int
    """Rounds that gave a result."""
    step_time_ms: StepTimeSummary | None = None
    examples_per_s: float | None = None
    first_batch_s: float | None = None
    fill_s: float | None = None
    speedup: Interval | None = None
    """Baseline's step time over this one's, paired by round; the interval holds for all variants together."""
    input_wait_share: Share | None = None
    input_only_ms: float | None = None
    accelerator_utilisation: Share | None = None
    verdict: Verdict = "not measured"
    verdict_reason: str | None = None
    """Why not measured, or where the two witnesses disagree."""
    slowest_stage: str | None = None
    forecast_ms: float | None = None
    """Step time predicted from the baseline's trials alone."""
    pipeline: PipelineCheck
    peak_rss_mb: float | None = None
    cache_mb: float | None = None
    loss: float | None = None
    accuracy: float | None = None
    val_accuracy: float | None = None
    profile: str | None = None
    """Path of the representative trial's TensorBoard log folder, relative to the run folder."""
    notes: tuple[str, ...] = ()
    # What the pictures need, of the representative (median) round.
    round_means_ms: tuple[float, ...] = ()
    step_times_ms: tuple[float, ...] = ()
    first_measured_step: int | None = None
    window: Window | None = None
    summary: Profile | None = None
    xprof: XprofStatement | None = None
    what_if: WhatIf | None = None


class NextStep(Record):
    """A change, its predicted step time and gain over the variant to ship, and the memory it costs."""

    change: str
    forecast_ms: float
    """The fastest's measured step time less the gain: what every forecast leaves out stands in both."""
    gain: float
    """Predicted step time saved, as a share of the fastest measured variant's; forecast against forecast."""
    memory_mb: float | None = None


class Comparison(Document):
    """comparison.json: the contract that other tools read."""

    run_id: str
    verdict: str
    baseline: str
    fastest: tuple[str, ...]
    """Not distinguishable from the best; the one to ship first, or the baseline where nothing beats it."""
    accelerator: Accelerator | None
    machine: Machine | None = None
    """That the compared trials ran on; None where none of them told it."""
    ceiling_ms: StepMs | None
    variants: tuple[VariantResult, ...]
    next_steps: tuple[NextStep, ...] = ()
    noise_floor: float | None = None
    """Relative step-time difference that two runs of the same thing show (95 %), from the A/A pair or the rounds."""
    smallest_detectable_effect: float | None = None
    """Smallest relative slow-down that this run would have found nine times in ten."""
    steps_per_pass: int | None = None
    batch_size: int
    warnings: tuple[str, ...] = ()
    history: Changes | None = None


class RunSummary(Document):
    """summary.json: a finished run in a few lines, so that a list of runs need not read every comparison."""

    run_id: RunId
    created_at: Time
    """ISO 8601, UTC: of the plan."""
    verdict: str
    fastest: tuple[str, ...]
    accelerator: Accelerator | None
    machine: Machine
    """Of the trials where one told, else of the planner."""
    variants: int
    without_result: int
    """Variants that failed or were invalid."""

    @classmethod
    def of(cls, run: Run, comparison: Comparison) -> "RunSummary":
        return cls(
            run_id=run.run_id,
            created_at=run.created_at,
            verdict=comparison.verdict,
            fastest=comparison.fastest,
            accelerator=comparison.accelerator,
            machine=comparison.machine or run.machine,
            variants=len(comparison.variants),
            without_result=sum(variant.status != "ok" for variant in comparison.variants),
        )
