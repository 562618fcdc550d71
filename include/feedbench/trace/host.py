"""One pass over the threads of a host: step markers, waits, tf.data calls, ops, allocations.

Threads of compute pools are read last: whose function a pool thread ran is known only from the threads that asked for
it, by the id of the run. Handlers are chosen once for each event name, since a large capture has tens of millions of
events of few names.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from feedbench.trace.intervals import Intervals
from feedbench.trace.stages import Node, Pipeline, is_detail
from feedbench.trace.steps import WAIT, Markers
from feedbench.trace.xplane import LONGEST_PS, Line, Plane
from feedbench.trace.xplane_pb2 import XLine

_OP = re.compile(r"(?P<name>[A-Za-z0-9_.][^:]*):(?P<type>[A-Z_][A-Za-z0-9_]*)")
_POOL = re.compile(r"tf_data_private_threadpool|tf_Compute|tf_pjrt_thread_pool")
_INTRA_OP_POOL = re.compile(r"tf_numa_.*Eigen")
"""Its threads run shares of ops, which are counted on the thread that started them; a third of a CPU training's events
are this pool's own."""
_RUN_OF_FUNCTION = ("ExecutorState::Process", "ExecutorDoneCallback")
_ASKS_FOR_FUNCTION = "InstantiatedCapturedFunction::Run"

Handler = Callable[[Any, int, int], None]


@dataclass(slots=True)
class Tally:
    count: int = 0
    self_ps: int = 0


@dataclass
class HostOp:
    """A TensorFlow op by name; its time told apart by where it ran."""

    name: str
    type: str
    in_model: Tally = field(default_factory=Tally)
    in_stages: dict[Node, Tally] = field(default_factory=dict)

    @property
    def total(self) -> Tally:
        parts = [self.in_model, *self.in_stages.values()]
        return Tally(sum(part.count for part in parts), sum(part.self_ps for part in parts))


@dataclass
class Allocator:
    peak: int = 0
    limit: int = 0


@dataclass(slots=True)
class _Call:
    """A tf.data call that is under way while its thread's events are read."""

    node: Node
    start: int
    end: int
    inner: int = 0
    called: int = 0


@dataclass
class HostFindings:
    """What all host planes of a capture tell."""

    pipeline: Pipeline = field(default_factory=Pipeline)
    markers: Markers = field(default_factory=Markers)
    waits: list[Intervals] = field(default_factory=list)
    ops: dict[str, HostOp] = field(default_factory=dict)
    allocators: dict[str, Allocator] = field(default_factory=dict)
    functions: dict[int, Node] = field(default_factory=dict)
    """Stage by the id of a run of its function."""
    events: int = 0
    damaged: int = 0


def read_host(plane: Plane, findings: HostFindings) -> None:
    """Adds what a host plane holds. Raises Damaged."""
    reader = _HostReader(plane, findings)
    for line in sorted(plane.lines, key=lambda line: _POOL.match(line.name) is not None):
        if not _INTRA_OP_POOL.match(line.name):
            reader.read(line)


