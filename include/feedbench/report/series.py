"""What the pictures show: numbers to draw, labels already written, and the same in words for who cannot see them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from feedbench import units
from feedbench.records import Comparison, VariantResult, WhatIf
from feedbench.report.nights import NightByNight
from feedbench.report.overlap import Timelines, timelines
from feedbench.report.wording import IN_PICTURES, interval_times, picture_name, round_shown, shortened

MOST_POINTS = 300
MOST_PASS_MARKS = 40


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


def _step_parts(comparison: Comparison, measured: Sequence[VariantResult]) -> Picture:
    parts = [_parts(variant, comparison.ceiling_ms) for variant in measured]
    names = tuple(map(picture_name, measured))
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
        "Mean step time by part. The model's is the ceiling, its step by itself. Waiting for input is what the profile "
        "saw, but at most what the step takes beyond the ceiling. The rest is input work that takes cores from the "
        "model, and overhead."
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
    """Model, input wait, rest in ms. They add up to the step time even where the two witnesses disagree.

    The ceiling was measured with no profiler on, so that it is the wait that gives way.
    """
    assert variant.step_time_ms
    total = variant.step_time_ms.mean
    model = min(ceiling_ms or 0.0, total)
    wait = min(total * (variant.input_wait_share or 0.0), total - model)
    return model, wait, total - wait - model


def _speed_ups(comparison: Comparison, measured: Sequence[VariantResult]) -> Picture | None:
    compared = [(variant, variant.speedup) for variant in measured if variant.speedup]
    if not compared:
        return None
    baseline = shortened(comparison.baseline, IN_PICTURES)
    labels = tuple(f"{units.times(speedup.value)} {interval_times(speedup)}" for _, speedup in compared)
    names = tuple(picture_name(variant) for variant, _ in compared)
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
        f"{picture_name(variant)} from {units.ms(min(times))} to {units.ms(max(times))} ms"
        for variant in measured
        if (times := variant.step_times_ms)
    ]
    return Picture(
        "step-times",
        "Step by step",
        "Every measured step of one round each, the one of median step time; dotted lines open a new pass over the "
        "photos, where a shuffle buffer drains and fills again.",
        "Step times over the step number: " + "; ".join(words) + ".",
        StepTimes(panels),
    )


def _panel(variant: VariantResult, steps_per_pass: int | None) -> StepPanel:
    first = variant.first_measured_step or 0
    numbers = range(first, first + len(variant.step_times_ms))
    starts = tuple(n for n in numbers if n % steps_per_pass == 0) if steps_per_pass else ()
    kept = thinned(variant.step_times_ms, MOST_POINTS)
    return StepPanel(
        f"{picture_name(variant)}\n{_means(variant)}",
        tuple(first + i for i in kept),
        tuple(variant.step_times_ms[i] for i in kept),
        starts if len(starts) <= MOST_PASS_MARKS else (),
    )


def _means(variant: VariantResult) -> str:
    mean = f"{units.ms(sum(variant.step_times_ms) / len(variant.step_times_ms))} ms"
    shown = round_shown(variant)
    if not shown or variant.step_time_ms is None or len(variant.round_means_ms) == 1:
        return f"mean {mean}"
    return f"{shown}: mean {mean} (of all rounds {units.ms(variant.step_time_ms.mean)} ms)"


def thinned(values: Sequence[float], most: int) -> list[int]:
    """Positions of at most `most` values that keep every bucket's smallest and largest: spikes are the message."""
    if len(values) <= most:
        return list(range(len(values)))
    width = math.ceil(len(values) / (most // 2))
    buckets = (range(start, min(start + width, len(values))) for start in range(0, len(values), width))
    return sorted({pick(bucket, key=values.__getitem__) for bucket in map(list, buckets) for pick in (min, max)})


_SHARED = (
    " Here the model runs on the CPU and shares its cores with the input work: the curves hold for an accelerator of "
    "its own only."
)


def _what_if(comparison: Comparison, measured: Sequence[VariantResult]) -> Picture | None:
    known = [(variant, variant.what_if) for variant in measured if variant.what_if]
    if not known:
        return None
    known.sort(key=lambda pair: pair[1].keeps_up_from_ms, reverse=True)
    start = min(min(curve.accelerator_step_ms[0], 0.7 * curve.keeps_up_from_ms) for _, curve in known)
    curves = tuple(_curve(variant, curve, comparison.batch_size, start) for variant, curve in known)
    here = comparison.ceiling_ms or (comparison.accelerator and comparison.accelerator.step_ms)
    return Picture(
        "what-if",
        "Which accelerator could each pipeline feed?",
        "Photos a second against the accelerator's own step time. Right of its dot a pipeline keeps the accelerator "
        "at least 90 % busy; left of it a faster accelerator is bought in vain."
        + (_SHARED if comparison.accelerator and comparison.accelerator.kind == "cpu" else ""),
        "Shortest accelerator step that each pipeline still feeds at 90 % utilisation: "
        + "; ".join(curve.label for curve in curves)
        + ".",
        WhatIfCurves(curves, comparison.batch_size, here, f"this accelerator: {units.ms(here)} ms" if here else ""),
    )


def _curve(variant: VariantResult, curve: WhatIf, batch_size: int, start_ms: float) -> WhatIfCurve:
    """The curve drawn from `start_ms` on, so that no dot lies outside of the picture."""
    steps, rates, dot = curve.accelerator_step_ms, curve.photos_per_s, curve.keeps_up_from_ms
    here = [ms for ms in sorted({start_ms, dot}) if ms < steps[0]]
    before = [batch_size * 1000 / _fed_step_ms(ms, dot, steps[0], batch_size * 1000 / rates[0]) for ms in here]
    label = f"{picture_name(variant)}, from {units.ms(dot)} ms"
    return WhatIfCurve(label, (*here, *steps), (*before, *rates), dot)


def _fed_step_ms(ms: float, dot_ms: float, first_ms: float, first_step_ms: float) -> float:
    """Step time behind an accelerator of `ms`; ahead of it, input is what keeps nine tenths of it busy, else a ninth.

    Which of both holds shows in the curve's first step.
    """
    ahead_ms, in_turn_ms = dot_ms / 0.9, dot_ms / 9
    in_turn = abs(first_step_ms - (first_ms + in_turn_ms)) < abs(first_step_ms - max(first_ms, ahead_ms))
    return ms + in_turn_ms if in_turn else max(ms, ahead_ms)


def _timelines(measured: Sequence[VariantResult]) -> Picture | None:
    drawn = timelines(measured)
    if drawn is None:
        return None
    which = "The same few profiled steps" if drawn.are_the_same else "A few profiled steps"
    return Picture(
        "timelines",
        "Does input overlap with the model?",
        f"{which} of each variant on one time axis: the model above, the pipeline's stages below it. Where both lanes "
        "are filled at the same time, input work is hidden behind the model.",
        drawn.in_words(),
        drawn,
    )
