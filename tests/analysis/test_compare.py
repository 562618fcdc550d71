"""Planted trials in, the right judgement out; whatever is wrong with a trial is that variant's row, not a crash."""

from dataclasses import replace

import pytest

from feedbench.analysis.compare import compare, settled
from feedbench.records import Comparison, XprofStatement
from planted.trials import Planted

ARTICLE = {"naive": 65.0, "prefetch": 46.0, "parallel_map": 60.0, "parallel_map_prefetch": 46.0}
"""Step times as in the article that this project starts from: prefetch gains about 40 %, parallel map adds nothing."""


def judged(run) -> Comparison:
    return compare(run.run, list(run.evidence.values()), lambda _: XprofStatement(available=False, reason="not asked"))


def row(comparison: Comparison, name: str):
    return next(r for r in comparison.variants if r.name == name)


def test_the_articles_run_gets_the_articles_answer():
    comparison = judged(Planted(ARTICLE))
    assert comparison.fastest == ("prefetch", "parallel_map_prefetch")
    assert row(comparison, "prefetch").speedup.value == pytest.approx(65 / 46, rel=0.01)
    assert row(comparison, "prefetch").speedup.ci_low > 1.3
    assert comparison.verdict.startswith("Ship prefetch: 1.4")
    assert "the accelerator is the limit now" in comparison.verdict
    assert "nothing to gain from input" in comparison.verdict


def test_each_variant_has_the_word_for_what_limits_it():
    comparison = judged(Planted(ARTICLE))
    assert [(r.name, r.verdict) for r in comparison.variants] == [
        ("naive", "input-bound"),
        ("prefetch", "compute-bound"),
        ("parallel_map", "input-bound"),
        ("parallel_map_prefetch", "compute-bound"),
    ]
    assert row(comparison, "naive").accelerator_utilisation == pytest.approx(45 / 65, rel=0.02)


def test_a_lead_that_may_be_noise_is_told_and_nothing_is_said_to_be_gained_beyond_it():
    """combined at the model's 45 ms, prefetch at 50 ms, trials that differ by 6 %: too noisy to tell the two apart."""
    comparison = judged(Planted({"naive": 104.0, "prefetch": 50.0, "combined": 45.2}, noise=0.06))
    assert comparison.fastest == ("prefetch", "combined")
    assert "combined was 1." in comparison.verdict
    assert "as fast as prefetch, which only more rounds can confirm" in comparison.verdict
    assert "beyond combined there is nothing to gain from input" in comparison.verdict


def test_a_gain_that_is_proved_is_shipped_before_a_simpler_one_that_is_not():
    """prefetch between naive and the best, too noisy to be told apart from either."""
    comparison = judged(Planted({"naive": 60.0, "prefetch": 52.0, "cache_memory_prefetch": 45.5}, noise=0.06))
    assert row(comparison, "prefetch").speedup.ci_low < 1
    assert row(comparison, "cache_memory_prefetch").speedup.ci_low > 1
    assert comparison.fastest == ("cache_memory_prefetch", "prefetch")
    assert comparison.verdict.startswith("Ship cache_memory_prefetch")


def test_equal_variants_have_no_winner():
    comparison = judged(Planted({"naive": 46.0, "prefetch": 46.0, "parallel_map": 46.0}))
    assert set(comparison.fastest) == {"naive", "prefetch", "parallel_map"}
    assert comparison.verdict.startswith("No clear winner")


def test_what_tensorflow_rewrites_is_never_shipped_before_what_was_written():
    comparison = judged(Planted({"naive": 65.0, "tf_default": 46.0, "prefetch": 46.1}))
    assert comparison.fastest == ("prefetch", "tf_default")


