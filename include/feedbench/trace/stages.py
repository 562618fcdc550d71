"""The tf.data operators of a capture as a tree: who calls whom, what each costs.

A call of an iterator is an event named by its way from the root: `Iterator::Root::BatchV2::ForeverRepeat[3]::Map`.
`[3]` counts passes, files or elements, which are added up; of a Zip and its like it is an input's place. An operator
that makes a dataset of each element has both: `FlatMap::TensorSlice` is its input, `FlatMap[3]::Map` is of an element.

What a stage costs (`self_ps`), summed over its calls:
- an operator that does its own work: duration less the calls of tf.data iterators within it on the same thread. A Map
  waits there for its function, whose ops run on pool threads, so the function is included.
- an operator that lets others work (`ParallelMapV2`, `MapAndBatch`, `ParallelInterleaveV4` ...): its calls are waits,
  so what counts is the time that its functions ran on pool threads, found by the id of each run.
- Prefetch: duration less the time in which the operator below was at work on its own thread.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from feedbench.records import Blocking, Stage, StageOp
from feedbench.trace.intervals import Intervals, Spans, intersection, length, union
from feedbench.units import PS_PER_MS

_ROOTS = ("Root", "Model")
_SEVERAL_INPUTS = ("Zip", "Concatenate", "DirectedInterleave")
"""DirectedInterleave is choose_from_datasets and sample_from_datasets; what it chooses by has no index."""
_EACH = "each"
"""In the place of an index that counts passes, files or elements."""
_COMPONENT = re.compile(r"(?P<operator>[^\[]+)(\[(?P<index>\d+)\])?")
PREFETCH = "Prefetch"
_OTHERS_WORK = re.compile(r"(Legacy)?Parallel|Prefetch$|MapAndBatch|NumaMapAndBatch")
_IMPLEMENTATION = "Impl"
"""MemoryCacheImpl and FileCacheImpl are details of MemoryCache and FileCache."""
_TYPE_BYTES = {
    **dict.fromkeys(("uint8", "int8", "bool"), 1),
    **dict.fromkeys(("half", "float16", "bfloat16", "int16", "uint16"), 2),
    **dict.fromkeys(("float", "float32", "int32", "uint32"), 4),
    **dict.fromkeys(("double", "float64", "int64", "uint64", "complex64"), 8),
}


@dataclass(eq=False)
class Node:
    """One operator, added up over its iterators and passes. Times in ps."""

    operator: str
    parent: "Node | None" = None
    which: str | None = None
    """Of its caller's inputs: a place, or _EACH."""
    children: dict[tuple[str | None, str], "Node"] = field(default_factory=dict)
    count: int = 0
    total_ps: int = 0
    own_ps: int = 0
    """Calls less tf.data calls within them on the same thread."""
    calls: list[Intervals] = field(default_factory=list)
    """One for each thread."""
    work: list[Intervals] = field(default_factory=list)
    """Runs of its functions on pool threads, one for each thread."""
    work_ps: int = 0
    ops: dict[str, list[int]] = field(default_factory=dict)
    """Ops inside its functions: [count, ps] by type."""
    bursts: list[tuple[int, int]] = field(default_factory=list)
    """Calls that called the operator below more than once, as a shuffle buffer does to fill."""
    burst_calls: int = 0
    stats: dict[str, Any] = field(default_factory=dict)
    active: Intervals = field(default_factory=Intervals)
    """When it was at work or waiting for what is below; filled by `settle`."""

    @property
    def lets_others_work(self) -> bool:
        return _OTHERS_WORK.match(self.operator) is not None

    @property
    def self_ps(self) -> int:
        if self.operator != PREFETCH:
            return self.work_ps if self.lets_others_work else self.own_ps
        waited = self.after_start_below(self.active)
        below = union(child.active for child in self.children.values())
        return length(waited) - length(intersection(waited, below))

    def after_start_below(self, spans: Iterable[tuple[int, int]]) -> Spans:
        """The part of `spans` of which it can be said whether what is below was at work.

        A Prefetch calls on another thread, and a call that was under way when the capture began is not recorded. What
        was waited for until the first recorded call is unknown.
        """
        first = min((child.active.starts[0] for child in self.children.values() if len(child.active)), default=0)
        return [(max(start, first), end) for start, end in spans if end > first]

    @property
    def inputs(self) -> list["Node"]:
        """What is below, the main input first. By structure, for times differ from round to round."""
        return sorted(self.children.values(), key=lambda node: (node.place, -node.total_ps))

    @property
    def place(self) -> tuple[int, int]:
        """Among the inputs of its caller: numbered ones, then others, then what is made of each element.

        A Generator is the exception. from_generator is a FlatMap that makes it of one dummy element, asked for once a
        pass.
        """
        if self.which == _EACH:
            return (0, 0) if self.operator == "Generator" else (3, 0)
        return (2, 0) if self.which is None else (1, int(self.which))

    def walk(self) -> Iterator["Node"]:
        """From the sources to the sink; of several inputs the main one last, next to its caller."""
        for child in reversed(self.inputs):
            yield from child.walk()
        yield self

    def ways(self) -> Iterator[tuple[str, ...]]:
        """The operators of every way from a source to this one, the main way first."""
        if not self.children:
            yield (self.operator,)
        for child in self.inputs:
            for way in child.ways():
                yield (*way, self.operator)

    def settle(self) -> None:
        """Joins the threads' calls into `active`, here and below.

        A call that was under way when the capture began or ended is not in it; that it was is known from the calls
        below it, before the first and after the last call that is. That holds only where caller and called share a
        thread: a Prefetch works while nobody waits for it.
        """
        for child in self.children.values():
            child.settle()
        self.active = union(self.calls)
        if not self.lets_others_work:
            self.active = union(
                [self.active, *(_outside(child.active, self.active) for child in self.children.values())]
            )


