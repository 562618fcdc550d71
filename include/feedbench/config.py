"""The settings of a run: declared once here, for the CLI, the trigger form, the records and the report.

Every field has a default that is safe on any machine, its limits, a section and a help text.
`Settings.parse` turns whatever a person typed into settings or into one clear SettingsError.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from feedbench.errors import SettingsError, nearest

METHOD_VERSION = 1
"""How step times are taken and compared. A change of method is a new version: series never mix two."""

BASELINE = "naive"
CEILING = "ceiling"
"""The name of the trial that is fed one constant batch; no variant may take it."""
A_A_TWIN = "naive_again"
"""The baseline run a second time under another name, to show how much two equal things differ."""


def _field(default: Any, section: str, title: str, help: str, **limits: Any) -> Any:
    return Field(default, title=title, description=help, json_schema_extra={"section": section}, **limits)


class Settings(BaseModel):
    """One run's settings. Frozen; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    source: str = _field(
        "synthetic",
        "Data",
        "Photos from",
        "synthetic, flower_photos, or a path or http(s) address of a folder or archive with one sub-folder per class.",
        min_length=1,
    )
    photos: int | None = _field(
        None,
        "Data",
        "Photos at most",
        "Photos to make (synthetic) or to use at most, evenly over the classes. Empty: all (synthetic: 600).",
        ge=20,
        le=10_000_000,
    )
    validation_share: float = _field(
        0.2, "Data", "Validation share", "Share of each class kept for validation.", ge=0.05, le=0.5
    )
    max_reject_share: float = _field(
        0.05, "Data", "Rejects at most", "Stop when more than this share of the files cannot be decoded.", ge=0, le=1
    )
    seed: int = _field(
        0, "Data", "Seed", "Orders photos, splits, shuffles and variants; same seed, same order.", ge=0, le=2**31 - 1
    )

    variants: tuple[str, ...] = _field(
        (),
        "Pipelines",
        "Variants",
        "Pipelines to compare; empty: all. The baseline (naive) always runs.",
    )
    variant_modules: tuple[str, ...] = _field(
        (),
        "Pipelines",
        "Modules with own variants",
        "Importable Python modules that define VARIANTS of their own.",
    )
    shuffle_buffer: int = _field(
        100, "Pipelines", "Shuffle buffer", "Photos in the shuffle buffer.", ge=1, le=1_000_000
    )

    accelerator: Literal["auto", "cpu", "gpu", "emulated"] = _field(
        "auto",
        "Training",
        "Accelerator",
        "auto: a GPU if there is one, else the CPU. emulated: consume the batch, then sleep.",
    )
    emulated_step_ms: float | None = _field(
        None, "Training", "Emulated step (ms)", "How long the emulated accelerator takes for a step.", gt=0, le=60_000
    )
    weights: str = _field(
        "none",
        "Training",
        "Start weights",
        "imagenet (fetched once), none (random), or the path of an EfficientNetB0 weights file without top.",
        min_length=1,
    )
    trainable: Literal["head", "all"] = _field(
        "head", "Training", "Trainable layers", "head: the new classifier only; all: every layer."
    )
    batch_size: int = _field(32, "Training", "Batch size", "Photos in a step.", ge=1, le=4096)
    image_size: int = _field(
        224,
        "Training",
        "Image size (px)",
        "Side of the square picture fed to the model; EfficientNetB0 halves it five times.",
        ge=32,
        le=1024,
    )
    jit_compile: Literal["auto", "on", "off"] = _field(
        "auto", "Training", "XLA", "Compile the train step with XLA; auto: with a GPU only."
    )
    mixed_precision: bool = _field(
        False, "Training", "Mixed precision", "Compute in float16 where the GPU has fast units for it."
    )

    rounds: int = _field(
        1,
        "Measurement",
        "Rounds",
        "Passes over all variants; three or more give intervals that can be relied on.",
        ge=1,
        le=100,
    )
    max_rounds: int | None = _field(
        None,
        "Measurement",
        "Rounds at most",
        "Add rounds, up to this many, until the decision is narrower than the smallest effect. Empty: never.",
        ge=2,
        le=100,
    )
    steps: int = _field(
        30,
        "Measurement",
        "Measured steps",
        "Steps timed in a trial, rounded up to whole passes over the photos.",
        ge=5,
        le=1_000_000,
    )
    warmup_steps: int = _field(
        5,
        "Measurement",
        "Warm-up steps",
        "Steps before the clock counts: compilation and first reads.",
        ge=1,
        le=100_000,
    )
    profile_steps: int = _field(
        12,
        "Measurement",
        "Profiled steps",
        "Steps with the profiler on, after the measured ones; never more than the measured steps.",
        ge=5,
        le=1000,
    )
    min_effect: float = _field(
        0.02, "Measurement", "Smallest effect", "A smaller difference of step times is no difference.", ge=0, le=0.5
    )
    a_a: bool = _field(
        False, "Measurement", "A/A pair", "Run the baseline twice under two names, to print the noise floor."
    )
    trial_timeout_s: float = _field(
        1800, "Measurement", "Trial time-out (s)", "A trial that takes longer is killed and reported.", ge=1, le=86_400
    )
    max_regression: float = _field(
        0.10,
        "Measurement",
        "Regression limit",
        "The run turns red when a variant got slower than its recent nights by more than this.",
        gt=0,
        le=10,
    )

    @model_validator(mode="after")
    def _belong_together(self) -> "Settings":
        if self.profile_steps > self.steps:
            raise ValueError(
                f"profile_steps={self.profile_steps}: longer than the steps={self.steps} it must represent; "
                f"use profile_steps <= {self.steps} or raise steps"
            )
        if self.accelerator == "emulated" and self.emulated_step_ms is None:
            raise ValueError("emulated_step_ms: accelerator=emulated needs it; for example emulated_step_ms=45")
        if self.accelerator != "emulated" and self.emulated_step_ms is not None:
            raise ValueError(
                f"emulated_step_ms={self.emulated_step_ms:g}: means something with accelerator=emulated only, "
                f"not with {self.accelerator}"
            )
        if self.max_rounds is not None and self.max_rounds < self.rounds:
            raise ValueError(
                f"max_rounds={self.max_rounds}: smaller than rounds={self.rounds}; leave it empty or raise it"
            )
        if len(set(self.variants)) != len(self.variants):
            raise ValueError(f"variants={','.join(self.variants)}: a name stands twice")
        return self

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> "Settings":
        """Settings from what a person typed.

        Raises SettingsError naming each wrong setting, its value and what would be right.
        """
        unknown = [
            f"{key}: no such setting{nearest(key, cls.model_fields)}" for key in values if key not in cls.model_fields
        ]
        if unknown:
            raise SettingsError("; ".join(unknown))
        try:
            # A form sends null for a field left empty: that is the default.
            return cls.model_validate({key: value for key, value in values.items() if value is not None})
        except ValidationError as error:
            raise SettingsError("; ".join(_explain(detail) for detail in error.errors())) from None


def _explain(detail: Mapping[str, Any]) -> str:
    """One pydantic complaint as `setting=value: what would be right`."""
    where = ".".join(str(part) for part in detail["loc"])
    message = detail["msg"].removeprefix("Value error, ")
    return f"{where}={detail['input']}: {message[0].lower()}{message[1:]}" if where else message
