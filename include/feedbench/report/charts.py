"""One function a picture: chart series in, an inline SVG out. Figures are made without pyplot and its global state."""

import math
import warnings
from collections.abc import Iterator, Sequence
from functools import singledispatch
from itertools import cycle

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from feedbench.report.nights import NightByNight
from feedbench.report.overlap import TimelineRow, Timelines
from feedbench.report.series import (
    Picture,
    Series,
    SpeedUps,
    StepPanel,
    StepParts,
    StepTimes,
    WhatIfCurves,
)
from feedbench.report.svg import COLOUR, SERIES_COLOURS, STYLE, inline_svg

WIDTH = 900
"""Units of all pictures; a unit is a CSS pixel at the width for which they are drawn."""
NAMES = 190
"""Room for variant names, left of the axes."""
BAR_ROW, LANE, HEADING = 30, 17, 22
_UNITS_PER_INCH = 72
MARK = "machine, software or code changed"


def draw(picture: Picture) -> str:
    """The picture as `<svg>` text, the same bytes for the same series whatever the user's matplotlib settings."""
    with style.context(["default", STYLE | {"svg.hashsalt": picture.anchor}]), warnings.catch_warnings():
        # matplotlib only measures the text; the reader's own fonts draw it, and they may well have the glyph.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        return inline_svg(_figure(picture.series), picture.anchor, picture.title, picture.alternative)


@singledispatch
def _figure(series: Series) -> Figure:
    raise TypeError(f"no picture for {type(series).__name__}")


def _canvas(height: float) -> Figure:
    return Figure(figsize=(WIDTH / _UNITS_PER_INCH, height / _UNITS_PER_INCH))


