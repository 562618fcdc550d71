"""One pass over a device plane: its ops, its kernels, when it was busy, and the steps of older captures.

A GPU plane has a line for each stream, with kernels and copies, and lines that the profiler derives from them
(`TensorFlow Ops`, `XLA Ops`, `Steps`). A TPU plane has `XLA Ops` only.
"""

from dataclasses import dataclass, field
from typing import Any

from feedbench.records import Device
from feedbench.trace.host import Tally
from feedbench.trace.intervals import Intervals, union
from feedbench.trace.steps import STEPS_LINE, Markers
from feedbench.trace.xplane import Line, Plane

_PREFIX = "/device:"
_OP_LINES = ("TensorFlow Ops", "XLA Ops")
_COPIES = ("Memcpy", "Memset")
_NAME_STATS = ("tf_op", "annotation", "name", "hlo_op")


@dataclass
class DeviceFindings:
    """What all device planes of a capture tell."""

    planes: list[Plane] = field(default_factory=list)
    ops: dict[tuple[str, str], Tally] = field(default_factory=dict)
    """By name and type."""
    kernels: dict[str, Tally] = field(default_factory=dict)
    busy: list[Intervals] = field(default_factory=list)
    """One for each device with events."""
    events: int = 0
    damaged: int = 0


def is_device(plane: Plane) -> bool:
    return plane.name.startswith((f"{_PREFIX}GPU", f"{_PREFIX}TPU"))


def read_device(plane: Plane, findings: DeviceFindings, markers: Markers) -> None:
    """Adds what a device plane holds. Raises Damaged."""
    findings.planes.append(plane)
    op_line = next((name for name in _OP_LINES if any(line.name == name for line in plane.lines)), None)
    busy = []
    before = findings.events
    for line in plane.lines:
        if line.name == STEPS_LINE:
            _add_steps(plane, line, markers)
        elif line.name.startswith("Stream"):
            busy.append(_read_stream(plane, line, findings, with_ops=op_line is None))
        elif line.name == op_line:
            spans = _read_ops(plane, line, findings)
            if line.name == "XLA Ops" and not any(other.name.startswith("Stream") for other in plane.lines):
                busy.append(spans)
    if findings.events > before:
        findings.busy.append(union(busy))


def _add_steps(plane: Plane, line: Line, markers: Markers) -> None:
    """Steps of a device; one that several devices ran took as long as it did on the slowest of them."""
    for event, start, end in line.events():
        name = plane.names.get(event.metadata_id, "")
        known = markers.device.get(name)
        if start >= 0 and (known is None or end - start > known[1] - known[0]):
            markers.device[name] = (start, end, int(name) if name.isdecimal() and len(name) < 18 else None)


def _read_stream(plane: Plane, line: Line, findings: DeviceFindings, with_ops: bool) -> Intervals:
    """Kernels of one stream, and their ops where no line gives ops by themselves; returns when kernels ran."""
    spans = Intervals()
    for event, start, end in line.events():
        findings.events += 1
        name = plane.names.get(event.metadata_id)
        if start < 0 or name is None:
            findings.damaged += 1
            continue
        if name.startswith(_COPIES):
            continue
        _add(findings.kernels, name, end - start)
        if with_ops:
            _add(findings.ops, _op_of_kernel(plane.stats_of(event), name), end - start)
        _keep(spans, start, end)
    return spans


def _op_of_kernel(stats: dict[str, Any], kernel: str) -> tuple[str, str]:
    """Name and type of the op that started a kernel: TensorFlow writes `name:type`, JAX names its HLO op."""
    for stat in _NAME_STATS:
        value = stats.get(stat)
        if isinstance(value, str) and value and not value.startswith("XlaModule"):
            name, _, kind = value.partition(":")
            hlo = stats.get("hlo_op")
            return name, kind or (hlo.split(".")[0] if isinstance(hlo, str) else name.rsplit("/", 1)[-1])
    return kernel, "kernel"


def _read_ops(plane: Plane, line: Line, findings: DeviceFindings) -> Intervals:
    """Ops of a line that may nest (an XLA while loop holds its body); returns when any ran."""
    spans = Intervals()
    named: dict[int, Tally] = {}
    open_ops: list[tuple[int, Tally]] = []
    for event, start, end in line.events():
        findings.events += 1
        tally = named.get(event.metadata_id)
        if tally is None:
            key = _name_of_op(plane, event.metadata_id)
            tally = named[event.metadata_id] = findings.ops.setdefault(key, Tally())
        if start < 0:
            findings.damaged += 1
            continue
        while open_ops and open_ops[-1][0] <= start:
            open_ops.pop()
        if open_ops:
            open_ops[-1][1].self_ps -= end - start
        tally.count += 1
        tally.self_ps += end - start
        open_ops.append((end, tally))
        _keep(spans, start, end)
    return spans


def _name_of_op(plane: Plane, key: int) -> tuple[str, str]:
    if key not in plane.details:
        return "(unnamed)", "(unnamed)"
    details = plane.details[key]
    stats = plane.stats_of(details)
    if stats.get("hlo_category"):
        tf_op = str(stats.get("tf_op") or "").partition(":")[0]
        return tf_op or details.display_name or details.name, str(stats["hlo_category"])
    name, _, kind = details.name.partition(":")
    return name, kind or details.display_name or name


def _add(tallies: dict[Any, Tally], key: Any, duration: int) -> None:
    tally = tallies.setdefault(key, Tally())
    tally.count += 1
    tally.self_ps += duration


def _keep(spans: Intervals, start: int, end: int) -> None:
    """Streams may hold events slightly out of order; what starts before the last one starts with it."""
    spans.add(max(start, spans.starts[-1]) if len(spans) else start, end)


def describe_device(planes: list[Plane]) -> Device | None:
    """The accelerator, as its plane's stats name it; None without a device plane."""
    if not planes:
        return None
    plane = planes[0]
    kind = "tpu" if plane.name.startswith(f"{_PREFIX}TPU") else "gpu"
    return Device(kind=kind, name=_counted(_model(plane, kind), len(planes)))


def _model(plane: Plane, kind: str) -> str:
    stats = plane.stats
    for stat in ("device_type_string", "device_name", "gpu_device_name"):
        if isinstance(stats.get(stat), str) and stats[stat]:
            return stats[stat]
    parts = [f"{stats.get('device_vendor') or ''} {kind.upper()}".strip()]
    if "compute_cap_major" in stats:
        parts.append(f"compute capability {stats['compute_cap_major']}.{stats.get('compute_cap_minor', 0)}")
    if stats.get("memory_size"):
        parts.append(f"{stats['memory_size'] / 1e9:.1f} GB")
    return ", ".join(parts)


def _counted(name: str, count: int) -> str:
    return name if count == 1 else f"{count} x {name}"
