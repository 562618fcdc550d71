"""From an xplane.pb file to the Profile record: everything that is read, put together."""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from feedbench.errors import InputError
from feedbench.records import (
    Device,
    InputWait,
    Kernel,
    Layer,
    MemoryUse,
    Op,
    Profile,
    ProfiledStep,
    StepTime,
)
from feedbench.trace import ailments, blocking, stages
from feedbench.trace.device import DeviceFindings, describe_device, is_device, read_device
from feedbench.trace.host import HostFindings, Tally, attribute_ops, read_host
from feedbench.trace.intervals import length, union
from feedbench.trace.layers import layers
from feedbench.trace.steps import Step, find_steps
from feedbench.trace.timeline import timeline
from feedbench.trace.xplane import Capture, Damaged, open_capture
from feedbench.units import BYTES_PER_MB, PS_PER_MS

TOP_OPS = 20
TOP_KERNELS = 20
_HOST = "/host:CPU"
_NO_DEVICE_EVENTS = (
    "The GPU's plane is empty: CUPTI was missing or not allowed to profile. Install libcupti, and allow profiling "
    "with the driver option NVreg_RestrictProfilingToAdminUsers=0 or the capability CAP_SYS_ADMIN. "
    "What the host did is complete."
)


def read_profile(path: str | Path) -> Profile:
    """All that one xplane.pb file tells. A file that is no readable profile gives status `unusable` with the reason.

    Raises InputError only when there is no such file.
    """
    path = Path(path)
    if not path.exists():
        raise InputError(f"{path}: no such file")
    try:
        reason = ailments.not_a_file(path)
        if reason is None:
            with open_capture(path) as capture:
                return _profile(path, capture)
    except Damaged as damage:
        reason = ailments.how_damaged(path, str(damage))
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
    return Profile(file=str(path), status="unusable", reason=f"{path.name} {reason}")


def _profile(path: Path, capture: Capture) -> Profile:
    _check_planes(capture)
    host, device = HostFindings(), DeviceFindings()
    for plane in capture.planes:
        if is_device(plane):
            read_device(plane, device, host.markers)
        elif plane.name.startswith(_HOST):
            read_host(plane, host)
    if not host.events + device.events:
        raise Damaged("holds no events: nothing ran while the profiler was on")
    if host.damaged + device.damaged > (host.events + device.events) / 10:
        raise Damaged("is damaged: more than a tenth of its events have no name or an impossible time")
    return _Summary(path, capture, host, device).profile()


def _check_planes(capture: Capture) -> None:
    names = [plane.name for plane in capture.planes]
    if not any(name.startswith(("/host:", "/device:")) for name in names):
        raise Damaged("is no profile: it holds no plane of a host or a device")
    twice = {name for name in names if name and names.count(name) > 1}
    if twice:
        raise Damaged(
            f"holds two profiles in one (plane {min(twice)!r} stands twice): files were appended to each other"
        )


