"""Starts a trial as a process of its own, watches it, kills it with all its children, explains its death."""

import fcntl
import json
import os
import secrets
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import psutil

from feedbench.errors import OutputError
from feedbench.progress import Progress
from feedbench.records import Trial
from feedbench.store import TrialFolder, write_bytes, writing
from feedbench.training.job import Job
from feedbench.training.machine import allowed_memory_mb, oom_kills
from feedbench.units import BYTES_PER_MB, mb, seconds

SCRATCH = "FEEDBENCH_SCRATCH"
"""Environment variable: local disk for the cache files of cache variants; defaults to the temporary folder."""
_NAME_LENGTH = 40
"""Of a scratch folder's name, which is for people: a run id and a variant together can be longer than a name may be."""
LOG = "trial.log"
_MARK = "FEEDBENCH_TRIAL"
"""Environment variable that all processes of one trial inherit, and no others: what they are found by at the end."""


def run_trial(job: Job, progress: Progress) -> Trial:
    """Run the job to its end and return its record, which lies in `job.out` too.

    A trial that fails, dies or takes longer than `settings.trial_timeout_s` gives a record with its reason.
    Raises OutputError when the record cannot be written.
    Whatever ends this call (an error, a signal that raises), the child and all that it started are killed.
    """
    folder = TrialFolder(Path(job.out))
    shutil.rmtree(folder.path, ignore_errors=True)  # a try before this one, killed half way
    with writing(folder.path):
        folder.path.mkdir(parents=True)
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    kills_before = oom_kills()
    with _ended_by_sigterm():
        death = _watch(job, progress)
    if folder.has_record():
        return folder.read_trial()
    trial = Trial(
        run_id=job.run_id,
        variant=job.variant,
        round=job.round,
        status="failed",
        reason=death.explain(kills_before, oom_kills()),
        started_at=started_at,
        finished_at=datetime.now(UTC).isoformat(timespec="seconds"),
        peak_rss_mb=death.peak_rss_mb,
    )
    folder.write_trial(trial)
    return trial


class Death:
    """How a child ended."""

    def __init__(self, wait_status: int, peak_rss_mb: float, timeout_s: float | None, last_line: str) -> None:
        self.code = os.waitstatus_to_exitcode(wait_status)
        self.peak_rss_mb = peak_rss_mb
        self._timeout_s = timeout_s
        self._last_line = last_line

    def explain(self, kills_before: int | None, kills_after: int | None) -> str:
        if self._timeout_s is not None:
            return f"killed after {seconds(self._timeout_s)} (trial_timeout_s={self._timeout_s:g})"
        if self.code >= 0:
            return f"exit code {self.code} without a result; last words: {self._last_line or 'none'}"
        name = signal.Signals(-self.code).name
        rss = f"peak RSS {mb(self.peak_rss_mb)}"
        if self.code != -signal.SIGKILL:
            return f"died of signal {-self.code} ({name}), {rss}; last words: {self._last_line or 'none'}"
        allowed = allowed_memory_mb()
        if kills_before is not None and kills_after is not None and kills_after > kills_before:
            return f"signal 9: the kernel killed it for memory, {rss} of {mb(allowed)} allowed"
        if self.peak_rss_mb > 0.7 * allowed:
            return f"signal 9, probably out of memory, {rss} of {mb(allowed)} allowed"
        return f"signal 9: killed from outside, {rss} of {mb(allowed)} allowed"


