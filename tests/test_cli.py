"""The command line, whole: real training in processes of its own, from photos to a report."""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from feedbench.errors import OutputError, SettingsError
from feedbench.flow.reach import check_writable, reached

SMALL = ["--accelerator", "emulated", "--emulated-step-ms", "5", "--image-size", "32", "--batch-size", "8",
         "--steps", "10", "--profile-steps", "8", "--warmup-steps", "2"]  # fmt: skip


def feedbench(*arguments: object, env: dict[str, str] | None = None) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "feedbench.cli", *map(str, arguments)],
        capture_output=True, text=True, timeout=500, check=False, env={**os.environ, **(env or {})},
    )  # fmt: skip


def trials_running() -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = process.read_bytes()
        except OSError:
            continue
        if b"feedbench.training.trial" in command and b"pytest-" in command:
            found.append(command.decode().replace("\0", " "))
    return found


@pytest.fixture(scope="module")
def run(photos, tmp_path_factory):
    """One run of five variants, shared by the tests below."""
    out = tmp_path_factory.mktemp("artifacts")
    names = "naive,prefetch,cache_memory,cache_file,uint8_cache,tf_default"
    done = feedbench("run", photos, *SMALL, "--variants", names, "--rounds", 1, "--out", out, "--json")
    assert done.returncode == 0, done.stderr[-3000:]
    return out, json.loads(done.stdout), done.stderr


@pytest.mark.tensorflow
def test_every_executed_chain_is_the_declared_one(run):
    _, comparison, _ = run
    chains = {v["name"]: v["pipeline"] for v in comparison["variants"]}
    assert chains["naive"]["executed"] == ["TensorSlice", "Map", "Shuffle", "ForeverRepeat", "BatchV2"]
    assert {name for name, chain in chains.items() if not chain["matches"]} == {"tf_default"}
    assert "Prefetch" in chains["tf_default"]["executed"]
    assert "ParallelMapV2" in chains["tf_default"]["executed"] or "MapAndBatch" in chains["tf_default"]["executed"]


@pytest.mark.tensorflow
def test_caches_are_proved_warm_and_their_sizes_told(run):
    """48 photos of 32 x 32 x 3: 0.59 MB as float32, a quarter as uint8."""
    _, comparison, _ = run
    rows = {v["name"]: v for v in comparison["variants"]}
    for name in ("cache_memory", "cache_file", "uint8_cache"):
        assert any(note.startswith("warm:") for note in rows[name]["notes"]), name
        assert rows[name]["fill_s"] > 0
    assert rows["cache_memory"]["cache_mb"] == pytest.approx(48 * 32 * 32 * 3 * 4 / 1e6)
    assert rows["uint8_cache"]["cache_mb"] == pytest.approx(48 * 32 * 32 * 3 / 1e6)
    assert rows["cache_file"]["cache_mb"] == pytest.approx(rows["cache_memory"]["cache_mb"], rel=0.1)
    assert rows["naive"]["cache_mb"] is None


@pytest.mark.tensorflow
def test_measured_steps_are_whole_passes_and_the_window_lies_behind_them(run):
    """48 training photos in batches of 8: 6 steps a pass, so 10 steps become 12; the window starts at 2 + 12."""
    out, comparison, _ = run
    assert comparison["steps_per_pass"] == 6
    for trial in out.glob("runs/*/trials/*/1/trial.json"):
        record = json.loads(trial.read_text())
        assert len(record["step_times_ms"]) == 12
        assert record["window"] == {"first_step": 14, "steps": 8, "first_step_in_pass": 2}


@pytest.mark.tensorflow
def test_tensorboard_has_an_event_file_beside_exactly_one_profile_of_each_trial(run):
    out, _, _ = run
    logdirs = list(out.glob("runs/*/trials/*/1/train"))
    assert len(logdirs) == 7
    for logdir in logdirs:
        assert len(list(logdir.glob("plugins/profile/*/*.xplane.pb"))) == 1
        assert list(logdir.glob("events.out.tfevents.*"))


