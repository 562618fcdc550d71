"""What later nights need of a finished run, and the file that keeps it for all runs.

The file is derived: it is read whole, runs that it lacks are added from their folders, and removed runs drop out. It
can be deleted at any time; it exists because a comparison.json is a thousand times longer than a night's line.
"""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from functools import partial

from pydantic_core import from_json

from feedbench.errors import InputError
from feedbench.records import (
    SCHEMA_VERSION,
    Accelerator,
    Comparison,
    Machine,
    Night,
    NightlyResult,
    NightlyStage,
    Profile,
    Run,
    VariantResult,
)
from feedbench.records.base import RUN_ID, TIME
from feedbench.records.nights import HALF_WIDTH
from feedbench.store import RunFolder, Store, read_bytes, write_bytes

_DECIDE_STEP_TIME = (
    "photos", "validation_share", "seed", "shuffle_buffer", "trainable", "batch_size", "image_size", "mixed_precision",
)  # fmt: skip
"""Settings that a step time depends on. The source counts by its fingerprint, the accelerator by what it turned out to
be; how long and how often was measured only changes how sure one is."""
RECALLED = 300
"""Nights that a new one may be held against: more than a series' memory, for other runs lie between its nights."""
_HEAD = re.compile(
    rf'\{{"schema_version":{SCHEMA_VERSION},"run_id":"(?P<run_id>{RUN_ID})","created_at":"(?P<created_at>{TIME})",'.encode()
)
"""How a line of today begins: enough to know whose it is, at a hundredth of the cost of reading all of it."""


