"""profile.json: all that was read from one xplane file, and what xprof itself says of it."""

from typing import Literal

from feedbench.records.base import Document, Record, Share


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
    """tf.data operators from the source to the last one, as they ran in the window; by the first of several inputs."""
    branches: tuple[tuple[str, ...], ...] = ()
    """Other ways from a source to the last one: by other inputs, or what a flat_map makes of each element."""
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