def _watch(job: Job, progress: Progress) -> Death:
    """Start the child, pass its progress on until it ends or its time is up."""
    out = Path(job.out)
    write_bytes(out / "job.json", job.model_dump_json(indent=1).encode())
    read_end, write_end = os.pipe()
    with os.fdopen(read_end) as events:
        mark = secrets.token_hex(8)
        try:
            child = _start(out, write_end, mark)
        finally:
            os.close(write_end)
        timed_out = threading.Event()
        timer = threading.Timer(job.settings.trial_timeout_s, lambda: (timed_out.set(), _kill_all(child.pid, mark)))
        timer.start()
        try:
            _pass_on(events.fileno(), child.pid, progress)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        finally:
            timer.cancel()
            _kill_all(child.pid, mark)
            if child.returncode is None:
                child.wait()
    return Death(
        status,
        usage.ru_maxrss * 1024 / BYTES_PER_MB,
        job.settings.trial_timeout_s if timed_out.is_set() else None,
        _last_line(out / LOG),
    )


def _start(out: Path, write_end: int, mark: str) -> subprocess.Popen:
    with writing(out / LOG):
        log = (out / LOG).open("wb")
    with log:
        return subprocess.Popen(
            [sys.executable, "-m", "feedbench.training.trial", str(out / "job.json"), str(write_end)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=[write_end],
            start_new_session=True,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", _MARK: mark},
        )


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """While a trial runs, SIGTERM ends this call: Airflow's own handler only tells the operator, which would wait."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _: object) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _pass_on(events: int, pid: int, progress: Progress) -> None:
    """Replay the child's progress until it ends; what it was at then has ended, too."""
    try:
        for line in _lines(events, pid):
            event = json.loads(line)
            if "start" in event:
                progress.start(event["start"], event["total"], event["unit"])
            elif "advance" in event:
                progress.advance(event["advance"])
            elif "note" in event:
                progress.note(event["note"])
            else:
                progress.done()
    finally:
        progress.done()


def _lines(events: int, pid: int) -> Iterator[bytes]:
    """Whole lines until the child closes its end or dies: a process that it started may hold the pipe for longer."""
    death, waiting, rest = os.pidfd_open(pid), select.poll(), b""
    try:
        waiting.register(events, select.POLLIN)
        waiting.register(death, select.POLLIN)
        while events in dict(waiting.poll()) and (piece := os.read(events, 1 << 16)):
            *lines, rest = (rest + piece).split(b"\n")
            yield from lines
    finally:
        os.close(death)


def _kill_all(pid: int, mark: str) -> None:
    """Kill the child, its group, and what it started that left the group, whoever is its parent by now."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    for process in psutil.process_iter():
        with suppress(psutil.Error):  # gone meanwhile, or somebody else's
            if process.environ().get(_MARK) == mark:
                process.kill()


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip()[:300] if lines else ""


@contextmanager
def scratch_folder(name: str) -> Iterator[Path]:
    """An empty folder of this try's own on local disk, removed at the end.

    A lock held while it lives tells the folders of living tries from those that a kill -9 left behind, which the
    next try removes.
    """
    base = Path(os.environ.get(SCRATCH) or Path(tempfile.gettempdir()) / f"feedbench-{os.getuid()}")
    folder = base / f"{name[-_NAME_LENGTH:]}-{secrets.token_hex(4)}"
    with ExitStack() as living:
        try:
            living.enter_context(_claimed(folder))
        except OSError as error:
            raise OutputError(
                f"{base}: no scratch folder ({error.strerror}); set {SCRATCH} to a local folder"
            ) from None
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            _lock_file(folder).unlink(missing_ok=True)


@contextmanager
def _claimed(folder: Path) -> Iterator[None]:
    """The folder made, and its lock held."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as living:
        with _held(folder.parent):  # else a sweep could take a lock file that is not locked yet
            _sweep(folder.parent)
            fcntl.flock(living.enter_context(_lock_file(folder).open("w")), fcntl.LOCK_EX)
        folder.mkdir()
        yield


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _lock_file(folder: Path) -> Path:
    return folder.with_name(folder.name + ".lock")


def _sweep(base: Path) -> None:
    for lock_path in base.glob("*.lock"):
        with lock_path.open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            shutil.rmtree(lock_path.with_suffix(""), ignore_errors=True)
            lock_path.unlink(missing_ok=True)