def _outside(below: Intervals, own: Intervals) -> list[tuple[int, int]]:
    if not len(own):
        return list(below)
    first, last = own.starts[0], own.ends[-1]
    return [span for span in below if span[1] <= first or span[0] >= last]


class Pipeline:
    """The tree of all tf.data calls of a capture, below one root."""

    def __init__(self) -> None:
        self.root = Node("Root")

    def node(self, path: str) -> Node:
        """The operator of an event's name, made when it is new."""
        node, index = self.root, None
        for place, part in enumerate(path.split("::")[1:]):
            match = _COMPONENT.match(part)
            operator = (match["operator"] if match else part).removesuffix(_IMPLEMENTATION)
            if not (place == 0 and operator in _ROOTS):
                which = index if index is None or node.operator in _SEVERAL_INPUTS else _EACH
                if (which, operator) not in node.children:
                    node.children[which, operator] = Node(operator, parent=node, which=which)
                node = node.children[which, operator]
            index = match["index"] if match else None
        return node

    def sink(self, waits: Intervals) -> Node | None:
        """The last operator of the pipeline that the steps waited on; of one that was called, where none waited."""
        tops = [node for node in self.root.children.values() if node.count or node.children]
        if not tops:
            return None
        return max(tops, key=lambda node: (length(intersection(node.active, waits)), node.total_ps))


def is_detail(path: str) -> bool:
    return path.endswith(_IMPLEMENTATION)


def chain(sink: Node) -> list[Node]:
    """From the source to the sink, by the main input where there are several."""
    nodes = [sink]
    while nodes[-1].children:
        nodes.append(nodes[-1].inputs[0])
    return nodes[::-1]


def where(node: Node, sink: Node) -> str | None:
    """In which input a stage below `sink` lies, in words; None for one on all ways, before which nothing branches."""
    trunk = [sink]
    while len(trunk[-1].children) == 1:
        trunk.extend(trunk[-1].inputs)
    if node in trunk:
        return None
    way, first = chain(node), node
    while first.parent not in trunk:
        first = first.parent
        way.append(first)
    return f"{_which_input(first)} ({' > '.join(stage.operator for stage in way)})"


def _which_input(node: Node) -> str:
    caller = node.parent.operator
    if node.which == _EACH:
        return f"what {caller} makes of each element"
    if node.which is not None:
        return f"input {int(node.which) + 1} of {caller}"
    return f"what {caller} chooses by" if caller in _SEVERAL_INPUTS else f"the input of {caller}"


def as_record(node: Node, blocking: Blocking | None, step_ms: float | None) -> Stage:
    stats = node.stats
    return Stage(
        name=stats["name"] if isinstance(stats.get("name"), str) and stats["name"] else node.operator,
        operator=node.operator,
        count=node.count,
        total_ms=node.total_ps / PS_PER_MS,
        self_ms=node.self_ps / PS_PER_MS,
        blocking_ms=blocking,
        share=blocking.mean / step_ms if blocking and step_ms else None,
        parallelism=_whole(stats.get("parallelism")),
        buffer=_whole(stats.get("buffer_size", stats.get("buffer_limit"))),
        buffered=_whole(stats.get("buffered_elements")),
        element_bytes=_element_bytes(stats.get("shapes"), stats.get("types")),
        ops=tuple(
            StageOp(type=kind, count=count, self_ms=ps / PS_PER_MS)
            for kind, (count, ps) in sorted(node.ops.items(), key=lambda item: -item[1][1])
        ),
    )


def _whole(value: Any) -> int | None:
    """A count from a stat; `unavailable`, and what is no count, is unknown."""
    try:
        return int(value) if int(value) >= 0 else None
    except (TypeError, ValueError):
        return None


def _element_bytes(shapes: Any, types: Any) -> int | None:
    """Bytes of one element from stats such as `[224,224,3] []` and `float int32`; None where a size is open."""
    if not isinstance(shapes, str) or not isinstance(types, str) or len(shapes.split()) != len(types.split()):
        return None
    total = 0
    for shape, kind in zip(shapes.split(), types.split(), strict=True):
        sizes = [size for size in shape.strip("[]").split(",") if size]
        if kind not in _TYPE_BYTES or not all(size.isdigit() for size in sizes):
            return None
        count = 1
        for size in sizes:
            count *= int(size)
        total += count * _TYPE_BYTES[kind]
    return total
