"""The generator of large profiles writes what a real long training would: any length reads alike, in little memory."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from feedbench.trace import read_profile

PERF = Path(__file__).parents[2] / "perf"


@pytest.fixture(scope="module")
def make_profile():
    spec = importlib.util.spec_from_file_location("make_profile", PERF / "make_profile.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_profile"] = module
    spec.loader.exec_module(module)
    return module.make_profile


def test_every_step_is_whole_and_alike(make_profile, tmp_path: Path) -> None:
    events = make_profile(tmp_path / "a.xplane.pb", steps=20)
    profile = read_profile(tmp_path / "a.xplane.pb")
    assert (profile.status, profile.steps, profile.slowest_stage) == ("ok", 20, "Map")
    assert events > 20 * 5000
    assert profile.step_time_ms.min == profile.step_time_ms.max == pytest.approx(44.7)
    assert [row.number for row in profile.step_table] == list(range(20, 40))
    assert profile.executed_pipeline == ("TensorSlice", "Map", "Shuffle", "ForeverRepeat", "BatchV2")
    map_stage = next(stage for stage in profile.stages if stage.operator == "Map")
    assert {op.type: op.count for op in map_stage.ops} == {"DecodeJpeg": 160, "ResizeBilinear": 160, "ReadFile": 160}


def test_the_size_asked_for_is_the_size(make_profile, tmp_path: Path) -> None:
    make_profile(tmp_path / "a.xplane.pb", megabytes=5)
    assert (tmp_path / "a.xplane.pb").stat().st_size == pytest.approx(5e6, rel=0.06)


def test_memory_does_not_grow_with_the_file(make_profile, tmp_path: Path) -> None:
    """40 MB against 10 MB, read in pieces of half a megabyte: peak resident memory, the mapped file included."""
    code = (
        "import resource, sys; from feedbench.trace import read_profile, xplane; xplane.PIECE_BYTES = 500_000; "
        "assert read_profile(sys.argv[1]).status == 'ok'; "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000)"
    )
    peaks = []
    for megabytes in (10, 40):
        path = tmp_path / f"{megabytes}.xplane.pb"
        make_profile(path, megabytes=megabytes)
        done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
        peaks.append(float(done.stdout))
    assert peaks[1] - peaks[0] < 10
