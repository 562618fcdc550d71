"""The records that pass between the parts, and the JSON they are on disk: one schema each, declared once.

Units are in the names. None means not measured (the reason is beside it), never zero.
Readers of older files go through `store.py`, which migrates them by `schema_version`.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from feedbench.config import Settings

SCHEMA_VERSION = 2
"""2: a change says whether it lasts. `store.py` reads 1, too."""

Share = Annotated[float, Field(ge=0)]
Verdict = Literal["input-bound", "balanced", "compute-bound", "not measured"]


class Record(BaseModel):
    """Base of all records: frozen, strict about keys, free of NaN and infinity."""

    # Schemas are built when first used: most commands need few of the records.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


class Document(Record):
    """A record that is a file of its own."""

    schema_version: int = SCHEMA_VERSION


class Interval(Record):
    """A value with its 95 % interval, in the unit that the field's name says."""

    value: float
    ci_low: float
    ci_high: float


# ---- the run ---------------------------------------------------------------------------------------------------


class Machine(Record):
    """What a result depends on besides the code. `machine_class` is equal where results may be compared."""

    machine_class: str
    """Short digest of the hardware fields: cpu_model, cores, memory (in steps of a GB), gpus."""
    hostname: str
    cpu_model: str
    cores: int
    """Cores this process may really use: the smaller of affinity and cgroup quota, rounded up."""
    memory_mb: int
    """Memory this process may really use: the smaller of physical memory and cgroup limit."""
    gpus: tuple[str, ...] = ()
    driver: str | None = None
    cuda: str | None = None
    kernel: str
    python: str
    packages: dict[str, str]
    """Versions of tensorflow, keras, numpy, xprof, apache-airflow ... as far as installed."""
    lock_hash: str | None = None
    """Digest over all installed packages and versions."""


class DataSet(Record):
    """The photos of a run."""

    source: str
    path: str
    """Of the photos: an artefact path, or absolute for a folder that is used where it lies."""
    fingerprint: str
    """Digest over the relative paths and contents of the photos, so that equal data is equal by name."""
    classes: tuple[str, ...]
    photos: int
    rejects: int
    train_photos: int
    """A multiple of the batch size, so that every pass has the same whole number of steps."""
    validation_photos: int


class VariantSpec(Record):
    """A variant as it was written, without its code."""

    name: str
    why: str
    written: tuple[str, ...]
    """Operators from the source to the last one, as written."""
    declared: tuple[str, ...]
    """Operators that must be seen in the measured steps: `written`, but from the cache on once that is warm."""
    rewritten: bool = False
    """True where TensorFlow's own rewriting was left on, so that other operators may run than were written."""
    cache: Literal["memory", "file"] | None = None
    builtin: bool = True
    """Made of the project's own steps only, whose costs a forecast knows."""
    spec: str
    """The steps with their arguments, as text: what makes two variants of one name the same over nights."""


class PlannedTrial(Record):
    """One variant in one round."""

    variant: str
    round: int


class Run(Document):
    """run.json: what was asked for, on what, before any trial."""

    run_id: str
    created_at: str
    """ISO 8601, UTC."""
    settings: Settings
    method_version: int
    data: DataSet
    variants: tuple[VariantSpec, ...]
    trials: tuple[PlannedTrial, ...]
    """In the order they are run: round by round, variants shuffled within a round."""
    machine: Machine
    """Of the planner; each trial has its own."""
    git_revision: str | None = None
    weights: str | None = None
    """Artefact path of the start weights, None for random ones."""
    weights_digest: str | None = None
    pinned: bool = False


# ---- a trial ---------------------------------------------------------------------------------------------------


class Accelerator(Record):
    kind: Literal["gpu", "cpu", "emulated"]
    name: str
    step_ms: float | None = None
    """The emulated step, None for a real one."""


class Window(Record):
    """The profiled steps: numbers of the first and last, and where in a pass over the photos they lie."""

    first_step: int
    steps: int
    first_step_in_pass: int


class OperatorRates(Record):
    """Operators measured alone, warm, on a few photos: what a forecast needs beside the baseline's profile."""

    map_ms: float
    """A photo read, decoded and resized, one after the other; wall time, as all here."""
    parallel_map_ms: float
    """The same on all cores, a photo."""
    memory_cache_ms: float
    """A decoded photo from memory."""
    file_cache_ms: float
    """A decoded float32 photo from a cache file in the page cache."""
    batch_ms: float
    """A whole batch of float32 photos copied together."""
    uint8_batch_ms: float
    to_float_ms: float
    """A whole batch cast from uint8, batches in parallel."""


