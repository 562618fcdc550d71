"""The plan of a trial's steps."""

import pytest

from feedbench.config import Settings


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("photos", "measured", "in_pass"),
    [(224, 35, 5), (960, 30, 5), (96, 30, 2), (3200, 100, 5)],
)
def test_measured_steps_are_whole_passes_and_at_least_as_many_as_asked_for(photos, measured, in_pass):
    """Thirty steps of 32 asked for, five of warm-up: 7, 30, 3 and 100 steps a pass."""
    from feedbench.training.window import StepPlan

    plan = StepPlan.of(Settings(), photos)
    assert plan.measured == measured
    assert plan.window.first_step == 5 + measured
    assert plan.window.first_step_in_pass == in_pass
    assert plan.total == 5 + measured + 12
