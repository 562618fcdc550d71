"""What the verbs make of the files that trials leave, in a folder and in an object store."""

import pytest

from feedbench.config import Settings
from feedbench.flow import trials
from feedbench.flow.evidence import read_evidence
from feedbench.flow.results import _xprof_reader, write_report
from feedbench.progress import Silent
from feedbench.records import Accelerator, Comparison, DataSet, PlannedTrial, Profile, Run, Trial
from feedbench.store import Store, write_bytes
from planted.machines import machine

PLANNED = PlannedTrial(variant="naive", round=1)


def trial(**changes) -> Trial:
    fields = {"run_id": "r", "variant": "naive", "round": 1, "status": "ok", "started_at": "", "finished_at": ""}
    measured = {"machine": machine(hostname="gpu-worker"), "accelerator": Accelerator(kind="gpu", name="T4")}
    return Trial(**(fields | measured | {"step_times_ms": (50.0,)} | changes))


@pytest.fixture(params=["folder", "memory"])
def store(request, tmp_path):
    return Store(tmp_path if request.param == "folder" else f"memory://{tmp_path.name}")


@pytest.fixture
def run(store, tmp_path):
    (tmp_path / "photos").mkdir()
    data = DataSet(
        source="s", path=str(tmp_path / "photos"), fingerprint="f", classes=("a", "b"), photos=60, rejects=0,
        train_photos=32, validation_photos=12,
    )  # fmt: skip
    run = Run(
        run_id="r", created_at="2026-01-01T00:00:00+00:00", settings=Settings(), method_version=1, data=data,
        variants=(), trials=(PLANNED,), machine=machine(hostname="planner"),
    )  # fmt: skip
    store.run("r").write_run(run)
    write_bytes(store.run("r").index, b"")
    return run


def evidence(store):
    return read_evidence(store.run("r"), PLANNED)


def test_a_record_that_cannot_be_read_is_told_from_one_that_is_not_there(store, run):
    assert "no result was written" in evidence(store).failure
    write_bytes(store.run("r").trial(PLANNED).path / "trial.json", b'{"schema_version": 99}')
    assert "schema_version 99, but this Feedbench reads up to" in evidence(store).failure


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"step_times_ms": ()}, "status ok, but without step_times_ms"),
        ({"machine": None, "accelerator": None}, "status ok, but without machine, accelerator"),
        ({"step_times_ms": (0.0,)}, "step_times_ms.0 Input should be greater than or equal to 0.000001"),
        ({"step_times_ms": (1e308,)}, "step_times_ms.0 Input should be less than or equal to 1000000000000"),
        ({"variant": "prefetch", "round": 2}, "the record of prefetch #2, not of this"),
    ],
)
def test_a_record_that_is_no_whole_one_of_this_trial_is_a_failure_with_the_reason(store, run, changes, reason):
    folder = store.run("r").trial(PLANNED)
    write_bytes(folder.path / "trial.json", trial().model_copy(update=changes).model_dump_json().encode())
    assert reason in evidence(store).failure


def test_a_profile_that_is_a_link_to_nowhere_is_unusable_with_the_reason(tmp_path):
    folder = Store(tmp_path).run("r").trial(PLANNED)
    folder.write_trial(trial())
    link = folder.logdir / "plugins" / "profile" / "1" / "h.xplane.pb"
    link.parent.mkdir(parents=True)
    link.symlink_to("nowhere")
    found = evidence(Store(tmp_path)).profile
    assert (found.status, found.reason) == ("unusable", f"{link}: no such file")


def test_two_profiles_of_one_trial_are_none_with_the_reason(store, run):
    folder = store.run("r").trial(PLANNED)
    folder.write_trial(trial())
    for time in ("1", "2"):
        write_bytes(folder.logdir / "plugins" / "profile" / time / "h.xplane.pb", b"x")
    assert evidence(store).profile.reason.startswith("2 profiles lie there")


def test_what_was_read_of_a_removed_profile_is_kept(store, run):
    """`prune` removes profiles; a report that is written anew afterwards says as much as before."""
    folder = store.run("r").trial(PLANNED)
    folder.write_trial(trial())
    folder.write_profile(Profile(file="h.xplane.pb", status="ok", executed_pipeline=("TensorSlice", "Map")))
    assert evidence(store).profile.executed_pipeline == ("TensorSlice", "Map")
    assert _xprof_reader(store.run("r"))(evidence(store)).reason == "no profiles are there, not one"
    folder.write_trial(trial(status="failed", reason="killed"))
    assert evidence(store).profile is None


@pytest.mark.parametrize("store", ["memory"], indirect=True)
def test_a_new_try_leaves_nothing_of_the_one_before(store, run, monkeypatch):
    """In an object store; a local folder is emptied by run_trial itself."""
    folder = store.run("r").trial(PLANNED)
    write_bytes(folder.logdir / "plugins" / "profile" / "1" / "h.xplane.pb", b"old")
    folder.write_trial(trial(status="failed", reason="the try before"))

    def lost(job, progress):
        raise KeyboardInterrupt

    monkeypatch.setattr(trials, "run_trial", lost)
    with pytest.raises(KeyboardInterrupt):
        trials.train(store, "r", PLANNED.model_dump(), Silent())
    assert "no result was written" in evidence(store).failure
    assert folder.xplanes() == []


def test_the_machine_told_is_the_one_that_trained(store, run):
    """The planner sits on another one in a stack with a GPU worker."""
    folder = store.run("r")
    comparison = Comparison(
        run_id="r",
        verdict="v",
        baseline="naive",
        fastest=(),
        accelerator=None,
        machine=machine(hostname="gpu-worker"),
        ceiling_ms=None,
        variants=(),
        batch_size=8,
    )
    write_report(folder, run, comparison)
    assert "gpu-worker" in folder.report_md.read_text()
    assert "planner" not in folder.report_md.read_text()
    assert folder.read_summary().machine.hostname == "gpu-worker"
