"""The verbs of a run over several nights: compare tells what changed, the gate is red, a person accepts."""

import io

import pytest

from feedbench.cli import main
from feedbench.errors import Regressed, SettingsError, TrialFailed
from feedbench.flow.acceptance import accept
from feedbench.flow.gate import gate
from feedbench.flow.results import compare_run
from feedbench.progress import Lines
from feedbench.store import Store
from planted.trials import Planted


class Nights:
    """A store in which each night is a run whose trials took planted times."""

    def __init__(self, root):
        self.store, self.count = Store(root), 0

    def night(self, failed=False, **step_ms):
        self.count += 1
        run_id = f"night_{self.count}"
        planted = Planted({"naive": 100.0, "prefetch": 60.0} | step_ms)
        run = planted.run.model_copy(
            update={"run_id": run_id, "created_at": f"2026-06-{self.count:02d}T02:30:00+00:00"}
        )
        folder = self.store.run(run_id)
        folder.write_run(run)
        for (variant, _), evidence in planted.evidence.items():
            trial = evidence.trial
            if failed and variant == "prefetch":
                trial = trial.model_copy(update={"status": "failed", "reason": "out of memory", "step_times_ms": ()})
            folder.trial(evidence.planned).write_trial(trial)
        compare_run(self.store, run_id, Lines(io.StringIO()))
        return run_id

    def history(self, run_id):
        return self.store.run(run_id).read_comparison().history


@pytest.fixture
def nights(tmp_path):
    return Nights(tmp_path)


def test_three_nights_the_third_twice_as_slow_is_red_and_its_report_says_so(nights):
    for _ in range(2):
        gate(nights.store, nights.night())
    third = nights.night(naive=200.0)
    with pytest.raises(Regressed, match=r"naive \+100 % \[\+\d+ %, \+\d+ %\] since 2026-06-03"):
        gate(nights.store, third)
    assert nights.history(third).compared_with == "night_2"
    report = nights.store.run(third).report_md.read_text()
    assert "naive is 100 % slower" in report


def test_a_variant_that_failed_is_told_before_one_that_regressed(nights):
    nights.night(), nights.night()
    with pytest.raises(TrialFailed, match="prefetch: round 1: out of memory"):
        gate(nights.store, nights.night(naive=200.0, failed=True))


def test_a_failed_night_is_no_good_night(nights):
    """The failed variant's next night is held against the one before it."""
    nights.night(), nights.night(), nights.night(failed=True, prefetch=300.0)
    fourth = nights.night()
    gate(nights.store, fourth)
    assert nights.history(fourth).changes == ()


def test_a_regression_below_the_limit_is_told_and_is_not_red(nights):
    for _ in range(8):
        nights.night()
    nights.night(naive=107.0)
    tenth = nights.night(naive=107.0)
    (change,) = nights.history(tenth).changes
    assert change.size.value == pytest.approx(0.07, abs=0.02)
    gate(nights.store, tenth)


def test_one_bad_night_is_a_warning_in_the_report_and_not_red(nights):
    for _ in range(8):
        nights.night()
    bad = nights.night(naive=120.0)
    gate(nights.store, bad)
    warnings = nights.store.run(bad).read_comparison().warnings
    assert any(warning.startswith("naive is 20 % slower tonight") for warning in warnings)


def test_an_accepted_regression_is_not_red_tonight_nor_later(nights, capsys):
    nights.night(), nights.night()
    third = nights.night(naive=200.0)
    root = str(nights.store.root)
    assert main(["accept", third, "naive", "--reason", "more augmentation", "--out", root]) == 0
    gate(nights.store, third)
    assert "Accepted: more augmentation" in nights.store.run(third).report_md.read_text()
    fourth = nights.night(naive=200.0)
    gate(nights.store, fourth)
    assert nights.history(fourth).changes == ()


@pytest.mark.parametrize("content", ["{", "", "[]"])
def test_acceptances_that_cannot_be_read_are_a_warning_and_accept_nothing(nights, content):
    nights.night(), nights.night()
    (nights.store.root / "accepted.json").write_text(content)
    third = nights.night(naive=200.0)
    with pytest.raises(Regressed):
        gate(nights.store, third)
    *_, warning = nights.store.run(third).read_comparison().warnings
    assert warning.startswith("No regression counts as accepted")
    assert "accepted.json" in warning


def test_without_acceptance_the_nights_stay_red(nights):
    nights.night(), nights.night()
    for _ in range(3):
        with pytest.raises(Regressed, match="since 2026-06-03"):
            gate(nights.store, nights.night(naive=200.0))


def test_only_what_regressed_can_be_accepted_and_only_with_a_reason(nights):
    nights.night(), nights.night()
    third = nights.night(naive=200.0)
    with pytest.raises(SettingsError, match="'prefetch': not slower in this run; slower: naive"):
        accept(nights.store, third, "prefetch", "why not")
    with pytest.raises(SettingsError, match="reason"):
        accept(nights.store, third, "naive", " ")


def test_a_run_compared_again_is_held_against_the_nights_before_it_only(nights):
    nights.night(), nights.night(), nights.night(naive=200.0)
    compare_run(nights.store, "night_2", Lines(io.StringIO()))
    assert nights.history("night_2").compared_with == "night_1"
    assert nights.history("night_2").changes == ()
