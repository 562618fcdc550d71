"""One word for a variant from two witnesses; the lines are XProf's 20 % and 5 % and MLPerf Storage's 90 %."""

import pytest

from feedbench.analysis.diagnose import diagnose


@pytest.mark.parametrize(
    ("wait", "utilisation", "verdict"),
    [
        (0.31, 0.66, "input-bound"),
        (0.20, 0.79, "input-bound"),
        (0.19, 0.85, "balanced"),
        (0.05, 0.80, "balanced"),
        (0.04, 0.95, "compute-bound"),
        (0.04, 0.90, "compute-bound"),
        (0.04, 0.89, "balanced"),
    ],
)
def test_witnesses_that_agree_give_their_word(wait, utilisation, verdict):
    judged = diagnose(wait, utilisation)
    assert (judged.verdict, judged.reason) == (verdict, None)


@pytest.mark.parametrize(("wait", "utilisation"), [(0.01, 0.60), (0.50, 0.97)])
def test_witnesses_that_contradict_each_other_are_both_quoted(wait, utilisation):
    judged = diagnose(wait, utilisation)
    assert judged.verdict == "balanced"
    assert "the witnesses disagree" in judged.reason
    assert f"{wait:.0%}".replace("%", " %") in judged.reason or f"{wait * 100:.1f} %" in judged.reason


def test_one_witness_alone_is_said_to_be_alone():
    assert diagnose(None, 0.95, "no step markers").reason == "by the clock alone: no step markers"
    assert diagnose(0.5, None).reason == "by the trace alone: no ceiling was measured"


def test_no_witness_is_not_measured_with_the_reason():
    judged = diagnose(None, None, "the profile is empty")
    assert (judged.verdict, judged.reason) == ("not measured", "the profile is empty")
