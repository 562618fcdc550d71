"""The pages about many nights: every variant's series in a line, and one series as a picture with all its nights."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from threading import Lock, Thread
from typing import TYPE_CHECKING

from feedbench.history.nights import RECALLED, History
from feedbench.history.trend import Point, Trend, Trends
from feedbench.store import Store
from feedbench.units import count, ms, share

if TYPE_CHECKING:
    from feedbench.report.series import Picture

SPARK_NIGHTS = 60
SPARK_WIDTH, SPARK_HEIGHT = 150, 28
_FLAT = 0.04
"""Share of the step time that a sparkline is high at least: noise of a per cent must not look like mountains."""
_DRAWING = Lock()
"""matplotlib's settings are the process's own, and pages are drawn in threads."""


@dataclass(frozen=True)
class Line:
    """One variant's series in the overview."""

    variant: str
    series: str
    nights: int
    spark: str
    """Points of an SVG polyline, SPARK_WIDTH by SPARK_HEIGHT."""
    spark_words: str
    last_ms: str
    told: str
    tone: str
    last: Point


@dataclass(frozen=True)
class Group:
    """Series that differ in nothing but the variant and its steps."""

    title: str
    conditions: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class NightRow:
    point: Point
    step_ms: str
    told: str
    tone: str
    new_level: bool


@dataclass(frozen=True)
class TrendPage:
    trend: Trend
    picture: str
    title: str
    conditions: str
    rows: tuple[NightRow, ...]
    """Newest first."""


def overview(store: Store) -> tuple[Group, ...]:
    """The series that had a night lately, those of the newest run first."""
    Thread(target=_import_drawing, daemon=True).start()  # while the reader chooses a trend to look at
    groups: dict[tuple[str, str], list[Line]] = {}
    for trend in Trends(History(store).latest(RECALLED)).all():
        groups.setdefault((trend.title, trend.in_common), []).append(_line(trend))
    return tuple(
        Group(title, conditions, tuple(sorted(lines, key=lambda line: -line.last.step_time_ms)))
        for (title, conditions), lines in groups.items()
    )


def trend_page(store: Store, series: str) -> TrendPage | None:
    """None when no finished run is of this series."""
    trend = next(Trends(History(store).of_series(series)).all(), None)
    if trend is None:
        return None
    levels = trend.levels()
    rows = [_row(point, number in levels) for number, point in enumerate(trend.points)]
    return TrendPage(trend, _drawn(trend, levels), trend.title, trend.in_common, tuple(reversed(rows)))


def _line(trend: Trend) -> Line:
    last = trend.points[-1]
    told, tone = _told(last)
    shown = [point.step_time_ms for point in trend.points[-SPARK_NIGHTS:]]
    spread = f"from {ms(min(shown))} to {ms(max(shown))} ms"
    words = f"{count(len(shown), 'night')} {spread}, the last {ms(last.step_time_ms)} ms"
    return Line(
        trend.variant, trend.series, len(trend.points), _spark(shown), words, ms(last.step_time_ms), told, tone, last
    )


def _told(point: Point) -> tuple[str, str]:
    """What the report of that night said of this variant, and its tone."""
    if point.change is None:
        return "", "muted"
    slower = point.change > 0
    return f"{share(abs(point.change))} {'slower' if slower else 'faster'}", "bad" if slower else "good"


def _spark(values: Sequence[float]) -> str:
    values = values if len(values) > 1 else [*values, *values]  # one night is a line, not a point that nobody sees
    middle, width = median(values), max(len(values) - 1, 1)
    half = max(max(values) - middle, middle - min(values), _FLAT / 2 * middle)
    return " ".join(
        f"{2 + place / width * (SPARK_WIDTH - 4):.1f},"
        f"{SPARK_HEIGHT / 2 - (value - middle) / half * (SPARK_HEIGHT / 2 - 2):.1f}"
        for place, value in enumerate(values)
    )


def _row(point: Point, new_level: bool) -> NightRow:
    half = (point.high_ms - point.low_ms) / 2
    told, tone = _told(point)
    return NightRow(point, f"{ms(point.step_time_ms)} ± {ms(half)}", told, tone, new_level)


def _import_drawing() -> None:
    """A second of scipy and matplotlib, which the other pages need not wait for."""
    import feedbench.analysis.changes
    import feedbench.report.charts  # noqa: F401


def _drawn(trend: Trend, levels: Sequence[int]) -> str:
    from feedbench.report.charts import draw

    with _DRAWING:
        return draw(_picture(trend, levels))


def _picture(trend: Trend, levels: Sequence[int]) -> "Picture":
    from feedbench.report.nights import night_by_night
    from feedbench.report.series import Picture

    points = trend.points
    columns = ([getattr(p, name) for p in points] for name in ("date", "step_time_ms", "low_ms", "high_ms"))
    series = night_by_night(*columns, levels, [number for number, point in enumerate(points) if point.around])
    return Picture("trend", f"Step time of {trend.variant} by night", "", series.in_words(), series)
