"""XProf's own words, beside ours; without it, or without an answer, the reason."""

from pathlib import Path

import pytest

from feedbench.trace import read_profile, xprof_tools
from feedbench.trace.xprof_tools import xprof_statement

PAGE = {
    "steptime_ms_average": "68.1",
    "infeed_time_ms_avg": "21.2",
    "input_conclusion": "Your program is HIGHLY input-bound because 31.1% of the total step time sampled is waiting.",
}


def test_step_time_share_and_sentence_are_taken_from_its_page() -> None:
    statement = xprof_tools._statement([{"p": None}, {"p": PAGE}])
    assert (statement.available, statement.step_time_ms, statement.statement) == (True, 68.1, PAGE["input_conclusion"])
    assert statement.input_share == pytest.approx(0.3113, abs=1e-4)


@pytest.mark.parametrize(
    "tables", [None, [], [{"p": {**PAGE, "steptime_ms_average": "0.0"}}], [{"p": {"steptime_ms_average": "nan"}}]]
)
def test_no_step_time_is_no_statement(tables) -> None:
    """XProf answers a broken file with nothing or with a page of zeros."""
    statement = xprof_tools._statement(tables)
    assert (statement.available, statement.step_time_ms, statement.input_share) == (False, None, None)
    assert statement.reason


def test_without_xprof_the_reason_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(xprof_tools, "find_spec", lambda name: None)
    assert xprof_statement(tmp_path / "a.xplane.pb").reason == "XProf is not installed"


def test_a_crash_of_xprof_is_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(b"x")
    monkeypatch.setattr(xprof_tools, "find_spec", lambda name: object())
    monkeypatch.setattr(xprof_tools, "__name__", "feedbench.trace.no_such_module")
    assert "exit code 1" in xprof_statement(path).reason


@pytest.mark.tensorflow
def test_xprof_agrees_with_us_and_leaves_nothing_behind(tensorflow_profiles: dict[str, Path]) -> None:
    """Both see the same steps, but XProf drops the first and the last of ten: within a fifth of each other."""
    path = tensorflow_profiles["slow_map"]
    before = sorted(path.parent.iterdir())
    statement = xprof_statement(path)
    ours = read_profile(path)
    assert statement.available
    assert statement.step_time_ms == pytest.approx(ours.step_time_ms.mean, rel=0.2)
    assert statement.input_share == pytest.approx(ours.input_wait_share, rel=0.2)
    assert "input-bound" in statement.statement
    assert sorted(path.parent.iterdir()) == before
