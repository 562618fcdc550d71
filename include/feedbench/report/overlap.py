"""A few profiled steps of each variant over one another: what the model and the pipeline's stages did when."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from feedbench import units
from feedbench.records import Span, Timeline, TimelineStep, VariantResult
from feedbench.report.wording import IN_PICTURES, picture_name, shortened

MOST_LANES = 4
_LEGIBLE = 0.04
"""Of the axis, the narrowest bar that has room for its step's number."""
Bars = tuple[tuple[float, float], ...]
"""(start, width) each."""


@dataclass(frozen=True)
class TimelineRow:
    name: str
    numbers: str
    """Of the first and the last step, for those that have no room for a number of their own."""
    steps: Bars
    waits: Bars
    step_labels: tuple[tuple[float, str], ...]
    lanes: tuple[tuple[str, Bars], ...]
    waited_ms: float


@dataclass(frozen=True)
class Timelines:
    rows: tuple[TimelineRow, ...]
    end_ms: float
    are_the_same: bool
    """Whether the steps of all variants have the same numbers."""

    def in_words(self) -> str:
        return "; ".join(map(_in_words, self.rows)) + "."


def timelines(variants: Sequence[VariantResult]) -> Timelines | None:
    """Of every variant with a timeline the steps that all have, by number; each one's own where they share none."""
    seen = [(v, v.summary.timeline) for v in variants if v.summary and v.summary.timeline and v.summary.timeline.steps]
    if not seen:
        return None
    common = set.intersection(*({step.number for step in timeline.steps} for _, timeline in seen))
    chosen = [[s for s in timeline.steps if not common or s.number in common] for _, timeline in seen]
    end = max(steps[-1].end_ms - steps[0].start_ms for steps in chosen)
    rows = [_row(variant, timeline, steps, end) for (variant, timeline), steps in zip(seen, chosen, strict=True)]
    return Timelines(tuple(rows), end, bool(common) and len(rows) > 1)


def _row(variant: VariantResult, timeline: Timeline, steps: Sequence[TimelineStep], end_ms: float) -> TimelineRow:
    origin, last = steps[0].start_ms, steps[-1].end_ms
    labels = tuple(
        ((step.start_ms + step.end_ms) / 2 - origin, str(step.number))
        for step in steps
        if step.end_ms - step.start_ms > _LEGIBLE * end_ms
    )
    lanes = tuple(
        (shortened(lane, IN_PICTURES), _bars(spans, origin, last))
        for lane, spans in list(timeline.lanes.items())[:MOST_LANES]
    )
    waits = _bars((step.wait for step in steps if step.wait), origin, last)
    first, final = steps[0].number, steps[-1].number
    return TimelineRow(
        picture_name(variant),
        f"step {first}" if first == final else f"steps {first} to {final}",
        _bars((Span(start_ms=step.start_ms, end_ms=step.end_ms) for step in steps), origin, last),
        waits,
        labels,
        lanes,
        sum(width for _, width in waits),
    )


def _in_words(row: TimelineRow) -> str:
    start, width = row.steps[-1]
    lasted, waited = units.ms(start + width), units.ms(row.waited_ms)
    return f"{row.name}: {row.numbers} in {lasted} ms, of which {waited} ms waiting for input"


def _bars(spans: Iterable[Span], origin: float, last: float) -> Bars:
    """(start, width) of what lies between the first step's start and the last one's end."""
    clipped = ((max(span.start_ms, origin), min(span.end_ms, last)) for span in spans)
    return tuple((start - origin, end - start) for start, end in clipped if end > start)
