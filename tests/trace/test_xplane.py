"""Files are walked without being held: lines piece by piece, whatever their length."""

from pathlib import Path

import pytest

from feedbench.trace import xplane
from feedbench.trace.xplane import Damaged, open_capture
from feedbench.trace.xplane_pb2 import XLine, XSpace


def events_of(path: Path) -> list[tuple[str, int, int]]:
    with open_capture(path) as capture:
        return [
            (plane.names[event.metadata_id], start, end)
            for plane in capture.planes
            for line in plane.lines
            for event, start, end in line.events()
        ]


def test_a_long_line_is_read_in_pieces_and_gives_the_same_events(
    drawing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2,000 events with texts up to 300 characters (so lengths of one and of two bytes), in pieces of 100 bytes up."""
    drawing.thread("long", [(f"e{n % 50}", n, n + 0.5, {"text": "x" * (n % 300)}) for n in range(2000)])
    path = drawing.save(tmp_path / "a.xplane.pb")
    whole = events_of(path)
    assert len(whole) == 2000
    for size in (100, 1000, 4096):
        monkeypatch.setattr(xplane, "PIECE_BYTES", size)
        assert events_of(path) == whole


def test_pieces_are_no_longer_than_asked_for(drawing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawing.thread("long", [("e", n, n + 1) for n in range(1000)])
    path = drawing.save(tmp_path / "a.xplane.pb")
    monkeypatch.setattr(xplane, "PIECE_BYTES", 500)
    with open_capture(path) as capture:
        sizes = [piece.ByteSize() for piece in capture.planes[0].lines[0].pieces()]
    assert len(sizes) > 10
    assert max(sizes) <= 500


def test_times_count_from_the_earliest_line(drawing, tmp_path: Path) -> None:
    """Captures may give nanoseconds since 1970, which as picoseconds would not fit 64 bits."""
    since_1970 = 1_795_975_861_522_262_260
    drawing.thread("first", [("a", 0, 1)], timestamp_ns=since_1970)
    drawing.thread("second", [("b", 0, 1)], timestamp_ns=since_1970 + 5_000_000)
    assert events_of(drawing.save(tmp_path / "a.xplane.pb")) == [("a", 0, 10**9), ("b", 5 * 10**9, 6 * 10**9)]


def test_an_impossible_time_is_told_apart(drawing, tmp_path: Path) -> None:
    """A negative duration, and an event sixty days in."""
    drawing.thread("t", [("a", 0, 1), ("b", 1, 2)])
    first, second = drawing.space.planes[0].lines[0].events
    first.duration_ps = -5
    second.offset_ps = 60 * 86_400 * 10**12
    assert [span[1:] for span in events_of(drawing.save(tmp_path / "a.xplane.pb"))] == [(-1, -1), (-1, -1)]


def test_references_in_stats_are_resolved(drawing, tmp_path: Path) -> None:
    drawing.thread("t", [("a", 0, 1, {"name": "MapDataset:1", "id": 7})])
    with open_capture(drawing.save(tmp_path / "a.xplane.pb")) as capture:
        plane = capture.planes[0]
        (event, *_), *_ = plane.lines[0].events()
        assert plane.stats_of(event) == {"name": "MapDataset:1", "id": 7}


@pytest.mark.parametrize("kept", [1, 5, 20, 60])
def test_an_end_cut_off_is_damage(drawing, tmp_path: Path, kept: int) -> None:
    drawing.thread("t", [("a", 0, 1), ("b", 1, 2)])
    content = drawing.space.SerializeToString()
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(content[:kept])
    with pytest.raises(Damaged, match=r"too early|damaged"):
        events_of(path)


def test_another_message_is_no_profile(tmp_path: Path) -> None:
    """A line by itself: a valid message, whose first field is a number where a profile has a plane."""
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(XLine(id=3, name="x").SerializeToString())
    with pytest.raises(Damaged, match="no profile"):
        events_of(path)


def test_hosts_errors_and_warnings_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(XSpace(hostnames=["h"], errors=["e"], warnings=["w"]).SerializeToString())
    with open_capture(path) as capture:
        assert (capture.hosts, capture.errors, capture.warnings) == (("h",), ("e",), ("w",))
