import pytest

from feedbench.records import Span, Timeline, TimelineStep
from feedbench.report.series import pictures, thinned
from planted.comparisons import comparison_of, variant
from planted.profiles import profile


def picture(comparison, anchor):
    return next(p for p in pictures(comparison, comparison.variants) if p.anchor == anchor)


def test_the_parts_of_a_step_add_up_to_its_measured_time(emulated):
    series = picture(emulated, "step-parts").series
    sums = [sum(parts) for parts in zip(series.model_ms, series.wait_ms, series.rest_ms, strict=True)]
    assert sums == pytest.approx([v.step_time_ms.mean for v in emulated.variants if v.status == "ok"])


def test_parts_add_up_even_where_trace_and_ceiling_contradict_each_other():
    """The trace says 60 % waiting, the ceiling says 90 % model: no part is negative, the sum is the step time."""
    comparison = comparison_of(variant("naive", "", ("A",), 5.0, 5.0, input_wait_share=0.6), ceiling_ms=48.0)
    series = picture(comparison, "step-parts").series
    total = comparison.variants[0].step_time_ms.mean
    assert (series.model_ms[0], series.wait_ms[0], series.rest_ms[0]) == pytest.approx((0.4 * total, 0.6 * total, 0))


def test_without_a_ceiling_the_model_is_not_told_from_the_rest():
    comparison = comparison_of(variant("naive", "", ("A",), 20.6, 21.0), ceiling_ms=None)
    series = picture(comparison, "step-parts").series
    assert series.model_ms == (0.0,)
    assert series.rest_label == "model and rest"


def test_failed_variants_are_in_no_picture(emulated):
    series = picture(emulated, "timelines").series
    assert [row.name for row in series.rows] == [v.name for v in emulated.variants if v.status == "ok"]


def test_one_lonely_variant_has_no_speed_ups_to_show():
    comparison = comparison_of(variant("naive", "", ("A",), 20.6, 21.0))
    assert "speed-ups" not in [p.anchor for p in pictures(comparison, comparison.variants)]


def test_two_variants_have_one_speed_up_to_show():
    naive, prefetch = variant("naive", "", ("A",), 20.6, 21.0), variant("prefetch", "", ("A",), 0.6, 21.0)
    assert picture(comparison_of(naive, prefetch), "speed-ups").series.names == ("prefetch",)


def test_thinning_keeps_the_spikes_within_the_limit():
    """10,000 steps of 45 ms with one of 78 and one of 1: both survive among at most 300 points."""
    times = [45.0] * 10_000
    times[1234], times[8765] = 78.0, 1.0
    kept = thinned(times, 300)
    assert len(kept) <= 300
    assert {1234, 8765} <= set(kept)
    assert kept == sorted(kept)


def test_few_values_are_all_kept():
    assert thinned([3.0, 1.0, 2.0], 300) == [0, 1, 2]


def test_a_pass_begins_where_the_step_number_is_a_multiple_of_its_length():
    """First measured step 12 of passes of 7: passes open at 14, 21 and 28 among the 21 measured steps."""
    comparison = comparison_of(variant("naive", "", ("A",), 20.6, 21.0))
    panel = picture(comparison, "step-times").series.panels[0]
    assert panel.numbers[0] == 12
    assert panel.pass_starts == (14, 21, 28)


def test_timelines_start_at_zero_and_hold_only_what_lies_within_the_steps():
    """Steps from 100 to 160 ms; input work that began at 90 is cut to begin at 0, that of 170 is left out."""
    timeline = Timeline(
        steps=(
            TimelineStep(number=7, start_ms=100, end_ms=130, wait=Span(start_ms=100, end_ms=120)),
            TimelineStep(number=8, start_ms=130, end_ms=160),
        ),
        lanes={"Map": (Span(start_ms=90, end_ms=115), Span(start_ms=170, end_ms=180))},
    )
    summary = profile(("A",), 20.6, 21.0).model_copy(update={"timeline": timeline})
    comparison = comparison_of(variant("naive", "", ("A",), 20.6, 21.0, summary=summary))
    found = picture(comparison, "timelines")
    row = found.series.rows[0]
    assert found.series.end_ms == 60
    assert row.steps == ((0, 30), (30, 30))
    assert row.waits == ((0, 20),)
    assert row.lanes == (("Map", ((0, 15),)),)
    assert row.step_labels == ((15, "7"), (45, "8"))
    assert found.alternative == "naive: 2 steps in 60.0 ms, of which 20.0 ms waiting for input."


def test_what_if_curves_are_ordered_by_where_they_stop_keeping_up(emulated):
    curves = picture(emulated, "what-if").series.curves
    assert [curve.keeps_up_from_ms for curve in curves] == sorted((c.keeps_up_from_ms for c in curves), reverse=True)
    assert curves[0].label == "naive, from 187 ms"