def test_other_operators_than_declared_make_a_variant_invalid_with_both_told():
    """A naive variant left on TensorFlow's default options, as facts 1 has it."""
    executed = ("TensorSlice", "MapAndBatch", "ForeverRepeat", "Prefetch")
    run = Planted(ARTICLE).change(
        "naive", lambda e: replace(e, profile=e.profile.model_copy(update={"executed_pipeline": executed}))
    )
    naive = row(judged(run), "naive")
    assert naive.status == "invalid"
    assert naive.reason.startswith("executed MapAndBatch, Prefetch; not declared")
    assert naive.pipeline.executed == executed
    assert naive.pipeline.matches is False


def test_tf_default_may_be_rewritten_and_says_how():
    executed = ("TensorSlice", "ParallelMapV2", "ShuffleAndRepeat", "BatchV2", "Prefetch")
    run = Planted({"naive": 65.0, "tf_default": 46.0}).change(
        "tf_default", lambda e: replace(e, profile=e.profile.model_copy(update={"executed_pipeline": executed}))
    )
    shown = row(judged(run), "tf_default")
    assert (shown.status, shown.pipeline.matches) == ("ok", False)
    assert "rewritten by TensorFlow: TensorSlice > ParallelMapV2" in shown.notes[0]


def test_a_cache_that_is_not_warm_makes_the_variant_invalid():
    run = Planted({"naive": 65.0, "cache_memory": 50.0}).change(
        "cache_memory",
        lambda e: replace(e, profile=e.profile.model_copy(update={"executed_pipeline": run_written(e)})),
    )
    cold = row(judged(run), "cache_memory")
    assert cold.status == "invalid"
    assert "executed TensorSlice, Map; not declared" in cold.reason


def run_written(_):
    return ("TensorSlice", "Map", "MemoryCache", "Shuffle", "ForeverRepeat", "BatchV2")


def test_a_warm_cache_is_said_to_be_proved():
    comparison = judged(Planted({"naive": 65.0, "cache_memory": 50.0}))
    assert "warm: nothing ran below MemoryCache" in row(comparison, "cache_memory").notes[0]


def test_other_photos_than_the_baselines_make_a_variant_invalid():
    run = Planted(ARTICLE).change(
        "prefetch", lambda e: replace(e, trial=e.trial.model_copy(update={"batch_digest": "other"}))
    )
    comparison = judged(run)
    assert row(comparison, "prefetch").status == "invalid"
    assert "prefetch" not in comparison.fastest


def failed(reason):
    return lambda e: replace(
        e, profile=None, trial=e.trial.model_copy(update={"status": "failed", "reason": reason, "step_times_ms": ()})
    )


def test_one_failed_round_fails_the_variant_and_keeps_the_others_numbers():
    comparison = judged(Planted(ARTICLE).change("prefetch", failed("signal 9: killed from outside"), rounds=(2,)))
    prefetch = row(comparison, "prefetch")
    assert (prefetch.status, prefetch.rounds) == ("failed", 2)
    assert prefetch.reason == "round 2: signal 9: killed from outside"
    assert prefetch.step_time_ms.mean == pytest.approx(46, rel=0.01)
    assert comparison.fastest == ("parallel_map_prefetch",)


def test_a_trial_that_left_nothing_is_a_row_too():
    run = Planted(ARTICLE).change("prefetch", lambda e: replace(e, trial=None, profile=None))
    prefetch = row(judged(run), "prefetch")
    assert (prefetch.status, prefetch.step_time_ms, prefetch.verdict) == ("failed", None, "not measured")
    assert "no result was written" in prefetch.reason


def test_a_run_in_which_everything_failed_says_so():
    run = Planted(ARTICLE)
    for name in ARTICLE:
        run.change(name, failed("no GPU"))
    comparison = judged(run)
    assert comparison.fastest == ()
    assert comparison.verdict.startswith("No answer: no variant gave a valid result (round 1: no GPU")


def test_a_baseline_that_alone_is_valid_beat_nobody():
    run = Planted(ARTICLE)
    for name in ARTICLE:
        if name != "naive":
            run.change(name, failed("no GPU"))
    assert judged(run).verdict.startswith("Keep naive: it is the only variant with a valid result; ")


