"""The nightly judgement on planted series: log step times, 1 % noise, unless a claim says otherwise."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from feedbench.analysis.changes import Night, judge, levels


def nights(*log_sizes: float, noise: float = 0.01, seed: int = 0) -> np.ndarray:
    """A series that is off from log(60 ms) by these sizes, plus noise."""
    sizes = np.array(log_sizes)
    return math.log(60) + sizes + np.random.default_rng(seed).normal(0, noise, len(sizes))


def states(values: Sequence[float], **options: object) -> str:
    """The nights' states by their first letters."""
    return "".join(night.state[0] if night.state != "steady" else "." for night in judge(values, **options))


def last(values: Sequence[float], **options: object) -> Night:
    return list(judge(values, **options))[-1]


def test_a_first_night_is_held_against_nothing():
    assert last(nights(0)) == Night("first")


def test_nights_that_are_equal_to_the_last_digit_are_steady():
    assert states([4.0] * 12, min_effect=0) == "f" + "." * 11


def test_a_lasting_slow_down_is_told_from_its_second_night_with_its_size_and_first_night():
    night = last(nights(*[0] * 20, 0.1, 0.1))
    assert night.state == "changed"
    assert night.lasting
    assert (night.shift.first, night.shift.nights) == (20, 2)
    assert night.shift.low < 0.1 < night.shift.high
    assert night.shift.confidence > 0.99
    assert night.reference[-1] == 19


def test_one_bad_night_is_a_suspicion_and_no_reference_for_the_next_one():
    assert states(nights(*[0] * 10, 0.12, 0, 0)) == "f.........s.."


def test_an_enormous_slow_down_is_told_on_the_first_night_even_after_two_good_ones():
    night = last(nights(0, 0, math.log(2)))
    assert night.state == "changed"
    assert not night.lasting
    assert night.shift.nights == 1


def test_a_slower_level_is_told_every_night_until_it_is_gone():
    assert states(nights(*[0] * 10, *[0.1] * 15, 0, 0), min_effect=0.02) == "f.........s" + "c" * 14 + ".."


def test_what_creeps_is_drift_and_is_not_told_for_ever():
    """12 % within sixty nights, then still: told for some nights at most. The same at one step is told to the end."""
    creeping = states(nights(*np.linspace(0, 0.12, 60), *[0.12] * 30, noise=0.005))
    assert creeping.count("c") < 20
    assert set(creeping[-25:]) == {"."}
    assert states(nights(*[0] * 60, *[0.12] * 30, noise=0.005))[-25:] == "c" * 25


def test_a_change_is_not_learned_as_noise_when_nights_are_few():
    assert states(nights(0, 0, 0.7, 0.7, 0.7, 0.7, noise=0.002)) == "f.cccc"


def test_an_accepted_level_is_the_reference_from_then_on():
    series = nights(*[0] * 10, *[0.1] * 6, 0.2, 0.2)
    assert states(series, accepted={12}) == "f.........scc...sc"
    assert last(series, accepted={12}).shift.size == pytest.approx(0.1, abs=0.03)


def test_a_faster_level_is_told_once_and_then_is_the_reference():
    series = nights(*[0] * 10, *[-0.1] * 6)
    assert states(series) == "f.........sc...."
    assert list(judge(series))[11].shift.size == pytest.approx(-0.1, abs=0.02)


def test_a_change_below_the_smallest_effect_is_none_however_certain():
    assert "c" not in states(nights(*[0] * 20, *[0.015] * 20, noise=0.0001), min_effect=0.02)


def test_a_noisy_series_asks_for_more_than_a_quiet_one():
    """6 % is six deviations of the one and 1.2 of the other."""
    assert states(nights(*[0] * 30, 0.06, 0.06))[-1] == "c"
    assert states(nights(*[0] * 30, 0.06, 0.06, noise=0.05))[-1] != "c"


def test_a_night_with_a_wide_error_of_its_own_proves_little():
    series = nights(*[0] * 20, 0.1, 0.1)
    assert last(series, errors=[0.08] * 22).state == "steady"


def test_a_slow_drift_is_followed():
    """10 % in 100 nights, never much in one."""
    assert "c" not in states(nights(*np.linspace(0, 0.1, 100)))


def test_a_night_costs_the_same_however_long_the_series_is():
    """Counted in looks at the series, which a clock would only blur."""

    class Counted(list):
        looks = 0

        def __getitem__(self, number):
            Counted.looks += 1
            return super().__getitem__(number)

    costs = []
    for night in (100, 1000):
        judged = judge(Counted(nights(*[0] * (night + 1))))
        for _ in range(night):
            next(judged)
        Counted.looks = 0
        next(judged)
        costs.append(Counted.looks)
    assert costs[0] == costs[1]


def test_levels_are_found_where_they_were_planted():
    series = nights(*[0] * 40, *[0.06] * 30, *[-0.03] * 30)
    assert levels(series) == (40, 70)


def test_bad_nights_are_no_levels():
    sizes = np.zeros(100)
    sizes[[10, 40, 41, 77]] = 0.3
    assert levels(nights(*sizes)) == ()


def test_too_short_a_series_has_one_level():
    assert levels(nights(0, 0, 1, 1, 1)) == ()


@pytest.mark.simulation
def test_false_alarms_are_few_and_a_lasting_change_is_found_within_three_nights():
    """A sample of what `make history-test` counts: at most 1 alarm in 100 nights, 5 % found in 95 of 100 cases."""
    rng = np.random.default_rng(1)
    quiet = [rng.normal(0, 0.01, 120) + (rng.random(120) < 0.03) * rng.exponential(0.08, 120) for _ in range(40)]
    alarms = sum(states(series).count("c") for series in quiet)
    assert alarms <= 0.01 * 40 * 120
    found = [
        "c" in states(np.append(rng.normal(0, 0.01, 60), rng.normal(math.log(1.05), 0.01, 3)))[-3:] for _ in range(100)
    ]
    assert sum(found) >= 95