class Trial(Document):
    """trial.json: what one process measured. A failed trial has a reason, and what it had measured until then."""

    run_id: str
    variant: str
    round: int
    status: Literal["ok", "failed"]
    reason: str | None = None
    started_at: str
    finished_at: str
    machine: Machine | None = None
    accelerator: Accelerator | None = None
    jit_compile: bool | None = None
    step_times_ms: tuple[float, ...] = ()
    """Every measured (unprofiled, warm) step, in order; whole passes."""
    steps_per_pass: int | None = None
    first_measured_step: int | None = None
    """Number of the first measured step, counted from the first batch: where in a pass the times begin."""
    input_only_ms: tuple[float, ...] = ()
    """Time for each batch of one whole pass with no model behind it, warm."""
    rates: OperatorRates | None = None
    """In the baseline's trials only."""
    first_batch_s: float | None = None
    fill_s: float | None = None
    peak_rss_mb: float | None = None
    cache_mb: float | None = None
    loss: float | None = None
    accuracy: float | None = None
    val_accuracy: float | None = None
    batch_digest: str | None = None
    """Digest of the first batches as whole numbers 0..255: equal over all variants of a fair run."""
    window: Window | None = None
    phases_s: dict[str, float] = {}
    """Wall time by phase: import, fill, first_batch, model, warmup, measure, profile, input_only, rates, evaluate."""


# ---- what a profile says -----------------------------------------------------------------------------------------


class Device(Record):
    kind: Literal["gpu", "tpu", "cpu"]
    name: str | None = None


class StepTime(Record):
    mean: float
    median: float
    min: float
    max: float


class InputWait(Record):
    mean: float


class Blocking(Record):
    """Time a step stood still for one stage, over the steps of the window."""

    mean: float
    median: float
    p95: float


class Op(Record):
    """One operator on host or device; `share` is of all self time at the same place."""

    name: str
    type: str
    where: Literal["host", "device"]
    count: int
    self_ms: float
    share: Share


class StageOp(Record):
    """An operator that ran inside a stage's function, for example DecodeJpeg inside Map."""

    type: str
    count: int
    self_ms: float


class Stage(Record):
    """One tf.data operator in the window, added up over its iterators and passes."""

    name: str
    """TensorFlow's dataset name where the trace has it (`ParallelMapDatasetV2:7`), else the operator."""
    operator: str
    """As in the executed chain: `TensorSlice`, `ParallelMapV2`, `MemoryCache`, `BatchV2` ..."""
    count: int
    total_ms: float
    self_ms: float
    """Duration less the overlap with other tf.data stages below it, over the window; function ops included."""
    blocking_ms: Blocking | None = None
    """A step: while this stage and every ancestor up to the waiting step are at work."""
    share: Share | None = None
    """Mean blocking time over mean step time."""
    parallelism: int | None = None
    buffer: int | None = None
    """Elements the stage may hold (shuffle, prefetch); None where the trace does not say."""
    buffered: int | None = None
    """Elements it held when last seen."""
    element_bytes: int | None = None
    ops: tuple[StageOp, ...] = ()


class Layer(Record):
    """One Keras layer's time in the window, mean over the steps."""

    name: str
    where: Literal["host", "device"]
    forward_ms: float
    backward_ms: float


class Kernel(Record):
    name: str
    count: int
    total_ms: float
    share: Share


class MemoryUse(Record):
    allocator: str
    peak_mb: float
    limit_mb: float | None = None


class Span(Record):
    """A bar of the timeline; times in ms from the start of the timeline."""

    start_ms: float
    end_ms: float


class TimelineStep(Record):
    number: int
    start_ms: float
    end_ms: float
    wait: Span | None = None


class Timeline(Record):
    """The same few steps of each variant on one time axis: model lane over input lanes.

    Spans nearer than a screen pixel are joined; `lanes` names what is drawn below the model, most telling first.
    """

    steps: tuple[TimelineStep, ...]
    lanes: dict[str, tuple[Span, ...]]


class ProfiledStep(Record):
    number: int | None
    duration_ms: float
    input_wait_ms: float | None


