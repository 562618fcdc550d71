"""Which differences are real: every statistic on planted signal and on pure noise, counted over simulated runs.

The shares that are asserted leave room for the counting error of a thousand runs (a rate of 5 % counts 3.6 to 6.4 %).
"""

import math

import numpy as np
import pytest

from feedbench.analysis import stats

pytestmark = pytest.mark.simulation

RUNS = 1000
ROUNDS, STEPS = 3, 30
VARIANTS = [f"v{n}" for n in range(10)]

REAL_STEPS_MS = np.array(
    # Naive on 300 real photos with an emulated step of 45 ms: the wait of each step of a pass, plus the step. The
    # shuffle buffer drains (steps of 1 ms wait) and refills (78 ms).
    [64.9, 65.0, 70.7, 68.0, 64.1, 46.9, 46.1, 46.1, 122.5, 64.3]
)


def simulated(rng, *, names=VARIANTS, rounds=ROUNDS, trial_noise=0.005, drift=0.02, noisy=1.0, slower=0.0):
    """A run: step times resampled from real ones, trials that differ by luck, rounds that drift.

    Every second variant is `noisy` times as unlucky; the last one is `slower` by that share.
    """
    effects = rng.normal(0, drift, rounds)
    samples = {}
    for position, name in enumerate(names):
        luck = rng.normal(0, trial_noise * (noisy if position % 2 else 1), rounds)
        factor = np.exp(effects + luck) * (1 + slower * (name == names[-1]))
        samples[name] = {r: rng.permutation(np.tile(REAL_STEPS_MS, STEPS // 10)) * factor[r] for r in range(rounds)}
    return samples


def told_apart(family, min_effect=0.02):
    best = min(family.log_means, key=lambda name: np.mean(list(family.log_means[name].values())))
    return [name for name in family.log_means if name != best and family.is_slower(name, best, min_effect)]


@pytest.mark.parametrize(("noisy", "rounds", "most"), [(1.0, 3, 0.05), (1.0, 5, 0.05), (3.0, 3, 0.10)])
def test_equal_variants_are_told_apart_in_at_most_one_run_of_twenty(noisy, rounds, most):
    """Pure noise, ten variants, the smallest effect set to nothing: the family-wise rate stays at 5 %.

    Where half of the variants are three times as noisy as the others, three rounds cannot tell so for sure: about 8 %.
    """
    rng = np.random.default_rng(1)
    alarms = sum(
        bool(told_apart(stats.family(simulated(rng, noisy=noisy, rounds=rounds)), min_effect=0.0)) for _ in range(RUNS)
    )
    assert alarms / RUNS <= most


def test_an_a_a_pair_is_told_apart_in_at_most_one_run_of_twenty():
    rng = np.random.default_rng(2)
    runs = (stats.family(simulated(rng, names=["naive", "naive_again"])) for _ in range(RUNS))
    assert sum(bool(told_apart(family, min_effect=0.0)) for family in runs) / RUNS <= 0.065


def test_a_planted_slow_down_of_5_percent_is_found_in_nine_runs_of_ten():
    """Three rounds of thirty steps; trials differ by 0.5 % of luck."""
    rng = np.random.default_rng(3)
    found = sum(VARIANTS[-1] in told_apart(stats.family(simulated(rng, slower=0.05))) for _ in range(RUNS))
    assert found / RUNS >= 0.90


def stopped(rng, width=0.02, most=8, **kinds):
    """The comparisons of a run that adds rounds to the first three until it knows enough, or has run eight."""
    samples = simulated(rng, rounds=most, **kinds)
    for rounds in range(ROUNDS, most + 1):
        family = stats.family({name: {r: x[r] for r in range(rounds)} for name, x in samples.items()})
        if family.knows(VARIANTS[0], width):
            break
    return family, rounds


def test_rounds_that_are_added_until_enough_is_known_do_not_cry_wolf_more_often():
    """Sequential runs of equal variants: the rule looks at how wide intervals are, never at where they lie.

    Trials that differ by 1 % of luck: three rounds are hardly ever enough for 2 %, and eight are seldom needed.
    """
    rng = np.random.default_rng(5)
    ended = [stopped(rng, trial_noise=0.01) for _ in range(RUNS)]
    rounds = [rounds for _, rounds in ended]
    assert 3.5 < np.mean(rounds) < 7.5, "the rule was not put to the test"
    assert sum(bool(told_apart(family, min_effect=0.0)) for family, _ in ended) / RUNS <= 0.05


def test_a_sequential_run_finds_a_planted_5_percent_where_three_rounds_would_not():
    rng = np.random.default_rng(6)
    found = sum(VARIANTS[-1] in told_apart(stopped(rng, trial_noise=0.015, slower=0.05)[0]) for _ in range(RUNS))
    rng = np.random.default_rng(6)
    in_three = sum(
        VARIANTS[-1] in told_apart(stats.family(simulated(rng, trial_noise=0.015, slower=0.05))) for _ in range(RUNS)
    )
    assert found / RUNS >= 0.90 > in_three / RUNS


@pytest.mark.parametrize("trial_noise", [0.005, 0.02])
def test_an_effect_of_the_stated_detectable_size_is_found_in_nine_runs_of_ten(trial_noise):
    """The promise of `smallest_detectable`, on a quiet and on a noisy machine, against one other variant."""
    rng = np.random.default_rng(4)
    sizes = [stats.family(simulated(rng, trial_noise=trial_noise)).smallest_detectable("v0", "v9") for _ in range(100)]
    size = float(np.median(sizes))
    found = 0
    for _ in range(RUNS):
        family = stats.family(simulated(rng, trial_noise=trial_noise, slower=size))
        found += family.is_slower("v9", "v0", 0.0)
    assert found / RUNS >= 0.87


def test_the_interval_of_a_speed_up_holds_the_truth_in_nineteen_runs_of_twenty():
    """Planted: 1.30, all nine comparisons with the first at once."""
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(RUNS):
        family = stats.family(simulated(rng, slower=0.30))
        ratios = [family.ratio(name, "v0") for name in VARIANTS[1:]]
        truths = [1.0] * 8 + [1.30]
        held += all(ratio.low <= truth <= ratio.high for ratio, truth in zip(ratios, truths, strict=True))
    assert held / RUNS >= 0.935


def test_an_effect_below_the_smallest_that_matters_is_no_difference_however_certain():
    samples = {"a": {r: [100.0] * 30 for r in range(9)}, "b": {r: [101.0 + r / 1000] * 30 for r in range(9)}}
    family = stats.family(samples)
    assert family.ratio("b", "a").low > 1
    assert not family.is_slower("b", "a", min_effect=0.02)
    assert family.is_slower("b", "a", min_effect=0.005)


def test_a_drift_that_hits_all_variants_alike_leaves_the_speed_ups_alone():
    """Rounds 0 %, 50 % and 100 % slower than the first: paired by round, the ratio is exactly what was planted."""
    samples = {
        "a": {r: [50.0 * (1 + r / 2)] * 30 for r in range(3)},
        "b": {r: [100.0 * (1 + r / 2)] * 30 for r in range(3)},
    }
    ratio = stats.family(samples).ratio("b", "a")
    assert ratio.value == pytest.approx(2.0)
    assert ratio.high / ratio.low == pytest.approx(1.0)


def test_drift_is_told_when_it_is_there_and_not_when_it_is_not():
    rng = np.random.default_rng(6)
    quiet = [stats.drift(stats.family(simulated(rng, drift=0.0)).log_means)[1] for _ in range(RUNS)]
    assert np.mean(np.array(quiet) < 0.01) <= 0.02
    extent, chance = stats.drift(stats.family(simulated(rng, drift=0.10)).log_means)
    assert chance < 0.01
    assert extent > 0.02


def test_missing_trials_leave_a_comparison_over_the_rounds_that_both_have():
    samples = {"a": {0: [10.0] * 5, 1: [20.0] * 5, 2: [30.0] * 5}, "b": {1: [40.0] * 5, 2: [60.0] * 5}, "c": {}}
    family = stats.family(samples)
    assert family.ratio("b", "a").value == pytest.approx(2.0)
    assert "c" not in family.log_means


def test_variants_without_a_common_round_are_not_compared():
    family = stats.family({"a": {0: [10.0, 11.0]}, "b": {1: [20.0, 21.0]}})
    assert family.ratio("a", "b") is None
    assert family.smallest_detectable("a", "b") is None


def test_one_round_still_gives_intervals_from_its_steps():
    rng = np.random.default_rng(7)
    family = stats.family(simulated(rng, rounds=1, names=["a", "b"]), block=10)
    ratio = family.ratio("a", "b")
    assert ratio.value / 2 < ratio.low < ratio.value < ratio.high < ratio.value * 2


@pytest.mark.parametrize(("rounds", "steps", "block"), [(1, 60, 1), (1, 30, 15), (1, 30, 30), (1, 6, 6), (3, 60, 1)])
def test_a_single_mean_has_an_interval_that_holds_it(rounds, steps, block):
    """Truth: the mean of the distribution that step times are drawn from; 95 % promised, at three rounds less.
    However long the pass is that a block should be: two blocks, or one, know nothing.
    """
    rng = np.random.default_rng(8)
    held = 0
    for _ in range(RUNS // 2):
        trials = [rng.normal(60, 6, steps) * math.exp(rng.normal(0, 0.01 if rounds > 1 else 0)) for _ in range(rounds)]
        interval = stats.mean_interval(trials, block)
        held += interval.low <= 60 <= interval.high
    assert held / (RUNS // 2) >= (0.90 if rounds == 1 else 0.80)


def test_what_all_passes_have_in_common_is_no_noise():
    """Two passes of six steps, 1 ms while the buffer drains and 100 ms where it fills again: they differ by 1 %."""
    rng = np.random.default_rng(10)
    times = np.tile([1, 1, 1, 100, 50, 50], 2) * rng.normal(1, 0.01, 12)
    interval = stats.mean_interval([times], block=6)
    assert (interval.high - interval.low) / interval.value < 0.05


def test_squeezing_draws_equal_variances_together_and_leaves_different_ones_apart():
    rng = np.random.default_rng(9)
    equal, prior = stats.squeeze(rng.chisquare(2, 200) / 2, [2] * 200)
    assert np.ptp(equal) < 0.5
    assert prior > 20
    apart, prior = stats.squeeze(np.r_[rng.chisquare(50, 20) / 50, 100 * rng.chisquare(50, 20) / 50], [50] * 40)
    assert apart[20:].mean() / apart[:20].mean() > 1.5
    assert prior < 5


def test_residuals_of_an_additive_table_are_zero():
    table = {v: {r: 0.3 * i + 0.7 * r for r in range(3)} for i, v in enumerate("abc")}
    left = stats.additive_residuals(table)
    assert max(abs(e) for rounds in left.values() for e in rounds.values()) < 1e-12
