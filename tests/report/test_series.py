import pytest

from feedbench.records import Accelerator, Span, Timeline, TimelineStep
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
    """The trace says 60 % waiting, the ceiling 48 ms: the model's part is the ceiling, the wait gives way."""
    comparison = comparison_of(variant("naive", "", ("A",), 5.0, 5.0, input_wait_share=0.6), ceiling_ms=48.0)
    series = picture(comparison, "step-parts").series
    total = comparison.variants[0].step_time_ms.mean
    assert (series.model_ms[0], series.wait_ms[0], series.rest_ms[0]) == pytest.approx((48.0, total - 48, 0))


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
    assert found.alternative == "naive: steps 7 to 8 in 60.0 ms, of which 20.0 ms waiting for input."


def starting(name, first):
    """A variant whose six profiled steps of 50 ms begin with that number."""
    steps = tuple(TimelineStep(number=first + n, start_ms=50 * n, end_ms=50 * n + 50) for n in range(6))
    summary = profile(("A",), 1.0, 1.0).model_copy(update={"timeline": Timeline(steps=steps, lanes={})})
    return variant(name, "", ("A",), 1.0, 1.0, summary=summary)


def test_the_steps_that_all_variants_have_are_drawn_of_each():
    """40 to 45 and 42 to 47 share 42 to 45."""
    found = picture(comparison_of(starting("naive", 40), starting("prefetch", 42)), "timelines")
    assert [row.numbers for row in found.series.rows] == ["steps 42 to 45"] * 2
    assert found.caption.startswith("The same few profiled steps")


def test_windows_that_share_no_step_are_not_called_the_same():
    found = picture(comparison_of(starting("naive", 40), starting("prefetch", 52)), "timelines")
    assert [row.numbers for row in found.series.rows] == ["steps 40 to 45", "steps 52 to 57"]
    assert found.caption.startswith("A few profiled steps")


def test_a_panel_says_which_round_it_shows_beside_the_mean_of_all():
    """The means of the rounds are 0.4 % below the steps drawn, theirs, and 0.6 % above."""
    one = variant("naive", "", ("A",), 20.6, 21.0)
    comparison = comparison_of(
        one.model_copy(update={"step_time_ms": one.step_time_ms.model_copy(update={"mean": 99})})
    )
    title = picture(comparison, "step-times").series.panels[0].title
    assert title == "naive\nround 2 of 3: mean 66.6 ms (of all rounds 99.0 ms)"


def test_a_dot_left_of_its_curve_takes_the_axis_with_it(emulated):
    """Combined feeds 0.72 ms: a batch of 32 in 0.72 / 0.9 ms. Naive's 20.8 ms of input are not hidden anywhere."""
    series = picture(emulated, "what-if").series
    curves = {curve.label.split(",")[0]: curve for curve in series.curves}
    start = 0.7 * 0.72
    assert [curve.accelerator_step_ms[0] for curve in curves.values()] == pytest.approx([start] * 5)
    combined = dict(zip(curves["combined"].accelerator_step_ms, curves["combined"].photos_per_s, strict=True))
    assert combined[curves["combined"].keeps_up_from_ms] == pytest.approx(32_000 * 0.9 / 0.72)
    assert curves["naive"].photos_per_s[0] == pytest.approx(32_000 / (start + 20.8))
    assert curves["prefetch"].photos_per_s[0] == pytest.approx(32_000 / 21.0)


@pytest.mark.parametrize(("kind", "warned"), [("cpu", True), ("gpu", False)])
def test_curves_of_a_model_on_the_cpu_say_whom_they_hold_for(emulated, kind, warned):
    on = emulated.model_copy(update={"accelerator": Accelerator(kind=kind, name="x")})
    assert ("shares its cores with the input work" in picture(on, "what-if").caption) is warned


def test_what_if_curves_are_ordered_by_where_they_stop_keeping_up(emulated):
    curves = picture(emulated, "what-if").series.curves
    assert [curve.keeps_up_from_ms for curve in curves] == sorted((c.keeps_up_from_ms for c in curves), reverse=True)
    assert curves[0].label == "naive, from 187 ms"