class Profile(Document):
    """profile.json, and what `feedbench inspect --json` prints: all that was read from one xplane file."""

    file: str
    status: Literal["ok", "unusable"]
    reason: str | None = None
    device: Device | None = None
    hosts: tuple[str, ...] = ()
    steps: int = 0
    step_time_ms: StepTime | None = None
    input_wait_ms: InputWait | None = None
    input_wait_share: Share | None = None
    device_compute_ms: float | None = None
    executed_pipeline: tuple[str, ...] | None = None
    """tf.data operators from the source to the last one, as they ran in the window."""
    stages: tuple[Stage, ...] = ()
    """In the order of `executed_pipeline`."""
    slowest_stage: str | None = None
    """Operator of the stage with the largest mean blocking time."""
    cores: int | None = None
    """tf.data's cpu_budget, from the trace."""
    top_ops: tuple[Op, ...] = ()
    layers: tuple[Layer, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    memory: tuple[MemoryUse, ...] = ()
    step_table: tuple[ProfiledStep, ...] = ()
    timeline: Timeline | None = None
    notes: tuple[str, ...] = ()


class XprofStatement(Record):
    """What xprof itself says of the same file, beside ours."""

    available: bool
    reason: str | None = None
    step_time_ms: float | None = None
    input_share: Share | None = None
    statement: str | None = None


# ---- the comparison ------------------------------------------------------------------------------------------------


class StepTimeSummary(Record):
    mean: float
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
    what_if: "WhatIf | None" = None


class WhatIf(Record):
    """Photos per second against accelerator step time; the curve that says which accelerator this pipeline feeds."""

    accelerator_step_ms: tuple[float, ...]
    photos_per_s: tuple[float, ...]
    keeps_up_from_ms: float
    """Shortest accelerator step that this pipeline still feeds at 90 % utilisation."""


class NextStep(Record):
    """A change, its predicted step time and gain over the variant to ship, and the memory it costs."""

    change: str
    forecast_ms: float
    gain: float
    """Predicted step time saved, as a share of the fastest measured variant's."""
    memory_mb: float | None = None
    measured_ms: float | None = None
    """Where the change was run the same night: what it took."""


class Comparison(Document):
    """comparison.json: the contract that other tools read."""

    run_id: str
    verdict: str
    baseline: str
    fastest: tuple[str, ...]
    """Not distinguishable from the best; the simplest first."""
    accelerator: Accelerator | None
    ceiling_ms: float | None
    variants: tuple[VariantResult, ...]
    next_steps: tuple[NextStep, ...] = ()
    noise_floor: float | None = None
    """Relative step-time difference that two runs of the same thing show (95 %), from the A/A pair or the rounds."""
    smallest_detectable_effect: float | None = None
    """Smallest relative slow-down that this run would have found nine times in ten."""
    steps_per_pass: int | None = None
    batch_size: int
    warnings: tuple[str, ...] = ()
    history: "Changes | None" = None


class RunSummary(Document):
    """summary.json: a finished run in a few lines, so that a list of runs need not read every comparison."""

    run_id: str
    created_at: str
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
    def of(cls, run: Run, comparison: Comparison, machine: Machine | None = None) -> "RunSummary":
        return cls(
            run_id=run.run_id,
            created_at=run.created_at,
            verdict=comparison.verdict,
            fastest=comparison.fastest,
            accelerator=comparison.accelerator,
            machine=machine or run.machine,
            variants=len(comparison.variants),
            without_result=sum(variant.status != "ok" for variant in comparison.variants),
        )


class Change(Record):
    """A lasting or new difference of one variant against its recent nights."""

    variant: str
    size: Interval
    """Relative step-time change: +0.18 is 18 % slower."""
    direction: Literal["slower", "faster"]
    since_run: str
    since: str
    confidence: float
    lasting: bool = True
    """False for one told after a single night, because it is enormous or comes with another machine."""
    causes: tuple[str, ...] = ()
    accepted: str | None = None
    """The reason a person gave for accepting it."""


class Changes(Record):
    """Since the last good night: what the top of the report says."""

    compared_with: str | None
    """run_id of the last good night, None for a first night."""
    nights: int
    changes: tuple[Change, ...] = ()
    environment: tuple[str, ...] = ()
    """Differences of the fingerprints, as sentences."""


# ---- the nights ----------------------------------------------------------------------------------------------------


class NightlyStage(Record):
    """A tf.data stage in a few numbers: what it cost a step, and how parallel it really was."""

    operator: str
    self_ms: float
    """A step of the profile window."""
    parallelism: int | None = None


class NightlyResult(Record):
    """A variant's valid result of one night, and the series that it belongs to."""

    series: str
    """Digest of all that must be equal for nights to be compared: machine class, conditions, variant spec."""
    kin: str
    """The same with the hardware in place of its class: equal where only the cores or memory allowed differ."""
    step_time_ms: float
    error: float
    """Standard error of the mean step time within the run, as a share of it."""
    verdict: Verdict
    stages: tuple[NightlyStage, ...] = ()


class Night(Document):
    """A line of history.jsonl: what later nights are compared with. Derived from run.json and comparison.json."""

    run_id: str
    created_at: str
    machine: Machine
    git_revision: str | None
    conditions: dict[str, str]
    """Data, accelerator, method version and the settings that a step time depends on, by name."""
    ceiling_ms: float | None
    results: dict[str, NightlyResult]
    """By variant; failed and invalid ones are not there."""


class Accepted(Document):
    """accepted.json: regressions that a person took for good, with the reason, by run and variant."""

    reasons: dict[str, dict[str, str]] = {}


VariantResult.model_rebuild()
Comparison.model_rebuild()


def dump(record: Record) -> dict[str, Any]:
    """Plain JSON types of a record."""
    return record.model_dump(mode="json")
