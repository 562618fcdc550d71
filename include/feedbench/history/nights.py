"""What later nights need of a finished run, and the file that keeps it for all runs.

The file is derived: it is read whole, runs that it lacks are added from their folders, and removed runs drop out. It
can be deleted at any time; it exists because a comparison.json is a thousand times longer than a night's line.
"""

import hashlib
import json

from feedbench.errors import InputError
from feedbench.records import (
    SCHEMA_VERSION,
    Comparison,
    Machine,
    Night,
    NightlyResult,
    NightlyStage,
    Profile,
    Run,
    VariantResult,
)
from feedbench.store import RunFolder, Store, parse, write_bytes

_DECIDE_STEP_TIME = (
    "photos", "validation_share", "seed", "shuffle_buffer", "trainable", "batch_size", "image_size", "mixed_precision",
)  # fmt: skip
"""Settings that a step time depends on. The source counts by its fingerprint, the accelerator by what it turned out to
be; how long and how often was measured only changes how sure one is."""
_HALF_WIDTH = 1.96
"""Of a 95 % interval, in standard errors."""


class History:
    """The nights of a store, oldest first."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lines = _read(store)
        there = set(store.run_ids())
        missing = {run_id: night for run_id in there - self._lines.keys() if (night := _derived(store.run(run_id)))}
        gone = self._lines.keys() - there
        if missing or gone:
            self._keep({run_id: night for run_id, night in self._lines.items() if run_id in there} | missing)

    @property
    def nights(self) -> list[Night]:
        return sorted(self._lines.values(), key=lambda night: (night.created_at, night.run_id))

    def before(self, tonight: Night) -> list[Night]:
        """All earlier nights, whatever they are about."""
        key = (tonight.created_at, tonight.run_id)
        return [night for night in self.nights if (night.created_at, night.run_id) < key]

    def add(self, night: Night) -> None:
        """Keep a night; in place of what was known of the same run."""
        self._keep(self._lines | {night.run_id: night})

    def _keep(self, lines: dict[str, Night]) -> None:
        self._lines = lines
        write_bytes(self._store.history, b"".join(night.model_dump_json().encode() + b"\n" for night in self.nights))


def night_of(run: Run, comparison: Comparison, machine: Machine | None = None) -> Night:
    """The night's line of a finished run; `machine`: of its trials where one told, else the planner's is taken."""
    machine = machine or run.machine
    conditions = _conditions(run, comparison)
    specs = {spec.name: spec.spec for spec in run.variants}
    valid = [v for v in comparison.variants if v.status == "ok" and v.step_time_ms and v.name in specs]
    return Night(
        run_id=run.run_id,
        created_at=run.created_at,
        machine=machine,
        git_revision=run.git_revision,
        conditions=conditions,
        ceiling_ms=comparison.ceiling_ms,
        results={v.name: _result(v, specs[v.name], conditions, machine) for v in valid},
    )


def _conditions(run: Run, comparison: Comparison) -> dict[str, str]:
    chosen = run.settings.model_dump(mode="json", include=set(_DECIDE_STEP_TIME))
    on = comparison.accelerator
    return {name: str(value) for name, value in chosen.items()} | {
        "data": run.data.fingerprint,
        "method_version": str(run.method_version),
        "accelerator": f"{on.kind} {on.name} {on.step_ms or ''}".strip() if on else "none",
    }


def _result(variant: VariantResult, spec: str, conditions: dict[str, str], machine: Machine) -> NightlyResult:
    same = {**conditions, "variant": variant.name, "spec": spec}
    step = variant.step_time_ms
    return NightlyResult(
        series=_digest({**same, "machine": machine.machine_class}),
        kin=_digest({**same, "cpu": machine.cpu_model, "gpus": machine.gpus}),
        step_time_ms=step.mean,
        error=(step.ci_high - step.ci_low) / 2 / _HALF_WIDTH / step.mean,
        verdict=variant.verdict,
        stages=_stages(variant.summary),
    )


def _stages(profile: Profile | None) -> tuple[NightlyStage, ...]:
    if profile is None or not profile.steps:
        return ()
    return tuple(
        NightlyStage(operator=stage.operator, self_ms=stage.self_ms / profile.steps, parallelism=stage.parallelism)
        for stage in profile.stages
    )


def _derived(folder: RunFolder) -> Night | None:
    """From a run's own files; None for one that is not finished, or cannot be read."""
    try:
        return night_of(folder.read_run(), folder.read_comparison(), folder.read_summary().machine)
    except InputError:
        return None


def _read(store: Store) -> dict[str, Night]:
    """By run; a line of an older schema, or none at all, is left out and so made anew."""
    try:
        lines = store.history.read_bytes().splitlines()
    except FileNotFoundError:
        return {}
    nights = []
    for number, line in enumerate(lines, 1):
        try:
            nights.append(parse(line, Night, f"{store.history}:{number}"))
        except InputError:
            continue
    return {night.run_id: night for night in nights if night.schema_version == SCHEMA_VERSION}


def _digest(parts: dict[str, object]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]