class _Summary:
    """The findings of one capture on their way to a Profile."""

    def __init__(self, path: Path, capture: Capture, host: HostFindings, device: DeviceFindings) -> None:
        self.path, self.capture, self.host, self.device = path, capture, host, device
        self.steps, self.notes = find_steps(host.markers, host.waits)
        self.pipeline = host.pipeline
        self.pipeline.root.settle()
        attribute_ops(host.ops.values())
        waits = union(step.waits or [] for step in self.steps)
        self.sink = self.pipeline.sink(waits)
        self.step_ms = _mean([step.duration for step in self.steps])
        self.wait_ms = _mean([step.waited for step in self.steps if step.waited is not None])

    def profile(self) -> Profile:
        cores = self.pipeline.root.stats.get("cpu_budget")
        cores = cores if isinstance(cores, int) and cores > 0 else None
        blocked = blocking.blocking(self.pipeline.root, self.steps, cores)
        nodes = list(self.sink.walk()) if self.sink else []
        nodes = [node for node in nodes if node.count or node.work]
        slow = blocking.slowest(blocked, self.sink, self.wait_ms, self.step_ms) if self.sink else None
        ways = tuple(dict.fromkeys(self.sink.ways())) if self.sink else ()
        self._note_what_is_missing()
        self._note_other_ways(slow)
        return Profile(
            file=str(self.path),
            status="ok",
            device=self._device(),
            hosts=tuple(_clean(host) for host in self.capture.hosts),
            steps=len(self.steps),
            step_time_ms=_step_time(self.steps),
            input_wait_ms=None if self.wait_ms is None else InputWait(mean=self.wait_ms),
            input_wait_share=None if self.wait_ms is None else self.wait_ms / self.step_ms,
            device_compute_ms=self._device_compute_ms(),
            executed_pipeline=ways[0] if ways else None,
            branches=ways[1:],
            stages=tuple(stages.as_record(node, blocked.get(node), self.step_ms) for node in nodes),
            slowest_stage=slow.operator if slow else None,
            cores=cores,
            top_ops=self._top_ops(),
            layers=self._layers(),
            kernels=self._kernels(),
            memory=self._memory(),
            step_table=tuple(_step_row(step) for step in self.steps),
            timeline=timeline(self.steps, nodes),
            notes=tuple(self.notes),
        )

    def _device(self) -> Device:
        return describe_device(self.device.planes) or Device(kind="cpu")

    def _device_compute_ms(self) -> float | None:
        """Time a step in which the busiest device ran kernels."""
        if not self.device.busy:
            return None
        return _mean([max(length(busy.within(s.start, s.end)) for busy in self.device.busy) for s in self.steps])

    def _top_ops(self) -> tuple[Op, ...]:
        host = {(op.name, op.type): op.total for op in self.host.ops.values()}
        return (*_top(self.device.ops, "device"), *_top(host, "host"))

    def _layers(self) -> tuple[Layer, ...]:
        steps = len(self.steps)
        on_host = {op.name: op.in_model.self_ps for op in self.host.ops.values() if op.in_model.count}
        on_device: dict[str, int] = {}
        for (name, _), tally in self.device.ops.items():
            on_device[name] = on_device.get(name, 0) + tally.self_ps
        return (*layers(on_device, steps, "device"), *layers(on_host, steps, "host"))

    def _kernels(self) -> tuple[Kernel, ...]:
        total = sum(tally.self_ps for tally in self.device.kernels.values())
        longest = sorted(self.device.kernels.items(), key=lambda item: -item[1].self_ps)[:TOP_KERNELS]
        return tuple(
            Kernel(
                name=_clean(name), count=tally.count, total_ms=tally.self_ps / PS_PER_MS, share=tally.self_ps / total
            )
            for name, tally in longest
            if tally.self_ps
        )

    def _memory(self) -> tuple[MemoryUse, ...]:
        return tuple(
            MemoryUse(
                allocator=_clean(name),
                peak_mb=use.peak / BYTES_PER_MB,
                limit_mb=use.limit / BYTES_PER_MB if use.limit else None,
            )
            for name, use in sorted(self.host.allocators.items())
        )

    def _note_what_is_missing(self) -> None:
        note = self.notes.append
        if self.steps:
            note(f"{len(self.steps)} complete step{'s' if len(self.steps) > 1 else ''} used.")
            if self.wait_ms is None:
                note("No wait for input lies in the steps: they asked no tf.data pipeline, or asked it ahead of time.")
        planes = self.device.planes
        if planes and not self.device.events and planes[0].name.startswith("/device:GPU"):
            note(_NO_DEVICE_EVENTS)
        for error in self.capture.errors:
            note(f"The profiler reported: {_clean(error)}")
        for warning in self.capture.warnings:
            note(f"The profiler warned: {_clean(warning)}")
        if damaged := self.host.damaged + self.device.damaged:
            total = self.host.events + self.device.events
            note(f"Left out as damaged (no name, or an impossible time): {damaged:,} of {total:,} events.")
        self._note_other_pipelines()

    def _note_other_pipelines(self) -> None:
        if self.sink is None:
            return
        others = [node for node in self.pipeline.root.children.values() if node is not self.sink]
        for other in others:
            chain = " > ".join(node.operator for node in stages.chain(other))
            self.notes.append(f"Another tf.data pipeline ran in the window and is left out: {chain}.")

    def _note_other_ways(self, slow: stages.Node | None) -> None:
        if self.sink is None or all(len(node.children) < 2 for node in self.sink.walk()):
            return
        self.notes.append("The pipeline branches: one way through it is shown as executed, the stage table has all.")
        place = stages.where(slow, self.sink) if slow else None
        if place:
            self.notes.append(f"The slowest stage, {slow.operator}, lies in {place}.")


def _step_time(steps: Sequence[Step]) -> StepTime | None:
    if not steps:
        return None
    times = [step.duration / PS_PER_MS for step in steps]
    return StepTime(mean=statistics.fmean(times), median=statistics.median(times), min=min(times), max=max(times))


def _step_row(step: Step) -> ProfiledStep:
    return ProfiledStep(
        number=step.number,
        duration_ms=step.duration / PS_PER_MS,
        input_wait_ms=None if step.waited is None else step.waited / PS_PER_MS,
    )


def _mean(values_ps: Sequence[int]) -> float | None:
    return statistics.fmean(values_ps) / PS_PER_MS if values_ps else None


def _top(ops: dict[tuple[str, str], Tally], where: Literal["host", "device"]) -> tuple[Op, ...]:
    # Damaged events can leave an op with less than no time of its own; it has no share in the rest.
    counted = {name: tally for name, tally in ops.items() if tally.self_ps > 0}
    total = sum(tally.self_ps for tally in counted.values())
    longest = sorted(counted.items(), key=lambda item: -item[1].self_ps)[:TOP_OPS]
    return tuple(
        Op(
            name=_clean(name),
            type=_clean(kind),
            where=where,
            count=tally.count,
            self_ms=tally.self_ps / PS_PER_MS,
            share=tally.self_ps / total,
        )
        for (name, kind), tally in longest
    )


def _clean(text: str) -> str:
    """Names as a terminal and a page can show them: captures in the wild hold control characters."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text)
