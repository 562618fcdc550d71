"""Over the nights: what changed since the last good one, and what of each is kept for those after."""

from typing import Literal

from pydantic import Field

from feedbench.records.base import Document, Interval, Record, RunId, StepMs, Time, Verdict
from feedbench.records.run import Machine


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


HALF_WIDTH = 1.96
"""Of a 95 % interval, in standard errors."""


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
    step_time_ms: StepMs
    error: float = Field(ge=0, le=1e100)
    """Standard error of the mean step time within the run, as a share of it; limited, so that intervals stay finite."""
    verdict: Verdict
    stages: tuple[NightlyStage, ...] = ()
    change: float | None = None
    """Relative step-time change that was told on this night, None for none."""

    @property
    def half_width_ms(self) -> float:
        """Of the 95 % interval from within the run."""
        return HALF_WIDTH * self.error * self.step_time_ms


class Night(Document):
    """A line of history.jsonl: what later nights are compared with. Derived from run.json and comparison.json."""

    run_id: RunId
    created_at: Time
    machine: Machine
    git_revision: str | None
    conditions: dict[str, str]
    """Data, accelerator, method version and the settings that a step time depends on, by name."""
    ceiling_ms: StepMs | None
    results: dict[str, NightlyResult]
    """By variant; failed and invalid ones are not there."""


class Accepted(Document):
    """accepted.json: regressions that a person took for good, with the reason, by run and variant."""

    reasons: dict[str, dict[str, str]] = Field(default_factory=dict)
