"""A few steps on one time axis: the model's lane, with its waits, over the lanes of the input pipeline.

The steps are the run of consecutive steps whose mean wait is nearest to the window's, so that the picture shows what
is usual. Bars nearer than a thousandth of the axis are joined: that is less than a screen pixel.
"""

import re
from collections.abc import Iterable, Sequence

from feedbench.records import Span, Timeline, TimelineStep
from feedbench.trace.intervals import Intervals, Spans, coalesced, difference, union
from feedbench.trace.stages import Node
from feedbench.trace.steps import Step
from feedbench.units import PS_PER_MS

STEPS = 8
_PIXEL_SHARE = 1 / 1000
_KINDS = (
    ("read", re.compile(r"ReadFile|TFRecord.*|.*Reader.*")),
    ("decode", re.compile(r"Decode.*|Parse.*")),
    ("resize", re.compile(r".*Resize.*")),
)


def timeline(steps: Sequence[Step], stages: Sequence[Node]) -> Timeline | None:
    """The timeline of `stages`, source to sink; None without steps."""
    if not steps:
        return None
    shown = _usual(steps)
    start, end = shown[0].start, shown[-1].end
    sources = [node.active for node in stages if not node.children]
    work = _clip([*(thread for node in stages for thread in node.work), *sources], start, end)
    calls = _clip((node.active for node in stages if not node.lets_others_work), start, end)
    lanes = {_work_name(stages): work, "shuffle, batch, cache": difference(calls, work)}
    pixel = int((end - start) * _PIXEL_SHARE)
    return Timeline(
        steps=tuple(_step(step, at, start) for at, step in enumerate(shown)),
        lanes={name: _bars(spans, start, pixel) for name, spans in lanes.items() if spans},
    )


def _usual(steps: Sequence[Step]) -> Sequence[Step]:
    if len(steps) <= STEPS:
        return steps
    waits = [step.waited or 0 for step in steps]
    usual = sum(waits) / len(waits) * STEPS
    first = min(range(len(steps) - STEPS + 1), key=lambda at: abs(sum(waits[at : at + STEPS]) - usual))
    return steps[first : first + STEPS]


def _clip(parts: Iterable[Intervals], start: int, end: int) -> Spans:
    return list(union(part.within(start, end) for part in parts))


def _work_name(stages: Sequence[Node]) -> str:
    kinds = {kind for node in stages for kind in node.ops}
    names = [name for name, pattern in _KINDS if any(pattern.fullmatch(kind) for kind in kinds)]
    return ", ".join(names) or "input functions"


def _step(step: Step, at: int, start: int) -> TimelineStep:
    waits = step.waits or []
    return TimelineStep(
        number=at if step.number is None else step.number,
        start_ms=(step.start - start) / PS_PER_MS,
        end_ms=(step.end - start) / PS_PER_MS,
        wait=_span(waits[0][0], waits[-1][1], start) if waits else None,
    )


def _bars(spans: Spans, start: int, pixel: int) -> tuple[Span, ...]:
    return tuple(_span(a, b, start) for a, b in coalesced(spans, pixel))


def _span(begin: int, end: int, start: int) -> Span:
    return Span(start_ms=(begin - start) / PS_PER_MS, end_ms=(end - start) / PS_PER_MS)
