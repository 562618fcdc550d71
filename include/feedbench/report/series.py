"""What the pictures show: numbers to draw, labels already written, and the same in words for who cannot see them."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from feedbench import units
from feedbench.records import Comparison, Span, Timeline, VariantResult
from feedbench.report.nights import NightByNight
from feedbench.report.wording import interval_times, shortened

NAME_LENGTH = 26
MOST_POINTS = 300
MOST_LANES = 4
MOST_PASS_MARKS = 40
Bars = tuple[tuple[float, float], ...]
"""(start, width) each."""


@dataclass(frozen=True)
class StepParts:
    """One stacked bar a variant; the parts add up to its step time. A part that was not measured is 0 for all."""

    names: tuple[str, ...]
    model_ms: tuple[float, ...]
    wait_ms: tuple[float, ...]
    rest_ms: tuple[float, ...]
    totals: tuple[str, ...]
    ceiling_ms: float | None
    rest_label: str


@dataclass(frozen=True)
class SpeedUps:
    names: tuple[str, ...]
    values: tuple[float, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]
    labels: tuple[str, ...]
    marked: tuple[bool, ...]
    baseline: str


@dataclass(frozen=True)
class StepPanel:
    title: str
    numbers: tuple[int, ...]
    times_ms: tuple[float, ...]
    pass_starts: tuple[int, ...]
    """Numbers of the steps that open a pass over the photos."""


@dataclass(frozen=True)
class StepTimes:
    panels: tuple[StepPanel, ...]


@dataclass(frozen=True)
class WhatIfCurve:
    label: str
    accelerator_step_ms: tuple[float, ...]
    photos_per_s: tuple[float, ...]
    keeps_up_from_ms: float


@dataclass(frozen=True)
class WhatIfCurves:
    curves: tuple[WhatIfCurve, ...]
    batch_size: int
    accelerator_ms: float | None
    accelerator_label: str


@dataclass(frozen=True)
class TimelineRow:
    name: str
    steps: Bars
    waits: Bars
    step_labels: tuple[tuple[float, str], ...]
    lanes: tuple[tuple[str, Bars], ...]


@dataclass(frozen=True)
class Timelines:
    rows: tuple[TimelineRow, ...]
    end_ms: float


Series = StepParts | SpeedUps | StepTimes | WhatIfCurves | Timelines | NightByNight


@dataclass(frozen=True)
class Picture:
    anchor: str
    title: str
    caption: str
    alternative: str
    """The picture in words."""
    series: Series


def pictures(comparison: Comparison, variants: Sequence[VariantResult]) -> tuple[Picture, ...]:
    """The pictures for which something was measured; `variants` in the order of the page."""
    measured = [variant for variant in variants if variant.status == "ok" and variant.step_time_ms]
    if not measured:
        return ()
    made = (
        _timelines(measured),
        _step_parts(comparison, measured),
        _speed_ups(comparison, measured),
        _step_times(comparison, measured),
        _what_if(comparison, measured),
    )
    return tuple(picture for picture in made if picture is not None)


def _name(variant: VariantResult) -> str:
    return shortened(variant.name, NAME_LENGTH)


def _step_parts(comparison: Comparison, measured: Sequence[VariantResult]) -> Picture:
    parts = [_parts(variant, comparison.ceiling_ms) for variant in measured]
    names = tuple(map(_name, measured))
    model, wait, rest = (tuple(column) for column in zip(*parts, strict=True))
    ceiling = comparison.ceiling_ms
    words = [
        f"{name} {units.ms(sum(part))} ms: "
        + (f"{units.ms(part[0])} model, " if ceiling else "")
        + f"{units.ms(part[1])} waiting for input, {units.ms(part[2])} rest"
        for name, part in zip(names, parts, strict=True)
    ]
    return Picture(
        "step-parts",
        "Where a step's time goes",
        "Mean step time by part. What is neither the model by itself (ceiling) nor waiting for input is rest: "
        "input work that takes cores from the model, and overhead."
        if ceiling
        else "Mean step time by part. Without a ceiling trial the model's own time cannot be told from the rest.",
        "; ".join(words) + ".",
        StepParts(
            names,
            model,
            wait,
            rest,
            tuple(f"{units.ms(sum(part))} ms" for part in parts),
            ceiling,
            "rest" if ceiling else "model and rest",
        ),
    )


def _parts(variant: VariantResult, ceiling_ms: float | None) -> tuple[float, float, float]:
    """Model, input wait, rest in ms. They add up to the step time even where the two witnesses disagree."""
    assert variant.step_time_ms
    total = variant.step_time_ms.mean
    wait = total * min(variant.input_wait_share or 0.0, 1.0)
    model = min(ceiling_ms or 0.0, total - wait)
    return model, wait, total - wait - model


def _speed_ups(comparison: Comparison, measured: Sequence[VariantResult]) -> Picture | None:
    compared = [(variant, variant.speedup) for variant in measured if variant.speedup]
    if not compared:
        return None
    baseline = shortened(comparison.baseline, NAME_LENGTH)
    labels = tuple(f"{units.times(speedup.value)} {interval_times(speedup)}" for _, speedup in compared)
    names = tuple(_name(variant) for variant, _ in compared)
    return Picture(
        "speed-ups",
        f"Speed-up over {baseline}",
        "Whiskers are 95 % intervals that hold for all variants together; one that crosses the line at 1 is no "
        "proven difference. ★ marks the variants that cannot be told apart from the fastest.",
        "; ".join(f"{name} {label}" for name, label in zip(names, labels, strict=True)) + ".",
        SpeedUps(
            names,
            tuple(speedup.value for _, speedup in compared),
            tuple(speedup.ci_low for _, speedup in compared),
            tuple(speedup.ci_high for _, speedup in compared),
            labels,
            tuple(variant.name in comparison.fastest for variant, _ in compared),
            baseline,
        ),
    )


def _step_times(comparison: Comparison, measured: Sequence[VariantResult]) -> Picture | None:
    panels = tuple(_panel(variant, comparison.steps_per_pass) for variant in measured if variant.step_times_ms)
    if not panels:
        return None
    words = [
        f"{_name(variant)} from {units.ms(min(variant.step_times_ms))} to {units.ms(max(variant.step_times_ms))} ms"
        for variant in measured
        if variant.step_times_ms
    ]
    return Picture(
        "step-times",
        "Step by step",
        "Every measured step of the median round; dotted lines open a new pass over the photos, where a shuffle "
        "buffer drains and fills again.",
        "Step times over the step number: " + "; ".join(words) + ".",
        StepTimes(panels),
    )


def _panel(variant: VariantResult, steps_per_pass: int | None) -> StepPanel:
    first = variant.first_measured_step or 0
    numbers = range(first, first + len(variant.step_times_ms))
    starts = tuple(n for n in numbers if n % steps_per_pass == 0) if steps_per_pass else ()
    kept = thinned(variant.step_times_ms, MOST_POINTS)
    mean = sum(variant.step_times_ms) / len(variant.step_times_ms)
    return StepPanel(
        f"{_name(variant)}, mean {units.ms(mean)} ms",
        tuple(first + i for i in kept),
        tuple(variant.step_times_ms[i] for i in kept),
        starts if len(starts) <= MOST_PASS_MARKS else (),
    )


def thinned(values: Sequence[float], most: int) -> list[int]:
    """Positions of at most `most` values that keep every bucket's smallest and largest: spikes are the message."""
    if len(values) <= most:
        return list(range(len(values)))
    width = math.ceil(len(values) / (most // 2))
    buckets = (range(start, min(start + width, len(values))) for start in range(0, len(values), width))
    return sorted({pick(bucket, key=values.__getitem__) for bucket in map(list, buckets) for pick in (min, max)})


def _what_if(comparison: Comparison, measured: Sequence[VariantResult]) -> Picture | None:
    known = [(variant, variant.what_if) for variant in measured if variant.what_if]
    if not known:
        return None
    curves = tuple(
        WhatIfCurve(
            f"{_name(variant)}, from {units.ms(curve.keeps_up_from_ms)} ms",
            curve.accelerator_step_ms,
            curve.photos_per_s,
            curve.keeps_up_from_ms,
        )
        for variant, curve in sorted(known, key=lambda pair: pair[1].keeps_up_from_ms, reverse=True)
    )
    here = comparison.ceiling_ms or (comparison.accelerator and comparison.accelerator.step_ms)
    return Picture(
        "what-if",
        "Which accelerator could each pipeline feed?",
        "Photos a second against the accelerator's own step time. Right of its dot a pipeline keeps the accelerator "
        "at least 90 % busy; left of it a faster accelerator is bought in vain.",
        "Shortest accelerator step that each pipeline still feeds at 90 % utilisation: "
        + "; ".join(curve.label for curve in curves)
        + ".",
        WhatIfCurves(curves, comparison.batch_size, here, f"this accelerator: {units.ms(here)} ms" if here else ""),
    )


def _timelines(measured: Sequence[VariantResult]) -> Picture | None:
    drawn = [
        (variant, variant.summary.timeline)
        for variant in measured
        if variant.summary and variant.summary.timeline and variant.summary.timeline.steps
    ]
    if not drawn:
        return None
    end = max(timeline.steps[-1].end_ms - timeline.steps[0].start_ms for _, timeline in drawn)
    return Picture(
        "timelines",
        "Does input overlap with the model?",
        "The same few profiled steps of each variant on one time axis: the model above, the pipeline's stages below "
        "it. Where both lanes are filled at the same time, input work is hidden behind the model.",
        "; ".join(f"{_name(variant)}: {_in_words(timeline)}" for variant, timeline in drawn) + ".",
        Timelines(tuple(_timeline_row(variant, timeline, end) for variant, timeline in drawn), end),
    )


def _in_words(timeline: Timeline) -> str:
    waited = sum(step.wait.end_ms - step.wait.start_ms for step in timeline.steps if step.wait)
    lasted = timeline.steps[-1].end_ms - timeline.steps[0].start_ms
    return f"{len(timeline.steps)} steps in {units.ms(lasted)} ms, of which {units.ms(waited)} ms waiting for input"


def _timeline_row(variant: VariantResult, timeline: Timeline, end_ms: float) -> TimelineRow:
    origin, last = timeline.steps[0].start_ms, timeline.steps[-1].end_ms
    steps = [Span(start_ms=step.start_ms, end_ms=step.end_ms) for step in timeline.steps]
    labels = tuple(
        ((step.start_ms + step.end_ms) / 2 - origin, str(step.number))
        for step in timeline.steps
        if step.end_ms - step.start_ms > 0.04 * end_ms  # narrower bars have no room for a number
    )
    lanes = tuple(
        (shortened(lane, NAME_LENGTH), _bars(spans, origin, last))
        for lane, spans in list(timeline.lanes.items())[:MOST_LANES]
    )
    waits = _bars((step.wait for step in timeline.steps if step.wait), origin, last)
    return TimelineRow(_name(variant), _bars(steps, origin, last), waits, labels, lanes)


def _bars(spans: Iterable[Span], origin: float, last: float) -> Bars:
    """(start, width) of what lies between the first step's start and the last one's end."""
    clipped = ((max(span.start_ms, origin), min(span.end_ms, last)) for span in spans)
    return tuple((start - origin, end - start) for start, end in clipped if end > start)
