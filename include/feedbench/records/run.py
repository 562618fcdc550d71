"""run.json: what was asked for, on what, before any trial."""

from typing import Literal

from feedbench.config import Settings
from feedbench.records.base import Document, Record, RunId, Time, VariantName


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

    name: VariantName
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

    variant: VariantName
    round: int


class Run(Document):
    """run.json: what was asked for, on what, before any trial."""

    run_id: RunId
    created_at: Time
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
