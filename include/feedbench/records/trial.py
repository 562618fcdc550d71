"""trial.json: what one process measured."""

from typing import Literal, Self

from pydantic import Field, model_validator

from feedbench.records.base import Document, Record, StepMs, VariantName
from feedbench.records.run import Machine
from feedbench.units import ms


class Accelerator(Record):
    kind: Literal["gpu", "cpu", "emulated"]
    name: str
    step_ms: float | None = None
    """The emulated step, None for a real one."""

    @property
    def in_words(self) -> str:
        if self.kind == "emulated":
            return f"emulated, {ms(self.step_ms)} ms a step"
        return self.name if self.kind in self.name.lower() else f"{self.kind.upper()}: {self.name}"


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
    variant: VariantName
    round: int
    status: Literal["ok", "failed"]
    reason: str | None = None
    started_at: str
    finished_at: str
    machine: Machine | None = None
    accelerator: Accelerator | None = None
    jit_compile: bool | None = None
    step_times_ms: tuple[StepMs, ...] = ()
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
    phases_s: dict[str, float] = Field(default_factory=dict)
    """Wall time by phase: import, fill, first_batch, model, warmup, measure, profile, input_only, rates, evaluate."""

    @model_validator(mode="after")
    def _an_ok_trial_has_measured(self) -> Self:
        missing = [name for name in ("machine", "accelerator", "step_times_ms") if not getattr(self, name)]
        if self.status == "ok" and missing:
            raise ValueError(f"status ok, but without {', '.join(missing)}")
        return self
