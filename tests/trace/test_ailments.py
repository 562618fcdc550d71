"""Whatever the bytes, the answer is a profile or a reason: never an exception, never zeros for measurements."""

import gzip
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from feedbench.errors import InputError
from feedbench.records import Profile
from feedbench.trace import read_profile
from feedbench.trace.xplane_pb2 import XPlane, XSpace

CALM = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def read(tmp_path: Path, content: bytes) -> Profile:
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(content)
    return read_profile(path)


@pytest.fixture
def good(drawing, steps) -> bytes:
    """A drawn capture with all parts: some kilobytes."""
    calls = [(f"Iterator::Root::BatchV2{below}", at, at + 5) for at in range(0, 200, 20) for below in ("", "::Map")]
    ops = [("model/dense/MatMul:MatMul", at + 7, at + 9) for at in range(0, 200, 20)]
    drawing.thread("python", [*steps(10, 20, 5), *calls, *ops])
    drawing.plane("/device:GPU:0", device_vendor="NVIDIA")
    drawing.thread("Stream #13(Compute)", [("kernel", at + 7, at + 9) for at in range(0, 200, 20)], "/device:GPU:0")
    return drawing.space.SerializeToString()


def never_zeros(profile: Profile) -> None:
    """An unusable profile holds no measurement at all, a usable one with steps a step time above zero."""
    if profile.status == "unusable":
        assert profile == Profile(file=profile.file, status="unusable", reason=profile.reason)
        assert profile.reason
    elif profile.steps:
        assert profile.step_time_ms.mean > 0


@CALM
@given(content=st.binary(max_size=400))
def test_arbitrary_bytes_never_raise(tmp_path: Path, content: bytes) -> None:
    never_zeros(read(tmp_path, content))


@CALM
@given(seed=st.integers(0, 2**32), flips=st.integers(1, 40))
def test_a_profile_with_bits_flipped_never_raises(tmp_path: Path, good: bytes, seed: int, flips: int) -> None:
    chance, mangled = random.Random(seed), bytearray(good)
    for _ in range(flips):
        mangled[chance.randrange(len(mangled))] ^= 1 << chance.randrange(8)
    never_zeros(read(tmp_path, bytes(mangled)))


@CALM
@given(st.data())
def test_a_profile_cut_anywhere_is_unusable(tmp_path: Path, good: bytes, data) -> None:
    """But for a cut between planes, which leaves a whole, smaller profile."""
    kept = data.draw(st.integers(1, len(good) - 1))
    profile = read(tmp_path, good[:kept])
    never_zeros(profile)
    # Only where the device's plane and the host's name behind the first plane are what is lost.
    first_plane = len(XSpace(planes=XSpace.FromString(good).planes[:1]).SerializeToString())
    assert profile.status == "unusable" or kept >= first_plane


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (gzip.compress(b"anything"), "gzip"),
        (b"PK\x03\x04rest", "zip"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n", "git lfs pull"),
        (b"<!DOCTYPE html><html></html>", "web page"),
        (b'{"traceEvents": []}', "JSON"),
        (b"step,time\n1,20\n2,21\n", "text"),
        (b"\x00" * 100, "damaged or no profile"),
        (XSpace(hostnames=["h"]).SerializeToString(), "no plane"),
        (XSpace(planes=[XPlane(name="/host:CPU")]).SerializeToString(), "no events"),
    ],
)
def test_the_reason_says_what_the_file_is(tmp_path: Path, content: bytes, reason: str) -> None:
    profile = read(tmp_path, content)
    assert profile.status == "unusable"
    assert reason in profile.reason
    never_zeros(profile)


def test_two_profiles_appended_are_told(tmp_path: Path, good: bytes) -> None:
    assert "two profiles in one" in read(tmp_path, good + good).reason


def test_a_profile_taken_for_text_is_told(tmp_path: Path, good: bytes) -> None:
    """As a copy through a text-mode program leaves it."""
    noisy = good + bytes(range(128, 256)) * 20
    assert "UTF-8" in read(tmp_path, noisy.decode("utf-8", "replace").encode()).reason


def test_a_profile_with_changed_line_ends_is_told(tmp_path: Path, good: bytes) -> None:
    assert "line ends" in read(tmp_path, good.replace(b"\n", b"\r\n")).reason


def test_a_folder_is_told_the_profile_in_it(tmp_path: Path, good: bytes) -> None:
    inner = tmp_path / "plugins" / "profile" / "run"
    inner.mkdir(parents=True)
    assert "no .xplane.pb" in read_profile(tmp_path).reason
    (inner / "vm.xplane.pb").write_bytes(good)
    assert str(inner / "vm.xplane.pb") in read_profile(tmp_path).reason


def test_a_missing_file_is_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_profile(tmp_path / "nothing.xplane.pb")


def test_many_nameless_events_make_a_profile_unusable(drawing, steps, tmp_path: Path) -> None:
    drawing.thread("python", steps(10, 20, 5))
    del drawing.space.planes[0].event_metadata[1]
    assert "damaged" in read(tmp_path, drawing.space.SerializeToString()).reason


def test_a_few_damaged_events_are_left_out_with_a_note(drawing, steps, tmp_path: Path) -> None:
    drawing.thread("python", [*steps(10, 20, 5), ("Iterator::Root::Map", 0, 1)])
    drawing.space.planes[0].lines[0].events[3].duration_ps = -1
    profile = read(tmp_path, drawing.space.SerializeToString())
    assert profile.status == "ok"
    assert any("1 of 21 events" in note for note in profile.notes)


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("empty", "empty"),
        ("truncated_half", "ends too early"),
        ("gzipped", "gzip"),
        ("crlf_mangled", "line ends"),
        ("doubled", "two profiles in one"),
        ("lfs_pointer", "git lfs pull"),
        ("utf8_mangled", "UTF-8"),
        ("bitflips200", "damaged"),
    ],
)
def test_bad_profiles_as_found_in_the_wild(real_data: Path, name: str, reason: str) -> None:
    profile = read_profile(real_data / "bad_profiles" / f"{name}.xplane.pb")
    assert profile.status == "unusable"
    assert reason in profile.reason
    never_zeros(profile)