@pytest.mark.tensorflow
def test_the_report_can_be_written_anew_from_the_files(run):
    out, comparison, _ = run
    folder = next(out.glob("runs/*"))
    (folder / "report.html").unlink()
    done = feedbench("report", folder, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["fastest"] == comparison["fastest"]
    assert (folder / "report.html").stat().st_size > 10_000


@pytest.mark.tensorflow
def test_progress_tells_phase_steps_and_what_is_left(run):
    _, _, told = run
    assert "trial 1 of 7" in told
    assert "training: 22 of 22 steps" in told
    assert "filling the cache" in told


@pytest.mark.tensorflow
def test_trials_that_raise_die_or_hang_are_rows_with_their_reasons_and_nothing_stays(photos, misbehaved, tmp_path):
    """One raising, one killed with SIGKILL and one timing out, all in mid-epoch; the next run starts clean."""
    env = {"PYTHONPATH": str(misbehaved), "FEEDBENCH_SCRATCH": str(tmp_path / "scratch")}
    common = ["run", photos, *SMALL, "--variant-modules", "misbehaved", "--out", tmp_path / "artifacts", "--json"]
    done = feedbench(*common, "--variants", "naive,raise_,kill,hang", "--trial-timeout-s", "60", env=env)
    assert done.returncode == 1, done.stderr[-3000:]
    rows = {v["name"]: v for v in json.loads(done.stdout)["variants"]}
    assert [rows[name]["status"] for name in ("naive", "raise_", "kill", "hang")] == ["ok", *["failed"] * 3]
    assert rows["raise_"]["reason"] == "round 1: in a function of Map: ValueError: planted: photo 60 is cursed"
    assert "signal 9: killed from outside, peak RSS" in rows["kill"]["reason"]
    assert "killed after 1 min 00 s (trial_timeout_s=60)" in rows["hang"]["reason"]
    assert next((tmp_path / "artifacts").glob("runs/*/report.html")).stat().st_size > 10_000
    assert trials_running() == []
    assert list((tmp_path / "scratch").iterdir()) == []
    again = feedbench(*common, "--variants", "naive", env=env)
    assert again.returncode == 0, again.stderr[-3000:]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run", "synthetic", "--steps", "0"], "steps=0"),
        (["run", "synthetic", "--profile-steps", "50"], "profile_steps=50: longer than the steps=30"),
        (["run", "synthetic", "--variants", "prefetsch"], "no such variant; did you mean 'prefetch'"),
        (["run", "synthetic", "--image-size", "7"], "image_size=7"),
        (["run", "synthetic", "--photos", "9000000", "--image-size", "1024"], "needs"),
        (["run", "synthetic", "--photos", "30", "--batch-size", "64"], "batch_size=64"),
        (["run", "no/such/folder"], "no/such/folder"),
        (["run", "synthetic", "--weights", "no.h5"], "weights='no.h5'"),
        (["run", "synthetic", "--out", "nosuch://bucket"], "nosuch"),
    ],
)
def test_bad_settings_end_with_exit_code_2_before_anything_is_made(tmp_path, monkeypatch, arguments, told):
    monkeypatch.chdir(tmp_path)
    done = feedbench(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_unusable_profile_is_exit_code_3_with_the_reason(tmp_path):
    (tmp_path / "x.xplane.pb").write_bytes(b"")
    done = feedbench("inspect", tmp_path / "x.xplane.pb", "--json")
    assert done.returncode == 3
    assert json.loads(done.stdout)["status"] == "unusable"


def test_a_missing_profile_or_run_is_named(tmp_path):
    for verb in ("inspect", "report"):
        done = feedbench(verb, tmp_path / "gone")
        assert done.returncode == 3
        assert "gone" in done.stderr
        assert "Traceback" not in done.stderr


def test_a_copy_of_a_run_outside_of_runs_is_not_taken_for_the_run_of_that_name(tmp_path):
    (tmp_path / "trash" / "r").mkdir(parents=True)
    (tmp_path / "trash" / "r" / "run.json").write_text("{}")
    done = feedbench("report", tmp_path / "trash" / "r")
    assert done.returncode == 3
    assert "no folder runs/<run_id>" in done.stderr


@pytest.mark.parametrize(
    "place",
    ["/proc/x", "/etc/passwd", "s3://", "http://127.0.0.1:9/x", "data:,x", "zip:///etc/passwd", "nul\0", "memory://x"],
)
def test_artefacts_that_can_be_kept_nowhere_are_named_before_anything_is_drawn(place):
    with pytest.raises((OutputError, SettingsError), match=re.escape(place.rstrip("\0"))):
        check_writable(reached(place))


def test_a_file_where_a_folder_belongs_is_a_line_with_its_name(tmp_path):
    (tmp_path / "runs").touch()
    done = feedbench("history", "--out", tmp_path)
    assert (done.returncode, done.stderr) == (1, f"feedbench: {tmp_path / 'runs'}: Not a directory\n")


@pytest.mark.parametrize(
    ("output", "code", "told"),
    [("| true", 141, ""), ("> /dev/full", 1, "feedbench: output: No space left on device\n")],
)
def test_output_that_is_not_taken_ends_without_frames(output, code, told):
    command = f"sleep 0.1; {sys.executable} -m feedbench.cli variants --json {output}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, told)


def test_the_index_of_a_folder_is_printed(photos, tmp_path):
    done = feedbench("index", photos, "--out", tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["photos"]) == 60


def test_the_index_tells_all_that_cannot_be_used_however_much_it_is(photos, tmp_path):
    shutil.copytree(photos, tmp_path / "photos")
    for number in range(40):
        (tmp_path / "photos" / "rose" / f"broken{number}.jpg").write_bytes(b"no photo")
    done = feedbench("index", tmp_path / "photos", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "60 photos, 40 rejects" in done.stdout
    assert done.stdout.count("rose/broken") == 40


def test_fewer_photos_than_a_batch_can_be_indexed(photos, tmp_path):
    done = feedbench("index", photos, "--photos", "20", "--out", tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["photos"]) == 20


def test_variants_are_listed_with_why():
    done = feedbench("variants")
    assert "prefetch\n    overlap preprocessing with the train step\n    TensorSlice > Map" in done.stdout


@pytest.mark.tensorflow
def test_tensorboard_lists_every_trial_with_its_profile(run):
    """A real TensorBoard on the run's folder, asked over its own HTTP interface."""
    out, comparison, _ = run
    trials = next(out.glob("runs/*/trials"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    board = subprocess.Popen(
        [sys.executable, "-m", "tensorboard.main", "--logdir", trials, "--host", "127.0.0.1", "--port", str(port)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wanted = {f"{v['name']}/1/train" for v in comparison["variants"]} | {"ceiling/1/train"}
        listed: set[str] = set()
        end = time.monotonic() + 120
        while not wanted <= listed and time.monotonic() < end:
            time.sleep(1)
            with contextlib.suppress(httpx.HTTPError):
                runs = httpx.get(f"http://127.0.0.1:{port}/data/plugin/profile/runs", timeout=30).json()
                listed = {run.rpartition("/")[0] for run in runs}
        assert listed == wanted
    finally:
        board.terminate()
        board.wait(30)


def test_output_that_cannot_show_a_star_ends_no_run(tmp_path):
    """ASCII, strictly: stars and dashes come out as question marks, not as a stack of frames."""
    (tmp_path / "runs").mkdir()
    shutil.copytree(Path(__file__).parent / "golden" / "run_v2", tmp_path / "runs" / "run_v2")
    strict = {"PYTHONIOENCODING": "ascii:strict"}
    done = feedbench("history", "--out", tmp_path, env=strict)
    assert (done.returncode, done.stderr) == (0, "")
    assert "?" in done.stdout
