"""The sentence names the right variant, claims no more than was seen, and contradicts itself nowhere."""

import pytest

from feedbench.analysis.advise import rounds_to_see
from feedbench.analysis.verdict import verdict_sentence
from feedbench.records import Blocking, Interval, NextStep, StepTimeSummary
from planted.comparisons import built_in, comparison_of
from planted.profiles import MODEL_MS


def at(name, step_ms, **changes):
    """A variant of that mean step time."""
    time = StepTimeSummary(mean=step_ms, ci_low=step_ms * 0.9, ci_high=step_ms * 1.1, median=step_ms, p95=step_ms)
    return built_in(
        name, "", 1.0, 5.0,
        **{"step_time_ms": time, "accelerator_utilisation": MODEL_MS / step_ms, "verdict": "compute-bound"} | changes,
    )  # fmt: skip


def sentence(*variants, **changes):
    return verdict_sentence(comparison_of(*variants, **changes))


def test_the_best_is_the_one_of_lowest_mean_not_the_simplest():
    """Three starred: prefetch is the simplest after the baseline, combined the fastest by 60 / 50."""
    said = sentence(
        at("naive", 60.0), at("prefetch", 58.0), at("combined", 50.0), fastest=("naive", "prefetch", "combined")
    )
    assert said.startswith(
        "No clear winner: naive is not distinguishable from the best (combined, 1.20× as fast as naive, "
        "which only more rounds can confirm); "
    )
    assert said.endswith("; next to try: more rounds.")


def test_a_baseline_that_was_itself_the_fastest_is_not_held_against_another_best():
    said = sentence(at("naive", 50.0), at("prefetch", 51.0), fastest=("naive", "prefetch"))
    assert said.startswith("No clear winner: naive had the lowest mean, but prefetch cannot be told apart from it; ")


def test_after_more_rounds_comes_what_is_predicted_to_gain():
    step = NextStep(change="cache in memory", forecast_ms=40.0, gain=0.2)
    said = sentence(at("naive", 60.0), at("prefetch", 59.0), fastest=("naive", "prefetch"), next_steps=(step,))
    assert said.endswith("next to try: more rounds, then cache in memory (predicted gain 20 %).")


def test_who_still_waits_is_named_where_another_was_named_last():
    said = sentence(
        at("naive", 90.0),
        at("prefetch", 70.0, verdict="input-bound", input_wait_share=0.19),
        at("combined", 60.0),
        fastest=("prefetch", "combined"),
    )
    assert "combined was 1.17× as fast as prefetch" in said
    assert "; prefetch still waits 19 % of a step for input" in said


@pytest.mark.parametrize(("blocking_ms", "words"), [(5.1, "most"), (4.9, "the largest part")])
def test_most_of_the_wait_is_at_least_half_of_it(blocking_ms, words):
    """A wait of 10 ms a step, and the slowest stage's part of it."""
    one = at(
        "prefetch", 70.0, verdict="input-bound", input_wait_share=0.3, speedup=Interval(value=1, ci_low=1, ci_high=1)
    )
    slow = Blocking(mean=blocking_ms, median=blocking_ms, p95=blocking_ms)
    stages = tuple(
        stage.model_copy(update={"blocking_ms": slow if stage.operator == one.slowest_stage else None})
        for stage in one.summary.stages
    )
    waits = one.summary.input_wait_ms.model_copy(update={"mean": 10.0})
    one = one.model_copy(update={"summary": one.summary.model_copy(update={"stages": stages, "input_wait_ms": waits})})
    said = sentence(at("naive", 90.0), one, fastest=("prefetch",))
    assert f"prefetch still waits 30 % of a step for input, {words} of it in {one.slowest_stage}" in said


def test_four_times_the_rounds_see_half_the_effect():
    """ln 1.21 is twice ln 1.1."""
    assert rounds_to_see(0.1, rounds=3, detectable=0.21) == 12
