"""Tonight against a week of nights at 60 ms (naive) and 50 ms (prefetch)."""

import pytest

from feedbench.history.causes import change_sentence
from feedbench.history.judgement import judge
from feedbench.records import Accepted
from planted.machines import machine
from planted.nights import night

NONE = Accepted()


def judged(tonight, earlier, accepted=NONE):
    return judge(tonight, earlier, accepted, min_effect=0.02)


def test_a_first_night_is_compared_with_nothing():
    changes = judged(night(1, {"naive": 60}), []).changes
    assert (changes.compared_with, changes.nights, changes.changes, changes.environment) == (None, 0, (), ())


def test_a_night_like_the_others_tells_no_change_and_what_it_was_held_against(week):
    found = judged(night(8, {"naive": 60.2, "prefetch": 50}), week)
    assert (found.changes.compared_with, found.changes.nights) == ("night_7", 7)
    assert (found.changes.changes, found.changes.environment, found.suspicions) == ((), (), ())


def test_a_variant_that_is_twice_as_slow_is_told_tonight_with_its_cause(week):
    """+100 %: the map's self time went from 12 to 72 ms a step, which is what the step gained."""
    (change,) = judged(night(8, {"naive": 120, "prefetch": 50}, map_ms=72.0), week).changes.changes
    assert (change.variant, change.direction, change.since_run) == ("naive", "slower", "night_8")
    assert change.size.value == pytest.approx(1.0, abs=0.01)
    assert change.size.ci_low < 1 < change.size.ci_high
    assert not change.lasting
    assert change.causes == ("self time of ParallelMapV2 +500 % (12.0 → 72.0 ms a step)",)


def test_one_night_12_percent_slower_is_a_suspicion_and_two_are_a_change_since_the_first(week):
    first, second = night(8, {"naive": 67.2}), night(9, {"naive": 67.3})
    suspected = judged(first, week)
    assert suspected.changes.changes == ()
    assert suspected.suspicions[0].startswith("naive is 12 % slower tonight")
    (change,) = judged(second, [*week, first]).changes.changes
    assert (change.since_run, change.since, change.lasting) == ("night_8", "2026-06-08", True)
    assert judged(second, [*week, first]).changes.compared_with == "night_7"


def test_an_improvement_is_told_too(week):
    nights = [night(n, {"prefetch": 45}) for n in (8, 9)]
    (change,) = judged(nights[1], [*week, nights[0]]).changes.changes
    assert (change.direction, round(change.size.value, 2)) == ("faster", -0.1)


def test_an_accepted_level_is_what_later_nights_are_held_against(week):
    nights = [night(n, {"naive": 70}) for n in (8, 9, 10)]
    assert judged(nights[2], [*week, *nights[:2]]).changes.changes
    accepted = Accepted(reasons={"night_9": {"naive": "more augmentation"}})
    assert not judged(nights[2], [*week, *nights[:2]], accepted).changes.changes
    assert judged(nights[1], [*week, nights[0]], accepted).changes.changes[0].accepted == "more augmentation"


def test_half_of_the_cores_begin_a_new_series_and_are_the_cause_of_what_they_cost(week):
    """15 %, one night: too little to be told without a known cause."""
    half = machine(machine_class="eight", cores=8)
    tonight = night(8, {"naive": 60, "prefetch": 57.5}, machine=half, map_ms=19.5, parallelism=4)
    changes = judged(tonight, week).changes
    (change,) = changes.changes
    assert change.variant == "prefetch"
    assert change.causes == (
        "self time of ParallelMapV2 +62 % (12.0 → 19.5 ms a step), parallelism 8 → 4",
        "cores 16 → 8",
    )
    assert changes.environment == (
        "a new series begins tonight: no later night is compared with those before",
        "cores 16 → 8",
    )


def test_the_second_night_on_half_of_the_cores_is_compared_with_the_first_alone(week):
    half = machine(machine_class="eight", cores=8)
    first, second = (night(n, {"prefetch": 57.5}, machine=half) for n in (8, 9))
    changes = judged(second, [*week, first]).changes
    assert (changes.compared_with, changes.nights, changes.changes) == ("night_8", 1, ())


def test_another_cpu_is_another_machine_no_regression(week):
    other = machine(machine_class="old", cpu_model="Xeon")
    changes = judged(night(8, {"naive": 200}, machine=other), week).changes
    assert (changes.compared_with, changes.changes) == (None, ())
    assert changes.environment[1:] == ("CPU EPYC → Xeon",)


def test_where_the_step_without_input_slowed_alike_the_pipeline_is_not_blamed_alone(week):
    (change,) = judged(night(8, {"naive": 90}, ceiling_ms=67.5), week).changes.changes
    assert change.causes[0].startswith("the step without any input is 50 % slower too (45.0 → 67.5 ms)")


def test_a_change_reads_as_one_line(week):
    (change,) = judged(night(8, {"naive": 120}), week).changes.changes
    sentence = change_sentence(change)
    assert sentence.startswith("naive +100 % [+")
    assert sentence.endswith("since 2026-06-08: nothing seen that explains it")
