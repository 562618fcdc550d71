"""What can go wrong at night, done to the running stack: every run ends with a true state and a report, and the next
trial meets no leftovers of the one before.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from stack.airflow_client import LONG, SMALL, AirflowClient
from stack.artifacts import overlapping, trials
from stack.native import NativeStack, wait_for

pytestmark = [pytest.mark.stack, pytest.mark.timeout(900)]

TRIAL = "feedbench.training.trial"


def trial_in_training(stack: NativeStack, airflow: AirflowClient, run_id: str) -> tuple[str, psutil.Process]:
    """Name and process of the run's trial that is taking steps now; waits until there is one."""

    def find():
        # Until its own name is known, which happens at any moment, a task is called train[0].
        states = airflow.states(run_id).items()
        running = [name for name, state in states if re.match(r"train\[.+ #", name) and state == "running"]
        told = [line["event"] for name in running for line in airflow.log(run_id, name)]
        processes = stack.processes(TRIAL)
        return (running[0], processes[0]) if processes and any(line.startswith("training: ") for line in told) else None

    return wait_for(f"a trial of {run_id} takes steps", find, 240)


def in_mid_trial(stack: NativeStack, airflow: AirflowClient) -> str:
    """A run whose first trial is training; returns its id."""
    run_id = airflow.trigger(LONG)
    trial_in_training(stack, airflow, run_id)
    return run_id


def assert_nothing_runs(stack: NativeStack) -> None:
    assert [process.cmdline() for process in stack.processes(TRIAL)] == []


def assert_told(store, run_id: str, *words: str) -> None:
    """The report stands, and its Markdown has these words."""
    text = store.run(run_id).report_md.read_text()
    assert [word for word in words if word not in text] == []


def end(processes: list[psutil.Process]) -> None:
    """Airflow's helpers that outlive Celery's parent where no container takes them along."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


class TestLosses:
    def test_whatever_is_killed_costs_its_own_trial_and_nothing_more(self, stack, airflow, on_local_disk, watched):
        """In one run of four trials: in the first the task's process is killed (as the kernel does for memory), in the
        second the whole worker (as a container is), which comes back, in the third Celery's parent alone.
        """
        run_id = airflow.trigger({**LONG, "variants": ["naive", "prefetch", "parallel_map"]})

        first, trial = trial_in_training(stack, airflow, run_id)
        trial.parent().kill()
        wait_for("the trial died with its task", lambda: not trial.is_running(), 10)

        second, trial = trial_in_training(stack, airflow, run_id)
        stack.kill_service("worker-cpu")
        wait_for("the trial died with its worker", lambda: not trial.is_running(), 10)
        stack.start_service("worker-cpu")

        third, _ = trial_in_training(stack, airflow, run_id)
        others = stack.kill_parent("worker-cpu")
        stack.start_service("worker-cpu")

        assert airflow.wait(run_id, 400) == "failed"
        end(others)
        assert len({first, second, third}) == 3
        found = trials(on_local_disk.run(run_id))
        planned = [trial.variant for trial in on_local_disk.run(run_id).read_run().trials]
        assert [trial.variant for trial in found][-1] == planned[3], "the last trial ran as if nothing had been"
        assert overlapping(found) == []
        assert_told(on_local_disk, run_id, "no result was written: the worker was lost")
        assert_nothing_runs(stack)


class TestInterruptions:
    def test_two_runs_at_once_through_a_stopped_scheduler_and_a_restarted_redis(
        self, stack, airflow, on_local_disk, watched
    ):
        """The scheduler stands still for 40 s, longer than its heartbeats may (30 s); redis restarts meanwhile. Both
        runs succeed, one trial at a time."""
        conf = {**SMALL, "variants": ["naive"]}
        runs = [airflow.trigger(conf), airflow.trigger(conf)]
        wait_for("a trial runs", lambda: stack.processes(TRIAL), 180)
        scheduler = stack.running["scheduler"].pid
        os.killpg(scheduler, signal.SIGSTOP)
        stack.stop_service("redis")
        time.sleep(40)
        stack.start_service("redis")
        os.killpg(scheduler, signal.SIGCONT)
        assert [airflow.wait(run_id, 400) for run_id in runs] == ["success", "success"]
        found = trials(*(on_local_disk.run(run_id) for run_id in runs))
        assert len(found) == 4
        assert overlapping(found) == []
        assert_nothing_runs(stack)

    def test_a_cancelled_run_stops_its_trial_and_has_a_report(self, stack, airflow, on_local_disk, watched):
        """Marked as failed in mid-trial: no further trial starts, and what there is of the run is reported."""
        run_id = in_mid_trial(stack, airflow)
        airflow.mark_failed(run_id)
        wait_for("the trial stops", lambda: not stack.processes(TRIAL), 60)
        assert airflow.wait(run_id) == "failed"
        states = airflow.states(run_id)
        assert (states["compare"], states["gate"]) == ("success", "failed")
        assert_told(on_local_disk, run_id, "No answer", "no result was written")
        assert_nothing_runs(stack)


@pytest.fixture
def small_disk(stack):
    """A disk of 48 MB in the place of the artefacts' folder."""
    folder = stack.native("/artifacts")
    mount = ["mount", "-t", "tmpfs", "-o", "size=48m,mode=755", "tmpfs", str(folder)]
    if subprocess.run(mount, check=False).returncode:
        pytest.skip("may not mount a tmpfs here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> Path:
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(1 << 12))
    assert shutil.disk_usage(folder).free == 0
    return filler


class TestFullDisk:
    def test_a_full_disk_fails_the_trials_and_the_report_says_so(
        self, stack, airflow, on_local_disk, small_disk, watched
    ):
        """Full from the middle of the first trial until the last has ended; there is room for the report again."""
        run_id = in_mid_trial(stack, airflow)
        filler = fill(small_disk)
        wait_for("all trials end", lambda: trial_states(airflow, run_id) == {"failed"}, 180)
        filler.unlink()
        assert airflow.wait(run_id) == "failed"
        assert_told(on_local_disk, run_id, "no result was written")
        assert "No space left on device" in reasons(airflow, run_id)
        assert_nothing_runs(stack)


def trial_states(airflow: AirflowClient, run_id: str) -> set[str | None]:
    return {state for name, state in airflow.states(run_id).items() if name.startswith("train")}


def reasons(airflow: AirflowClient, run_id: str) -> str:
    """The errors in the logs of the run's trials."""
    logs = [airflow.log(run_id, name) for name in airflow.states(run_id) if name.startswith("train")]
    return " ".join(line["event"] for log in logs for line in log if line.get("level") == "error")
