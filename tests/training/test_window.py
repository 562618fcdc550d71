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


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("photos", "given", "in_pass"),
    [
        (320, {"batch_size": 16, "shuffle_buffer": 1000}, 14),
        (48, {"batch_size": 8, "warmup_steps": 1, "steps": 7, "profile_steps": 5}, 4),
        (3840, {"warmup_steps": 112, "shuffle_buffer": 300, "profile_steps": 6}, 117),
    ],
)
def test_a_window_that_would_see_the_shuffle_buffer_alone_is_moved_over_the_seam(photos, given, in_pass):
    """All of a pass, or its end, comes out of the buffer: half of the window lies before the pass that fills it again.

    20 steps a pass less 6; 6 less 2; 120 less 3, where the window would lie in the last nine.
    """
    from feedbench.training.window import StepPlan

    plan = StepPlan.of(Settings(**given), photos)
    assert plan.window.first_step_in_pass == in_pass
    assert plan.first_profiled == plan.measured_end + plan.skipped
    assert 0 < plan.skipped < plan.per_pass
