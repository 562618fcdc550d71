"""Trials leave nothing behind, whatever ends them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

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
        command, stderr=subprocess.DEVNULL, env={**os.environ, "FEEDBENCH_SCRATCH": str(tmp_path)}
    )
    assert until(lambda: processes(mark), 90)
    time.sleep(2)
    parent.send_signal(how)
    assert until(lambda: not processes(mark), 20)
    assert parent.wait(20) != 0
