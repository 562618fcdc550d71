"""Trials leave nothing behind, whatever ends them."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from feedbench.config import Settings
from feedbench.errors import OutputError
from feedbench.progress import Lines, Silent
from feedbench.training import launch
from feedbench.training.job import Job
from feedbench.training.launch import Death, scratch_folder

TESTS = Path(__file__).parents[1]


def test_a_scratch_folder_is_empty_its_own_and_gone_afterwards(tmp_path, monkeypatch):
    monkeypatch.setenv("FEEDBENCH_SCRATCH", str(tmp_path))
    with scratch_folder("naive-1") as one, scratch_folder("naive-1") as other:
        assert one != other
        assert list(one.iterdir()) == []
    assert list(tmp_path.iterdir()) == []


def test_what_a_kill_left_is_swept_by_the_next_try_and_what_lives_is_not(tmp_path, monkeypatch):
    """A child process holds a folder and is killed with SIGKILL; another folder is held meanwhile."""
    monkeypatch.setenv("FEEDBENCH_SCRATCH", str(tmp_path))
    code = (
        "import sys, time\nfrom feedbench.training.launch import scratch_folder\n"
        "with scratch_folder('killed') as f:\n    (f / 'cache.lockfile').touch()\n"
        "    print(f, flush=True)\n    time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    left = Path(child.stdout.readline().strip())
    child.kill()
    child.wait()
    assert (left / "cache.lockfile").exists()
    with scratch_folder("alive") as alive:
        assert not left.exists()
        with scratch_folder("another"):
            assert alive.exists()


def test_a_scratch_folder_has_a_name_that_any_disk_takes(tmp_path, monkeypatch):
    monkeypatch.setenv("FEEDBENCH_SCRATCH", str(tmp_path))
    with scratch_folder("r" * 250 + "-ß" * 30 + "-1") as folder:
        assert folder.name.rpartition("-")[0].endswith("-ß-1")


@pytest.mark.parametrize("place", ["/proc/nope", "/etc/passwd"])
def test_a_place_that_takes_no_scratch_folder_is_named_with_its_variable(monkeypatch, place):
    monkeypatch.setenv("FEEDBENCH_SCRATCH", place)
    with pytest.raises(OutputError, match=f"{place}: no scratch folder .*FEEDBENCH_SCRATCH"), scratch_folder("n"):
        pass


def job(out: Path, **settings: int) -> Job:
    return Job(
        run_id="r", variant="naive", round=1, settings=Settings(**settings), index="/i", photos_root="/p",
        out=str(out), scratch="/s", weights=None, parent_pid=1,
    )  # fmt: skip


@pytest.mark.parametrize(("then", "told"), [("exit 3", "exit code 3"), ("sleep 47", "trial_timeout_s=1")])
def test_a_process_that_left_the_group_holds_nothing_up_and_does_not_stay(tmp_path, monkeypatch, then, told):
    """It has a session of its own, and holds the pipe: the child's end or its time-out is the end for it, too."""

    def start(out, write_end, mark):
        (out / launch.LOG).touch()
        command = f'setsid sleep 47 & echo $! > {out}/left; echo \'{{"note": "hi"}}\' >&{write_end}; {then}'
        env = {**os.environ, launch._MARK: mark}
        return subprocess.Popen(["bash", "-c", command], pass_fds=[write_end], start_new_session=True, env=env)

    monkeypatch.setattr(launch, "_start", start)
    start_s = time.monotonic()
    assert told in launch._watch(job(tmp_path, trial_timeout_s=1), Silent()).explain(0, 0)
    assert time.monotonic() - start_s < 40
    left = int((tmp_path / "left").read_text())
    assert until(lambda: not psutil.pid_exists(left) or psutil.Process(left).status() == "zombie", 20)


def test_what_a_trial_was_at_when_it_died_has_ended_too(tmp_path, monkeypatch):
    """It is told before the next trial begins, with its own time."""

    def start(out, write_end, mark):
        (out / launch.LOG).touch()
        event = '{"start": "training", "total": 50, "unit": "steps"}'
        return subprocess.Popen(["bash", "-c", f"echo '{event}' >&{write_end}; exit 3"], pass_fds=[write_end])

    monkeypatch.setattr(launch, "_start", start)
    told = io.StringIO()
    launch._watch(job(tmp_path), Lines(told))
    assert told.getvalue().splitlines() == ["training: 0 of 50 steps", "training: 0 of 50 steps in 0 s"]


def killed(signal_number: int, rss_mb: float) -> Death:
    return Death(wait_status=signal_number, peak_rss_mb=rss_mb, timeout_s=None, last_line="last")


def test_a_kill_by_the_kernel_for_memory_is_told_from_one_by_somebody(monkeypatch):
    monkeypatch.setattr("feedbench.training.launch.allowed_memory_mb", lambda: 8000)
    died = killed(signal.SIGKILL, 7000)
    assert died.explain(0, 1) == "signal 9: the kernel killed it for memory, peak RSS 7.0 GB of 8.0 GB allowed"
    assert died.explain(0, 0).startswith("signal 9, probably out of memory")
    assert (
        killed(signal.SIGKILL, 900).explain(0, 0) == "signal 9: killed from outside, peak RSS 900 MB of 8.0 GB allowed"
    )


def test_other_deaths_are_told_with_the_last_words():
    assert "signal 11 (SIGSEGV)" in killed(signal.SIGSEGV, 900).explain(None, None)
    assert Death(3 << 8, 900, None, "boom").explain(None, None) == "exit code 3 without a result; last words: boom"
    assert Death(signal.SIGKILL, 900, 90, "").explain(0, 0) == "killed after 1 min 30 s (trial_timeout_s=90)"


def processes(mark: bytes) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if b"feedbench.training.trial" in command and mark in command:
            found.append(int(process.name))
    return found


def until(condition, seconds):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.2)
    return condition()


@pytest.mark.tensorflow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_no_trial_outlives_its_parent_whatever_ends_that(photos, tmp_path, how):
    """The parent is ended in mid-trial: politely, by Ctrl-C, and with SIGKILL."""
    out = tmp_path / "artifacts"
    command = [
        sys.executable, "-m", "feedbench.cli", "run", photos, "--accelerator", "emulated", "--emulated-step-ms", "200",
        "--image-size", "32", "--batch-size", "8", "--steps", "500", "--profile-steps", "8", "--variants", "naive",
        "--out", out,
    ]  # fmt: skip
    mark = str(out).encode()
    parent = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "FEEDBENCH_SCRATCH": str(tmp_path)},
        # A shell's background jobs, and so these tests in one, are deaf to Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert until(lambda: processes(mark), 90)
    time.sleep(2)
    parent.send_signal(how)
    assert until(lambda: not processes(mark), 20)
    _, told = parent.communicate(timeout=20)
    assert parent.returncode != 0
    assert (f"`feedbench report {out}/runs/cli__" in told) == (how == signal.SIGINT)