class _HostReader:
    def __init__(self, plane: Plane, findings: HostFindings) -> None:
        self.plane = plane
        self.findings = findings
        self.handlers: dict[int, Handler | None] = {}
        self.functions = findings.functions
        self.id_stats = plane.stat_ids("id")
        self.step_stats = plane.stat_ids("step_num")

    def read(self, line: Line) -> None:
        self._start_of_thread(line.name)
        for piece in line.pieces():
            self._read_piece(piece, line.base_ps)
        self._end_of_thread()

    def _read_piece(self, piece: XLine, base: int) -> None:
        """The one loop over all events of a capture: what has no handler must cost next to nothing."""
        handlers = self.handlers
        for event in piece.events:
            try:
                handle = handlers[event.metadata_id]
            except KeyError:
                handle = self._choose(event)
            if handle is None:
                continue
            start = base + event.offset_ps
            end = start + event.duration_ps
            if 0 <= start <= end < LONGEST_PS:
                handle(event, start, end)
            else:
                self.findings.damaged += 1
        self.findings.events += len(piece.events)

    def _start_of_thread(self, name: str) -> None:
        # A run that was asked for before the capture began has no known stage, but is no part of the model either.
        self.elsewhere = self.findings.pipeline.root if name.startswith("tf_data") else None
        self.calls: list[_Call] = []
        self.last_outermost: Node | None = None
        self.spans: dict[Node, Intervals] = {}
        self.work: dict[Node, Intervals] = {}
        self.waits = Intervals()
        self.open_ops: list[tuple[int, Tally]] = []
        self.ops_until = -1
        self.function: Node | None = None
        self.function_until = -1
        self.samples: dict[int, tuple[Node, Any, Any]] = {}

    def _end_of_thread(self) -> None:
        while self.calls:
            self._close_call()
        for node, first, last in self.samples.values():
            _note_stats(node, self.plane.stats_of(first))
            _note_stats(node, self.plane.stats_of(last))
        if len(self.waits):
            self.findings.waits.append(self.waits)

    def _choose(self, event: Any) -> Handler | None:
        """What to do with events of this name, judged by the name and the stats of the first."""
        name = self.plane.names.get(event.metadata_id)
        handler: Handler | None = None
        if name is None:
            handler = self._nameless
        elif name.startswith("Iterator::"):
            node = self.findings.pipeline.node(name)
            handler = partial(self._detail if is_detail(name) else self._call, node)
        elif WAIT.fullmatch(name):
            handler = self._wait
        elif name.startswith(_ASKS_FOR_FUNCTION):
            handler = self._asks_for_function
        elif name in _RUN_OF_FUNCTION:
            handler = self._runs_function
        elif name in ("MemoryAllocation", "MemoryDeallocation"):
            handler = self._memory
        elif self.step_stats and any(stat.metadata_id in self.step_stats for stat in event.stats):
            handler = partial(self._marker, name)
        elif match := _OP.fullmatch(name):
            handler = partial(self._op, self.findings.ops.setdefault(name, HostOp(match["name"], match["type"])))
        self.handlers[event.metadata_id] = handler
        return handler

    # ---- handlers ------------------------------------------------------------------------------------------------

    def _nameless(self, event: Any, start: int, end: int) -> None:
        self.findings.damaged += 1

    def _marker(self, name: str, event: Any, start: int, end: int) -> None:
        stats = self.plane.stats_of(event)
        number = stats.get("step_num")
        markers = self.findings.markers
        kind = markers.recognised if stats.get("_r") == 1 else markers.unrecognised
        kind.setdefault(name, []).append((start, end, number if isinstance(number, int) else None))

    def _wait(self, event: Any, start: int, end: int) -> None:
        self.waits.add(start, end)

    def _call(self, node: Node, event: Any, start: int, end: int) -> None:
        calls = self.calls
        while calls and calls[-1].end <= start:
            self._close_call()
        if calls:
            caller = calls[-1]
            caller.inner += end - start
            if node.parent is caller.node:
                caller.called += 1
        calls.append(_Call(node, start, end))
        node.count += 1
        node.total_ps += end - start
        spans = self.spans.get(node)
        if spans is None:
            spans = self.spans[node] = Intervals()
            node.calls.append(spans)
        spans.add(start, end)
        self._detail(node, event, start, end)

    def _detail(self, node: Node, event: Any, start: int, end: int) -> None:
        """Keeps the first and the last event of a name, whose stats are read at the end of the thread."""
        first = self.samples.get(event.metadata_id)
        self.samples[event.metadata_id] = (node, first[1] if first else event, event)

    def _close_call(self) -> None:
        call = self.calls.pop()
        node = call.node
        node.own_ps += max(0, call.end - call.start - call.inner)
        if call.called > 1:
            node.bursts.append((call.start, call.end))
            node.burst_calls += call.called
        if not self.calls:
            self.last_outermost = node

    def _asks_for_function(self, event: Any, start: int, end: int) -> None:
        """A function runs for the call that asks for it, or, on the thread of a parallel operator, for the caller of
        the iterator whose element was just fetched."""
        while self.calls and self.calls[-1].end <= start:
            self._close_call()
        node = self.calls[-1].node if self.calls else self.last_outermost and self.last_outermost.parent
        run = self._id(event)
        if node is not None and run is not None:
            self.functions[run] = node

    def _runs_function(self, event: Any, start: int, end: int) -> None:
        node = self.functions.get(self._id(event))
        if node is None:
            return
        self.function = node
        if end > self.function_until:
            node.work_ps += end - max(start, self.function_until)
            self.function_until = end
        if node not in self.work:
            self.work[node] = Intervals()
            node.work.append(self.work[node])
        self.work[node].add(start, end)

    def _op(self, op: HostOp, event: Any, start: int, end: int) -> None:
        node = self.function if start < self.function_until else self.elsewhere
        tally = op.in_model if node is None else op.in_stages.get(node)
        if tally is None:
            tally = op.in_stages[node] = Tally()
        open_ops = self.open_ops
        if start >= self.ops_until:
            open_ops.clear()
            self.ops_until = end
        else:
            while open_ops[-1][0] <= start:
                open_ops.pop()
            open_ops[-1][1].self_ps -= end - start
        open_ops.append((end, tally))
        tally.count += 1
        tally.self_ps += end - start

    def _memory(self, event: Any, start: int, end: int) -> None:
        stats = self.plane.stats_of(event)
        name, peak = stats.get("allocator_name"), stats.get("peak_bytes_in_use")
        if isinstance(name, str) and isinstance(peak, int):
            allocator = self.findings.allocators.setdefault(name, Allocator())
            allocator.peak = max(allocator.peak, peak)
            parts = [stats.get(part) for part in ("bytes_allocated", "bytes_available", "bytes_reserved")]
            allocator.limit = max(allocator.limit, sum(part for part in parts if isinstance(part, int)))

    def _id(self, event: Any) -> int | None:
        for stat in event.stats:
            if stat.metadata_id in self.id_stats:
                return stat.int64_value or stat.uint64_value
        return None


def _note_stats(node: Node, stats: dict[str, Any]) -> None:
    """Later values replace earlier ones, unless they say `unavailable`."""
    node.stats.update({name: value for name, value in stats.items() if value != "unavailable" and name != "id"})


def attribute_ops(ops: Iterable[HostOp]) -> None:
    """Hands each stage the ops that ran in its functions."""
    for op in ops:
        for node, tally in op.in_stages.items():
            kept = node.ops.setdefault(op.type, [0, 0])
            kept[0] += tally.count
            kept[1] += tally.self_ps