class History:
    """The nights of a store, oldest first. Lines are read when somebody asks for them, for most are never needed.

    Who only looks writes nothing: what the file lacks is derived each time, until the next run is kept.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        lines = _read(store)
        there = set(store.run_ids())
        self._lines = {run_id: line for run_id, line in lines.items() if run_id in there}
        missing = [night for run_id in there - lines.keys() if (night := _derived(store.run(run_id)))]
        self._lines |= {night.run_id: _line(night) for night in missing}

    @property
    def nights(self) -> list[Night]:
        return self._nights(self._ordered())

    def latest(self, count: int) -> list[Night]:
        return self._nights(self._ordered()[-count:])

    def of_series(self, series: str) -> list[Night]:
        """The nights of one series, each with the result of that series alone: a tenth of the objects and the time."""
        wanted = [run_id for run_id in self._ordered() if series.encode() in self._lines[run_id]]
        nights = (self._night(run_id, partial(_of_one, series)) for run_id in wanted)
        return [night for night in nights if night and night.results]

    def before(self, tonight: Night) -> list[Night]:
        """The latest RECALLED nights before this one, whatever they are about."""
        earlier = [run_id for run_id in self._ordered() if self._key(run_id) < (tonight.created_at, tonight.run_id)]
        return self._nights(earlier[-RECALLED:])

    def add(self, night: Night) -> None:
        """Keep a night, in place of what was known of the same run, and with it all that had to be derived.

        What another process has kept since this history was read stays.
        """
        with self._store.alone():
            there = set(self._store.run_ids())
            since = {run_id: line for run_id, line in _read(self._store).items() if run_id in there}
            self._lines |= since | {night.run_id: _line(night)}
            write_bytes(self._store.history, b"".join(self._lines[run_id] + b"\n" for run_id in self._ordered()))

    def _ordered(self) -> list[str]:
        return sorted(self._lines, key=self._key)

    def _key(self, run_id: str) -> tuple[str, str]:
        return _HEAD.match(self._lines[run_id])["created_at"].decode(), run_id

    def _nights(self, run_ids: Sequence[str]) -> list[Night]:
        return [night for run_id in run_ids if (night := self._night(run_id))]

    def _night(self, run_id: str, parse: Callable[[bytes], Night] = Night.model_validate_json) -> Night | None:
        """A line that is no night's after all is made anew from the run's folder; where that is none, it drops out."""
        try:
            return parse(self._lines[run_id])
        except (ValueError, KeyError, TypeError, AttributeError):  # of JSON that is built like nothing known
            del self._lines[run_id]
        if (night := _derived(self._store.run(run_id))) is None:
            return None
        self._lines[run_id] = _line(night)
        return parse(self._lines[run_id])


def _of_one(series: str, line: bytes) -> Night:
    content = from_json(line)
    content["results"] = {v: r for v, r in content["results"].items() if r["series"] == series}
    return Night.model_validate(content)


def _line(night: Night) -> bytes:
    return night.model_dump_json().encode()


def night_of(run: Run, comparison: Comparison) -> Night:
    """The night's line of a finished run; on the planner's machine where no trial told its own."""
    machine = comparison.machine or run.machine
    conditions = _conditions(run, comparison)
    specs = {spec.name: spec.spec for spec in run.variants}
    changes = comparison.history.changes if comparison.history else ()
    told = {change.variant: change.size.value for change in changes}
    valid = [v for v in comparison.variants if v.status == "ok" and v.step_time_ms and v.name in specs]
    return Night(
        run_id=run.run_id,
        created_at=run.created_at,
        machine=machine,
        git_revision=run.git_revision,
        conditions=conditions,
        ceiling_ms=comparison.ceiling_ms,
        results={v.name: _result(v, specs[v.name], conditions, machine, told.get(v.name)) for v in valid},
    )


def _conditions(run: Run, comparison: Comparison) -> dict[str, str]:
    chosen = run.settings.model_dump(mode="json", include=set(_DECIDE_STEP_TIME))
    return {name: str(value) for name, value in chosen.items()} | {
        "data": run.data.fingerprint,
        "method_version": str(run.method_version),
        "accelerator": _accelerator(comparison.accelerator),
    }


def _accelerator(on: Accelerator | None) -> str:
    if on is None:
        return "none"
    return f"emulated, {on.step_ms:g} ms a step" if on.kind == "emulated" else f"{on.kind} {on.name}"


def _result(
    variant: VariantResult, spec: str, conditions: dict[str, str], machine: Machine, change: float | None
) -> NightlyResult:
    same = {**conditions, "variant": variant.name, "spec": spec}
    step = variant.step_time_ms
    return NightlyResult(
        series=_digest({**same, "machine": machine.machine_class}),
        kin=_digest({**same, "cpu": machine.cpu_model, "gpus": machine.gpus}),
        step_time_ms=step.mean,
        error=(step.ci_high - step.ci_low) / 2 / HALF_WIDTH / step.mean,
        verdict=variant.verdict,
        stages=_stages(variant.summary),
        change=change,
    )


def _stages(profile: Profile | None) -> tuple[NightlyStage, ...]:
    if profile is None or not profile.steps:
        return ()
    return tuple(
        NightlyStage(operator=stage.operator, self_ms=stage.self_ms / profile.steps, parallelism=stage.parallelism)
        for stage in profile.stages
    )


def night_in(folder: RunFolder) -> Night:
    """From a finished run's own files; before schema version 3, its summary alone told the machine."""
    comparison = folder.read_comparison()
    machine = comparison.machine or folder.read_summary().machine
    return night_of(folder.read_run(), comparison.model_copy(update={"machine": machine}))


def _derived(folder: RunFolder) -> Night | None:
    """None for a run that is not finished, cannot be read, has impossible numbers, or is a copy of another one."""
    try:
        night = night_in(folder)
    except (InputError, ValueError):
        return None
    return night if night.run_id == folder.run_id else None


def _read(store: Store) -> dict[str, bytes]:
    """Lines by run; one that is not of today's schema, or cut off, is left out, and so made anew."""
    try:
        lines = read_bytes(store.history).splitlines()
    except InputError:
        return {}
    return {found["run_id"].decode(): line for line in lines if (found := _HEAD.match(line)) and line.endswith(b"}")}


def _digest(parts: dict[str, object]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]
