"""One xplane.pb file, opened without holding it in memory: planes first, then one line (thread or stream) at a time.

The file is mapped, and only the outermost two levels of the wire format are walked here; generated code decodes one
line, or one piece of a long line, at a time, and the pages behind it are given back. So memory stays the same for a
file of a gigabyte. Times are picoseconds from the earliest line of the file.

Wire format: https://protobuf.dev/programming-guides/encoding/
"""

import mmap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from feedbench.trace.xplane_pb2 import XEvent, XEventMetadata, XLine, XPlane, XSpace

PIECE_BYTES = 8_000_000
"""A line longer than this is decoded in pieces."""
LONGEST_PS = 2**62
"""About 53 days: no capture lasts longer, so a later event is a damaged one. Fits a signed 64-bit integer twice."""
_PS_PER_NS = 1000
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_PLANES, _LINES, _EVENTS = 1, 3, 4
_EVENT_TAG = _EVENTS << 3 | _BYTES
_SPACE_FIELDS = frozenset((1, 2, 3, 4))
_PLANE_FIELDS = {1: _VARINT, 2: _BYTES, 3: _BYTES, 4: _BYTES, 5: _BYTES, 6: _BYTES}


class Damaged(Exception):
    """The bytes are not what they should be; the message completes `the file ...`."""


@dataclass(frozen=True)
class Line:
    """A thread of a host or a stream of a device: its header, and its events on demand."""

    name: str
    size: int
    base_ps: int
    """Add an event's offset to get its start."""
    _data: mmap.mmap
    _start: int

    def pieces(self) -> Iterator[XLine]:
        """The line's events in the file's order (by start), some megabytes at a time. Raises Damaged."""
        at, end, size = self._start, self._start + self.size, PIECE_BYTES
        while at < end:
            content = self._data[at : min(at + size, end)]
            if at + len(content) < end:
                border = _last_border(content)
                if not border:
                    size *= 2
                    continue
                content = content[:border]
            yield _decode(XLine, content, f"in line {self.name!r}")
            _give_back(self._data, at, at + len(content))
            at += len(content)

    def events(self) -> Iterator[tuple[XEvent, int, int]]:
        """Each event with its start and end in ps; (event, -1, -1) for one outside any possible capture."""
        for piece in self.pieces():
            for event in piece.events:
                start = self.base_ps + event.offset_ps
                end = start + event.duration_ps
                yield (event, start, end) if 0 <= start <= end < LONGEST_PS else (event, -1, -1)


@dataclass(frozen=True)
class Plane:
    """A host or a device."""

    name: str
    lines: tuple[Line, ...]
    names: Mapping[int, str]
    """Of events, by metadata id."""
    details: Mapping[int, XEventMetadata]
    stat_names: Mapping[int, str]
    stats: Mapping[str, Any]

    def stats_of(self, holder: Any) -> dict[str, Any]:
        """The stats of an event or of an event's metadata, by name, references resolved."""
        return {self.stat_names.get(stat.metadata_id, ""): self.value(stat) for stat in holder.stats}

    def value(self, stat: Any) -> Any:
        kind = stat.WhichOneof("value")
        if kind is None:
            return None
        value = getattr(stat, kind)
        return self.stat_names.get(value, "") if kind == "ref_value" else value

    def stat_ids(self, name: str) -> frozenset[int]:
        return frozenset(key for key, known in self.stat_names.items() if known == name)


@dataclass(frozen=True)
class Capture:
    planes: tuple[Plane, ...]
    hosts: tuple[str, ...]
    errors: tuple[str, ...]
    warnings: tuple[str, ...]


