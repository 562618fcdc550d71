"""Runs as their trials would leave them, with planted step times."""

from collections.abc import Callable

import numpy as np

from feedbench.analysis.evidence import Evidence
from feedbench.config import CEILING, Settings
from feedbench.pipelines.variants import chosen
from feedbench.records import (
    Accelerator,
    DataSet,
    OperatorRates,
    PlannedTrial,
    Profile,
    Run,
    Stage,
    Trial,
    Window,
)
from planted.machines import machine

STEPS_PER_PASS = 7
RATES = OperatorRates(
    map_ms=0.6, parallel_map_ms=0.36, memory_cache_ms=0.002, file_cache_ms=0.3, batch_ms=4, uint8_batch_ms=1,
    to_float_ms=2,
)  # fmt: skip


class Planted:
    """A run whose trials took the step times that are planted, by variant; every detail can be broken."""

    def __init__(self, step_ms: dict[str, float], rounds: int = 3, noise: float = 0.002, **settings: object) -> None:
        self.settings = Settings.parse(
            {"accelerator": "emulated", "emulated_step_ms": 45, "rounds": rounds, "variants": list(step_ms), **settings}
        )
        variants = chosen(self.settings.variants, a_a=self.settings.a_a)
        self.specs = {variant.name: variant.spec() for variant in variants}
        planned = [PlannedTrial(variant=v, round=r) for r in range(1, rounds + 1) for v in (*self.specs, CEILING)]
        self.run = Run(
            run_id="r", created_at="2026-01-01T00:00:00+00:00", settings=self.settings, method_version=1,
            data=DataSet(
                source="synthetic", path="datasets/f", fingerprint="f", classes=("a", "b"), photos=300, rejects=0,
                train_photos=224, validation_photos=60,
            ),
            variants=tuple(self.specs.values()), trials=tuple(planned), machine=machine(cores=2),
        )  # fmt: skip
        rng = np.random.default_rng(0)
        self.evidence = {
            (p.variant, p.round): self._evidence(p, {CEILING: 45.0, **step_ms}[p.variant], rng, noise) for p in planned
        }

    def _evidence(self, planned: PlannedTrial, step_ms: float, rng: np.random.Generator, noise: float) -> Evidence:
        luck = np.exp(rng.normal(0, noise))
        is_ceiling = planned.variant == CEILING
        trial = Trial(
            run_id="r", variant=planned.variant, round=planned.round, status="ok",
            started_at="2026-01-01T00:00:00+00:00", finished_at="2026-01-01T00:01:00+00:00", machine=machine(cores=2),
            accelerator=Accelerator(kind="emulated", name="emulated", step_ms=45),
            step_times_ms=tuple(step_ms * luck * np.exp(rng.normal(0, 0.02, 35))), steps_per_pass=STEPS_PER_PASS,
            first_measured_step=5, input_only_ms=() if is_ceiling else (20.0,) * STEPS_PER_PASS,
            rates=RATES if planned.variant == "naive" else None, batch_digest=None if is_ceiling else "same",
            window=Window(first_step=40, steps=12, first_step_in_pass=5), peak_rss_mb=900,
        )  # fmt: skip
        if is_ceiling:
            return Evidence(planned, trial, None, "logdir")
        return Evidence(planned, trial, self._profile(planned.variant, step_ms), "logdir")

    def _profile(self, variant: str, step_ms: float) -> Profile:
        stages = (
            Stage(name="m", operator="Map", count=320, total_ms=160, self_ms=160),
            Stage(name="b", operator="BatchV2", count=10, total_ms=200, self_ms=40),
        )
        return Profile(
            file="x", status="ok", steps=12, input_wait_share=max(1 - 45 / step_ms, 0.0), stages=stages,
            executed_pipeline=self.specs[variant].declared, slowest_stage="Map",
        )  # fmt: skip

    def change(self, variant: str, change: Callable[[Evidence], Evidence], rounds: tuple[int, ...] = ()) -> "Planted":
        for v, r in self.evidence:
            if v == variant and (not rounds or r in rounds):
                self.evidence[v, r] = change(self.evidence[v, r])
        return self
