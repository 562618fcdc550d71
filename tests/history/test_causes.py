"""Two nights side by side."""

import pytest

from feedbench.history.causes import environment, stages
from feedbench.records import NightlyStage
from planted.machines import machine
from planted.nights import night


def stage(self_ms, parallelism=None, operator="Map"):
    return NightlyStage(operator=operator, self_ms=self_ms, parallelism=parallelism)


def test_equal_nights_differ_in_nothing():
    assert environment(night(1, {}), night(2, {})) == ()


@pytest.mark.parametrize(
    ("before", "now", "sentence"),
    [
        ({"cores": 16}, {"cores": 8}, "cores 16 → 8"),
        ({"memory_mb": 64_000}, {"memory_mb": 32_000}, "memory 64.0 GB → 32.0 GB"),
        ({"gpus": ("V100",)}, {"gpus": ()}, "GPU V100 → none"),
        ({"driver": "550"}, {"driver": "560"}, "GPU driver 550 → 560"),
        ({"kernel": "6.1"}, {"kernel": "6.2"}, "kernel 6.1 → 6.2"),
        (
            {"packages": {"tensorflow": "2.20.0"}},
            {"packages": {"tensorflow": "2.21.0"}, "lock_hash": "bbb"},
            "tensorflow 2.20.0 → 2.21.0",
        ),
        ({"lock_hash": "aaa"}, {"lock_hash": "bbb"}, "other Python packages changed"),
    ],
)
def test_what_differs_in_the_machine_is_one_sentence(before, now, sentence):
    assert environment(night(1, {}, machine=machine(**before)), night(2, {}, machine=machine(**now))) == (sentence,)


def test_a_few_megabytes_are_the_same_memory():
    assert environment(night(1, {}), night(2, {}, machine=machine(memory_mb=64_003))) == ()


def test_code_and_conditions_count():
    now = night(2, {}, git_revision="def", conditions={"data": "g", "batch_size": "32"})
    assert environment(night(1, {}), now) == ("data f → g", "code abc → def")


def test_the_stage_that_took_most_of_the_change_comes_first():
    before = [(stage(10), stage(5, operator="Shuffle"), stage(4, operator="BatchV2"))] * 3
    now = (stage(12), stage(9, operator="Shuffle"), stage(4.1, operator="BatchV2"))
    assert stages(before, now, change_ms=6) == [
        "self time of Shuffle +80 % (5.00 → 9.00 ms a step)",
        "self time of Map +20 % (10.0 → 12.0 ms a step)",
    ]


def test_a_stage_that_got_faster_does_not_explain_a_slower_step():
    assert stages([(stage(10),)], (stage(5),), change_ms=6) == []


def test_one_odd_window_among_the_nights_before_does_not_matter():
    assert stages([(stage(10),), (stage(90),), (stage(10),)], (stage(12),), 2) == [
        "self time of Map +20 % (10.0 → 12.0 ms a step)"
    ]


def test_unknown_parallelism_is_not_told_as_a_change():
    assert stages([(stage(10, None),)], (stage(10, 4),), 2) == []


def test_another_pipeline_is_not_compared_stage_by_stage():
    assert stages([(stage(10),)], (stage(12), stage(1, operator="Prefetch")), 2) == []