@contextmanager
def open_capture(path: Path) -> Iterator[Capture]:
    """The capture in a non-empty file. Raises Damaged, then or while its lines are read; OSError as `open` does."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield _capture(data)


def _capture(data: mmap.mmap) -> Capture:
    places, header = [], []
    for number, wire, begin, start, end in _fields(data, 0, len(data)):
        if number not in _SPACE_FIELDS or wire != _BYTES:
            raise Damaged(f"is no profile: byte {begin} cannot be the start of a plane")
        if number == _PLANES:
            places.append((start, end))
        else:
            header.append(data[begin:end])
    space = _decode(XSpace, b"".join(header), "in its header")
    drafts = [_plane_draft(data, start, end) for start, end in places]
    origin_ns = min((head.timestamp_ns for _, lines in drafts for head, *_ in lines), default=0)
    return Capture(
        planes=tuple(_plane(data, head, lines, origin_ns) for head, lines in drafts),
        hosts=tuple(space.hostnames),
        errors=tuple(space.errors),
        warnings=tuple(space.warnings),
    )


_Draft = tuple[XLine, int, int]


def _plane_draft(data: mmap.mmap, start: int, end: int) -> tuple[XPlane, list[_Draft]]:
    """A plane without its lines, and the header and place of each line.

    Metadata follows the lines in the file, so a plane is walked to its end before its first line is read.
    """
    lines: list[_Draft] = []
    rest = []
    for number, wire, begin, inner, after in _fields(data, start, end):
        if _PLANE_FIELDS.get(number) != wire:
            raise Damaged(f"is damaged: byte {begin} is no part of a plane")
        if number == _LINES:
            lines.append((_line_header(data, inner, after), inner, after))
        else:
            rest.append(data[begin:after])
    return _decode(XPlane, b"".join(rest), "in the names of a plane"), lines


def _line_header(data: mmap.mmap, start: int, end: int) -> XLine:
    """A line up to its first event: name and time come first in the file."""
    stop = start
    for number, _, begin, _, after in _fields(data, start, end):
        if number >= _EVENTS:
            stop = begin
            break
        stop = after
    return _decode(XLine, data[start:stop], "at the head of a line")


def _plane(data: mmap.mmap, head: XPlane, lines: list[_Draft], origin_ns: int) -> Plane:
    stat_names = {key: entry.name for key, entry in head.stat_metadata.items()}
    plane = Plane(
        name=head.name,
        lines=tuple(
            Line(line.name, end - start, (line.timestamp_ns - origin_ns) * _PS_PER_NS, data, start)
            for line, start, end in lines
        ),
        names={key: entry.name for key, entry in head.event_metadata.items()},
        details=head.event_metadata,
        stat_names=stat_names,
        stats={},
    )
    plane.stats.update(plane.stats_of(head))
    return plane


def _last_border(content: bytes) -> int:
    """Where the last whole field of the beginning of a line ends; 0 when not even one is whole.

    A loop of its own, since it passes over every event of a long line: a tag, a length of mostly one byte, content.
    """
    at = border = 0
    size = len(content)
    while at + 2 < size:
        length = content[at + 1]
        if content[at] == _EVENT_TAG and length < 0x80:
            at += 2 + length
        else:
            try:
                at = next(_fields(content, at, size))[-1]
            except Damaged:
                break
        if at > size:
            break
        border = at
    return border


def _fields(data: mmap.mmap | bytes, start: int, end: int) -> Iterator[tuple[int, int, int, int, int]]:
    """Fields of a message: number, wire type, where the field begins, where its value begins and ends."""
    at = start
    while at < end:
        begin = at
        key, at = _varint(data, at, end)
        number, wire = key >> 3, key & 7
        if wire == _BYTES:
            length, at = _varint(data, at, end)
            after = at + length
        elif wire == _VARINT:
            after = _varint(data, at, end)[1]
        elif wire in (_FIXED64, _FIXED32):
            after = at + (8 if wire == _FIXED64 else 4)
        else:
            raise Damaged(f"is damaged or no profile: byte {begin} of {len(data):,} starts no field")
        if number == 0:
            raise Damaged(f"is damaged or no profile: byte {begin} of {len(data):,} starts no field")
        if after > end:
            raise Damaged(f"ends too early: a part that starts at byte {begin:,} of {len(data):,} has no end")
        yield number, wire, begin, at, after
        at = after


def _varint(data: mmap.mmap | bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise Damaged(f"is damaged or ends too early: no whole number at byte {at:,} of {len(data):,}")


def _decode(kind: Any, content: bytes, where: str) -> Any:
    try:
        return kind.FromString(content)
    except DecodeError:
        raise Damaged(f"is damaged {where}: its bytes cannot be decoded") from None


def _give_back(data: mmap.mmap, start: int, end: int) -> None:
    """Tells the kernel that these pages are not needed again, so that they do not count as resident."""
    if hasattr(data, "madvise"):
        page = mmap.PAGESIZE
        first = start // page * page
        data.madvise(mmap.MADV_DONTNEED, first, end - first)