def _axes(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes at a place in units, measured from the top left corner."""
    total = figure.get_figheight() * _UNITS_PER_INCH
    return figure.add_axes((left / WIDTH, 1 - (top + height) / total, width / WIDTH, height / total))


def _named_rows(axes: Axes, names: Sequence[str]) -> range:
    """One row a variant, the first on top."""
    places = range(len(names))
    axes.set_yticks(places, names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(False, axis="y")
    return places


# ---- bars and whiskers ---------------------------------------------------------------------------------------------


@_figure.register
def _step_parts(series: StepParts) -> Figure:
    height = BAR_ROW * len(series.names)
    figure = _canvas(height + 80)
    axes = _axes(figure, NAMES, 28, WIDTH - NAMES - 90, height)
    rows = _named_rows(axes, series.names)
    left = [0.0] * len(series.names)
    parts = (("model (ceiling)", "model", series.model_ms), ("waiting for input", "wait", series.wait_ms))
    for label, role, widths in (*parts, (series.rest_label, "rest", series.rest_ms)):
        if any(widths):
            axes.barh(rows, widths, left=left, height=0.68, color=COLOUR[role], label=label)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    for row, end, total in zip(rows, left, series.totals, strict=True):
        axes.annotate(total, (end, row), (6, 0), textcoords="offset points", va="center")
    if series.ceiling_ms:
        axes.axvline(series.ceiling_ms, color=COLOUR["ink"], linewidth=1, linestyle=(0, (4, 3)))
    axes.set_xlabel("ms a step")
    _legend_above(figure, axes)
    return figure


@_figure.register
def _speed_ups(series: SpeedUps) -> Figure:
    height = BAR_ROW * len(series.names)
    figure = _canvas(height + 56)
    axes = _axes(figure, NAMES, 4, WIDTH - NAMES - 180, height)
    names = [f"★ {name}" if marked else name for name, marked in zip(series.names, series.marked, strict=True)]
    rows = _named_rows(axes, names)
    axes.axvline(1, color=COLOUR["ink"], linewidth=1.2)
    axes.hlines(rows, series.lows, series.highs, color=COLOUR["model"], linewidth=2)
    for ends in (series.lows, series.highs):
        axes.plot(ends, rows, linestyle="", marker="|", markersize=10, markeredgewidth=2, color=COLOUR["model"])
    axes.plot(series.values, rows, linestyle="", marker="o", markersize=7, color=COLOUR["model"])
    _ratio_axis(axes, [1.0, *series.lows, *series.highs])
    for row, label in zip(rows, series.labels, strict=True):
        axes.annotate(label, (1, row), (10, 0), axes.get_yaxis_transform(), "offset points", va="center")
    axes.set_xlabel(f"times as fast as {series.baseline}")
    return figure


def _ratio_axis(axes: Axes, values: Sequence[float]) -> None:
    """Logarithmic, so that twice and half as fast lie equally far from 1."""
    positive = [value for value in values if value > 0]
    room = max((max(positive) / min(positive)) ** 0.06, 1.005)
    low, high = min(positive) / room, max(positive) * room
    axes.set(xscale="log", xlim=(low, high))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(ratio_ticks(low, high))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))


def ratio_ticks(low: float, high: float) -> list[float]:
    """Round ratios between the two, four or more, and the rounder the wider the range is."""
    for digits in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        ticks = [float(f"{digit}e{decade}") for decade in decades for digit in digits]
        if len(found := [tick for tick in ticks if low <= tick <= high]) > 3:
            return found
    return [float(tick) for tick in MaxNLocator(6).tick_values(low, high) if low <= tick <= high]


def _legend_above(figure: Figure, axes: Axes, handles: Sequence[Patch] | None = None) -> None:
    top = figure.get_figheight() * _UNITS_PER_INCH
    found, labels = axes.get_legend_handles_labels()
    handles = handles or found
    place = (NAMES / WIDTH, 1 - 4 / top)
    names = [patch.get_label() for patch in handles] if handles is not found else labels
    figure.legend(handles, names, loc="upper left", bbox_to_anchor=place, ncols=len(handles))


# ---- step by step --------------------------------------------------------------------------------------------------


@_figure.register
def _step_times(series: StepTimes) -> Figure:
    columns, panel_height, gap, left = 2, 92, 78, 44
    rows = -(-len(series.panels) // columns)
    figure = _canvas(rows * (panel_height + gap) + 10)
    width = (WIDTH - columns * left - 20) / columns
    highest = max(max(panel.times_ms) for panel in series.panels)
    for place, panel in enumerate(series.panels):
        row, column = divmod(place, columns)
        x, y = left + column * (width + left + 12), 40 + row * (panel_height + gap)
        _panel(_axes(figure, x, y, width, panel_height), panel, highest)
    return figure


def _panel(axes: Axes, panel: StepPanel, highest: float) -> None:
    for number in panel.pass_starts:
        axes.axvline(number - 0.5, color=COLOUR["muted"], linewidth=1, linestyle=":")
    dots = "o" if len(panel.numbers) <= 60 else ""
    axes.plot(panel.numbers, panel.times_ms, color=COLOUR["model"], linewidth=1.4, marker=dots, markersize=3)
    axes.set_ylim(0, highest * 1.05)
    axes.set_title(panel.title)
    axes.set_xlabel("step")
    axes.set_ylabel("ms")
    axes.grid(False, axis="x")
    axes.locator_params(axis="y", nbins=4)
    axes.xaxis.get_major_locator().set_params(integer=True)


# ---- what if -------------------------------------------------------------------------------------------------------


def _pens() -> Iterator[tuple[str, str | tuple[int, tuple[int, ...]]]]:
    """Colour and dash of each curve: no two of the first twenty-four are alike."""
    dashes = ("-", (0, (6, 2)), (0, (2, 2)))
    return cycle([(COLOUR[f"series-{n}"], dash) for dash in dashes for n in range(1, SERIES_COLOURS + 1)])


@_figure.register
def _what_if(series: WhatIfCurves) -> Figure:
    height = max(320, 22 * (len(series.curves) + 1))
    figure = _canvas(height + 76)
    axes = _axes(figure, 64, 22, WIDTH - 64 - 300, height)
    for curve, (colour, dash) in zip(series.curves, _pens(), strict=False):
        steps, rates = curve.accelerator_step_ms, curve.photos_per_s
        axes.plot(steps, rates, color=colour, linestyle=dash, linewidth=1.8, label=curve.label)
        if steps[0] <= curve.keeps_up_from_ms <= steps[-1]:
            at = _between(steps, rates, curve.keeps_up_from_ms)
            axes.plot([curve.keeps_up_from_ms], [at], marker="o", markersize=6, color=colour)
    highest = max(max(curve.photos_per_s) for curve in series.curves)
    lowest = min(min(curve.photos_per_s) for curve in series.curves)
    steps = series.curves[0].accelerator_step_ms
    # A straight line on these axes, which no pipeline can exceed: a broad band below the curves that run along it.
    ends = (steps[0], steps[-1])
    alone = [series.batch_size * 1000 / step for step in ends]
    axes.plot(ends, alone, color=COLOUR["rest"], linewidth=8, zorder=1.5, label="accelerator alone")
    axes.set(xscale="log", yscale="log", xlim=(steps[0], steps[-1]), ylim=(lowest * 0.8, highest * 1.6))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axis.set_minor_locator(NullLocator())
    if series.accelerator_ms:
        axes.axvline(series.accelerator_ms, color=COLOUR["ink"], linewidth=1, linestyle=(0, (4, 3)))
        top = (series.accelerator_ms, 1)
        axes.annotate(series.accelerator_label, top, (0, 6), axes.get_xaxis_transform(), "offset points", ha="center")
    axes.set_xlabel("accelerator's own step time, ms")
    axes.set_ylabel("photos/s")
    axes.legend(loc="upper left", bbox_to_anchor=(1.03, 1), handlelength=2.4)
    return figure


def _between(xs: Sequence[float], ys: Sequence[float], x: float) -> float:
    """Height of the drawn curve at x, straight between its points."""
    after = next(place for place, value in enumerate(xs) if value >= x)
    if after == 0:
        return ys[0]
    part = (x - xs[after - 1]) / (xs[after] - xs[after - 1])
    return ys[after - 1] + part * (ys[after] - ys[after - 1])


# ---- timelines -----------------------------------------------------------------------------------------------------


@_figure.register
def _timelines(series: Timelines) -> Figure:
    heights = [HEADING + LANE * (2 + len(row.lanes)) for row in series.rows]
    total = sum(heights)
    figure = _canvas(total + 76)
    axes = _axes(figure, NAMES, 28, WIDTH - NAMES - 14, total)
    axes.set_xlim(0, series.end_ms)
    axes.set_ylim(total, 0)
    axes.grid(False, axis="y")
    ticks = [tick for top, row in zip(_tops(heights), series.rows, strict=True) for tick in _timeline(axes, top, row)]
    axes.set_yticks([place for place, _ in ticks], [name for _, name in ticks])
    axes.set_xlabel("ms from the start of the first step shown")
    legend = (("model step", "model"), ("waiting for input", "wait"), ("input pipeline at work", "input"))
    _legend_above(figure, axes, [Patch(color=COLOUR[role], label=label) for label, role in legend])
    return figure


def _tops(heights: Sequence[float]) -> list[float]:
    return [sum(heights[:place]) for place in range(len(heights))]


def _timeline(axes: Axes, top: float, row: TimelineRow) -> list[tuple[float, str]]:
    """One variant: heading, model lane of double height, a lane for each stage. Returns the lanes' places and names."""
    heading = (0, top + HEADING - 4)
    axes.annotate(row.name, heading, (4 - NAMES, 0), textcoords="offset points", weight="bold", annotation_clip=False)
    axes.annotate(row.numbers, heading, (2, 0), textcoords="offset points", color=COLOUR["muted"], size=11)
    axes.axhline(top + HEADING - 18, xmin=-NAMES / (WIDTH - NAMES - 14), color=COLOUR["grid"], clip_on=False)
    model = top + HEADING
    axes.broken_barh(row.steps, (model, 2 * LANE - 5), color=COLOUR["model"], edgecolor=COLOUR["band"], linewidth=1)
    axes.broken_barh(row.waits, (model, 2 * LANE - 5), color=COLOUR["wait"], linewidth=0)
    for x, number in row.step_labels:
        axes.text(x, model + LANE - 2, number, color=COLOUR["on-bar"], ha="center", va="center", size=11)
    ticks = [(model + LANE - 2, "model")]
    for place, (name, bars) in enumerate(row.lanes):
        y = model + LANE * (2 + place)
        axes.axhspan(y + 1, y + LANE - 4, color=COLOUR["band"], linewidth=0, zorder=0)
        axes.broken_barh(bars, (y + 1, LANE - 5), color=COLOUR["input"], linewidth=0)
        ticks.append((y + LANE / 2 - 1, name))
    return ticks


# ---- night by night ------------------------------------------------------------------------------------------------


@_figure.register
def _night_by_night(series: NightByNight) -> Figure:
    figure, nights = _canvas(350), range(len(series.dates))
    axes = _axes(figure, 64, 34, WIDTH - 64 - 20, 250)
    axes.fill_between(nights, series.low_ms, series.high_ms, color=COLOUR["grid"], label="95 % within the night")
    dots = "o" if len(nights) <= 90 else ""
    axes.plot(
        nights, series.step_ms, color=COLOUR["model"], linewidth=1.2, marker=dots, markersize=3, label="step time"
    )
    for level in series.levels:
        label = "level" if level is series.levels[0] else None
        axes.hlines(level.median_ms, level.first - 0.5, level.last + 0.5, color=COLOUR["ink"], label=label)
        if level.first:
            axes.axvline(level.first - 0.5, color=COLOUR["muted"], linewidth=1, linestyle=(0, (4, 3)))
        if level.last - level.first >= 0.08 * len(nights):  # else there is no room; the table has it
            text = level.label if level.first else f"level {level.label}"
            axes.annotate(text, (level.first, 1), (4, 4), axes.get_xaxis_transform(), "offset points")
    if series.marks:
        place = axes.get_xaxis_transform()
        axes.plot(series.marks, [0.02] * len(series.marks), "^", transform=place, color=COLOUR["wait"], label=MARK)
    axes.set_xlim(-0.5, max(len(nights) - 0.5, 1))
    middle = sum(series.step_ms) / len(nights)
    axes.set_ylim(min(*series.low_ms, 0.95 * middle), max(*series.high_ms, 1.05 * middle))
    axes.grid(False, axis="x")
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda at, _: series.dates[int(at)] if 0 <= at < len(nights) else ""))
    axes.set_ylabel("ms a step")
    figure.legend(loc="lower left", bbox_to_anchor=(64 / WIDTH, 10 / 350), ncols=4)
    return figure
