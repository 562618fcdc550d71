"""Which events are steps, and what of them was waiting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedbench.trace.steps import WAIT, Markers, find_steps, percentile


def test_waits_are_clipped_to_their_step() -> None:
    """A wait from 8 to 13 lies 2 in the step that ends at 10 and 3 in the next."""
    steps, _ = find_steps(Markers(recognised={"train": [(0, 10, 1), (10, 20, 2)]}), [[(8, 13)]])
    assert [step.waited for step in steps] == [2, 3]


def test_waits_on_two_threads_at_once_count_once() -> None:
    steps, _ = find_steps(Markers(recognised={"train": [(0, 10, 1)]}), [[(1, 5)], [(3, 6)]])
    assert steps[0].waited == 5


def test_no_wait_op_is_unknown_not_zero() -> None:
    steps, _ = find_steps(Markers(recognised={"train": [(0, 10, 1)]}), [])
    assert steps[0].waited is None


def test_a_step_that_did_not_wait_has_zero_where_others_waited() -> None:
    steps, _ = find_steps(Markers(recognised={"train": [(0, 10, 1), (10, 20, 2)]}), [[(1, 2)]])
    assert [step.waited for step in steps] == [1, 0]


def test_the_outer_marker_counts() -> None:
    steps, _ = find_steps(Markers(recognised={"train": [(0, 10, 1), (2, 8, 5), (10, 20, 2)]}), [])
    assert [step.number for step in steps] == [1, 2]


def test_numbered_markers_go_before_the_devices_line() -> None:
    markers = Markers(recognised={"train": [(0, 10, 4)]}, device={"0": (1, 3, 0)})
    assert [step.number for step in find_steps(markers, [])[0]] == [4]


def test_markers_without_root_flag_are_used_and_told() -> None:
    steps, notes = find_steps(Markers(unrecognised={"Profiled batch": [(0, 10, 0)]}), [])
    assert len(steps) == 1
    assert "_r=1" in notes[0]


def test_no_markers_say_so() -> None:
    steps, notes = find_steps(Markers(), [[(1, 2)]])
    assert steps == []
    assert "No step markers" in notes[0]


@pytest.mark.parametrize(
    "name",
    [
        "IteratorGetNextOp::DoCompute",
        "IteratorGetNextAsOptionalOp::DoCompute",
        "MultiDeviceIteratorGetNextFromShardOp::DoCompute",
    ],
)
def test_wait_ops_of_all_kinds_are_known(name: str) -> None:
    assert WAIT.fullmatch(name)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=40))
def test_percentile_is_numpys(values: list[float]) -> None:
    assert percentile(values, 0.95) == pytest.approx(np.percentile(values, 95), rel=1e-9, abs=1e-9)