def test_a_failed_baseline_leaves_the_others_without_a_speed_up_but_with_their_times():
    comparison = judged(Planted(ARTICLE).change("naive", failed("no")))
    prefetch = row(comparison, "prefetch")
    assert prefetch.speedup is None
    assert prefetch.step_time_ms is not None
    assert comparison.next_steps == ()


def test_a_baseline_that_died_before_its_first_batch_makes_no_other_variant_invalid():
    died = failed("signal 9")
    run = Planted(ARTICLE).change(
        "naive", lambda e: replace(died(e), trial=died(e).trial.model_copy(update={"batch_digest": None}))
    )
    comparison = judged(run)
    assert {r.name: r.status for r in comparison.variants if r.name != "naive"} == dict.fromkeys(
        ("prefetch", "parallel_map", "parallel_map_prefetch"), "ok"
    )


def test_trials_of_another_kind_of_machine_are_never_compared_silently():
    run = Planted(ARTICLE).change(
        "prefetch",
        lambda e: replace(
            e,
            trial=e.trial.model_copy(
                update={"machine": e.trial.machine.model_copy(update={"machine_class": "elsewhere"})}
            ),
        ),
        (1,),
    )
    comparison = judged(run)
    assert row(comparison, "prefetch").status == "invalid"
    assert "1 of 3 rounds ran on another kind of machine" in row(comparison, "prefetch").reason
    assert any("2 kinds of machine" in warning for warning in comparison.warnings)


def test_a_missing_profile_leaves_the_clocks_word_and_says_so():
    run = Planted(ARTICLE).change("naive", lambda e: replace(e, profile=None))
    naive = row(judged(run), "naive")
    assert naive.input_wait_share is None
    assert naive.pipeline.matches is None
    assert (naive.verdict, naive.verdict_reason) == ("input-bound", "by the clock alone: no profile was found")


def test_the_baselines_trials_alone_forecast_the_others():
    """Model 65 - 20 = 45 ms; prefetch hides 20 ms of input behind it."""
    comparison = judged(Planted(ARTICLE))
    assert row(comparison, "prefetch").forecast_ms == pytest.approx(45, abs=0.5)
    assert row(comparison, "naive").forecast_ms == pytest.approx(65, rel=0.01)


def test_an_a_a_pair_gives_the_noise_floor():
    comparison = judged(Planted({"naive": 65.0, "naive_again": 65.0} | {}, a_a=True, variants=["naive"]))
    assert 0 < comparison.noise_floor < 0.02
    assert comparison.smallest_detectable_effect >= 0.02
    assert "naive_again" not in comparison.fastest


def test_a_pair_that_differs_steadily_is_noise_and_is_told():
    """The twin 10 % slower in every round: no difference below that can be believed, however small the scatter."""
    comparison = judged(Planted({"naive": 65.0, "naive_again": 71.5}, a_a=True, variants=["naive"]))
    assert comparison.noise_floor >= 0.099
    assert any("naive and naive_again are the same pipeline, and yet differ by 10 %" in w for w in comparison.warnings)


def test_an_ordinary_run_has_nothing_to_warn_of():
    """A warning that is always there teaches to read none."""
    assert judged(Planted(ARTICLE)).warnings == ()


def test_one_round_is_warned_of():
    assert any(w.startswith("One round") for w in judged(Planted(ARTICLE, rounds=1)).warnings)


@pytest.mark.parametrize(("noise", "enough"), [(0.001, True), (0.05, False)])
def test_rounds_settle_the_matter_when_the_intervals_are_narrow(noise, enough):
    run = Planted(ARTICLE, noise=noise)
    assert settled(run.run, list(run.evidence.values())) is enough


def test_no_forecast_is_below_the_ceiling():
    """The baseline's drain took 40 ms a batch in a busy minute, though its step is only 20 ms above the ceiling."""
    run = Planted(ARTICLE).change(
        "naive", lambda e: replace(e, trial=e.trial.model_copy(update={"input_only_ms": (40.0,) * 7}))
    )
    assert row(judged(run), "prefetch").forecast_ms == pytest.approx(45, rel=0.01)
