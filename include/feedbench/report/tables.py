"""The tables over all variants: results, next steps, and forecasts beside what was measured."""

from collections.abc import Mapping, Sequence

from feedbench import units
from feedbench.analysis.diagnose import GOOD_UTILISATION
from feedbench.records import Change, Comparison, NextStep, VariantResult
from feedbench.report import wording
from feedbench.report.layout import Cell, Column, Row, Table, Tone

LONGEST_NAME = 80
"""Characters of a name in a table; variant by variant it stands in full."""
_FAR_OFF = 0.15
"""A forecast that misses by more than this is no ground to decide on."""
_VERDICT_TONES: Mapping[str, Tone] = {"input-bound": "warn", "compute-bound": "good", "not measured": "muted"}

_COLUMNS = (
    Column("variant"),
    Column("step time, ms", "m-step-time", kind="number"),
    Column("speed-up", "m-speedup", kind="number"),
    Column("examples/s", "m-examples", kind="number"),
    Column("input wait", "m-input-wait", kind="number"),
    Column("AU", "m-au", kind="number"),
    Column("memory", "m-memory", kind="number"),
    Column("cache", "m-cache", kind="number"),
    Column("verdict", "m-verdict", kind="word"),
    Column("note"),
)
_CHANGE = Column("change", "m-change", kind="word")


def variants_table(comparison: Comparison, variants: Sequence[VariantResult], anchors: Mapping[str, str]) -> Table:
    """One row a variant, linked to its anchor if it has one; a change column when there are nights to compare with."""
    compares = comparison.history is not None and comparison.history.compared_with is not None
    changes = {change.variant: change for change in comparison.history.changes} if comparison.history else {}
    rows = []
    for variant in variants:
        name = Cell(
            wording.shortened(variant.name, LONGEST_NAME), detail=variant.why, href=anchors.get(variant.name, "")
        )
        cells = (name, *_results(comparison, variant))
        change = (_change(changes.get(variant.name), variant.status),) if compares else ()
        mark, tone = ("★", "good") if variant.name in comparison.fastest else ("", "")
        rows.append(Row((*change, *cells), mark, tone, header=len(change)))
    columns = (_CHANGE, *_COLUMNS) if compares else _COLUMNS
    return Table("Variants: means with 95 % intervals below", columns, tuple(rows))


def _change(change: Change | None, status: str) -> Cell:
    if change is None:  # no change, or nothing to compare
        return Cell("=" if status == "ok" else units.DASH, tone="muted")
    arrow = "▲" if change.direction == "slower" else "▼"
    tone: Tone = "muted" if change.accepted else "bad" if change.direction == "slower" else "good"
    text = f"{arrow} {units.signed_share(change.size.value)}"
    return Cell(text, detail="accepted" if change.accepted else "", tone=tone)


def _results(comparison: Comparison, variant: VariantResult) -> tuple[Cell, ...]:
    if variant.status != "ok":
        return (Cell(f"{variant.status}: {variant.reason or 'no reason recorded'}", tone="bad"),)
    time = variant.step_time_ms
    return (
        Cell(units.ms(time.mean), wording.interval_ms(time.ci_low, time.ci_high)) if time else Cell(units.DASH),
        _speedup(comparison, variant),
        Cell(units.rate(variant.examples_per_s)),
        Cell(units.share(variant.input_wait_share)),
        _utilisation(variant.accelerator_utilisation),
        Cell(units.mb(variant.peak_rss_mb)),
        Cell(units.mb(variant.cache_mb)),
        Cell(variant.verdict, _slowest(variant), tone=_VERDICT_TONES.get(variant.verdict, "")),
        Cell(wording.sentences((variant.verdict_reason, *variant.notes))),
    )


def _speedup(comparison: Comparison, variant: VariantResult) -> Cell:
    if variant.name == comparison.baseline:
        return Cell("baseline", tone="muted")
    if variant.speedup is None:
        return Cell(units.DASH)
    return Cell(units.times(variant.speedup.value), wording.interval_times(variant.speedup))


def _utilisation(share: float | None) -> Cell:
    if share is None:
        return Cell(units.DASH)
    tone: Tone = "good" if share >= GOOD_UTILISATION else "warn"
    return Cell(units.share(share), tone=tone, meter_percent=round(min(share, 1.0) * 100, 1))


def _slowest(variant: VariantResult) -> str:
    """Where input limits nothing, its slowest stage is no news."""
    named = variant.slowest_stage and variant.verdict != "compute-bound"
    return f"slowest stage: {variant.slowest_stage}" if named else ""


def next_steps_table(steps: Sequence[NextStep], first: str = "") -> Table | None:
    """What to try next, best first: pipelines that nobody ran, so there is nothing to hold a forecast against.

    `first`: what comes before all of them, and has no forecast.
    """
    if not steps and not first:
        return None
    columns = (
        Column("change"),
        Column("forecast, ms", "m-forecast", kind="number"),
        Column("gain", "m-gain", kind="number"),
        Column("memory it costs", kind="number"),
    )
    rows = tuple(
        Row(
            (
                Cell(step.change),
                Cell(units.ms(step.forecast_ms)),
                Cell(units.signed_share(step.gain), tone="good") if step.gain > 0 else Cell(units.DASH),
                Cell(units.mb(step.memory_mb or None)),  # records of old say 0 of what was not measured
            )
        )
        for step in sorted(steps, key=lambda step: step.gain, reverse=True)
    )
    if first:
        rows = (Row((Cell(first), *[Cell(units.DASH)] * 3)), *rows)
    return Table("What to try next, by predicted gain over the fastest variant", columns, rows)


def forecasts_table(variants: Sequence[VariantResult], baseline: str) -> Table | None:
    """Predicted beside measured, of every variant that has a forecast."""
    columns = (
        Column("variant"),
        Column("forecast, ms", "m-forecast", kind="number"),
        Column("measured, ms", "m-step-time", kind="number"),
        Column("error", "m-error", kind="number"),
    )
    rows = tuple(
        Row(
            (
                Cell(wording.shortened(variant.name, LONGEST_NAME)),
                Cell(units.ms(variant.forecast_ms)),
                Cell(units.ms(measured)),
                _error(variant.forecast_ms, measured, is_source=variant.name == baseline),
            )
        )
        for variant in variants
        if variant.forecast_ms is not None
        for measured in [variant.step_time_ms.mean if variant.step_time_ms and variant.status == "ok" else None]
    )
    return Table("Predicted from the baseline alone, beside what was measured", columns, rows) if rows else None


def _error(forecast_ms: float, measured_ms: float | None, is_source: bool) -> Cell:
    """`is_source`: the forecasts were made from this one, so that its own hits whatever the others are worth."""
    if is_source:
        return Cell(units.DASH, detail="by definition")
    if not measured_ms:
        return Cell(units.DASH)
    error = forecast_ms / measured_ms - 1
    return Cell(units.signed_share(error), tone="warn" if abs(error) > _FAR_OFF else "")
