"""Why a file is no readable profile, in words that tell a person what happened to it."""

from pathlib import Path

_HEAD_BYTES = 1_000_000
_REPLACEMENT = "\ufffd".encode()
_MAGIC = (
    (b"\x1f\x8b", "is gzip-compressed; unpack it first (gunzip)"),
    (b"PK\x03\x04", "is a zip archive; unpack it first"),
    (b"version https://git-lfs", "is a Git LFS pointer, not the profile; fetch it with `git lfs pull`"),
    (b"<!DOCTYPE", "is a web page, not a profile; download the file itself"),
    (b"<html", "is a web page, not a profile; download the file itself"),
    (b"{", "is JSON, perhaps an exported trace; give the .xplane.pb beside it"),
)


def not_a_file(path: Path) -> str | None:
    """What can be told without opening the file as a profile; None when it may be one."""
    if path.is_dir():
        first = next(iter(sorted(path.rglob("*.xplane.pb"))), None)
        return f"is a folder; give the profile in it: {first}" if first else "is a folder, and holds no .xplane.pb file"
    if not path.is_file():
        return "is no regular file"
    with path.open("rb") as file:
        head = file.read(64)
    if not head:
        return "is empty (0 bytes): the profiler was stopped before it wrote, or the disk was full"
    return next((reason for magic, reason in _MAGIC if head.startswith(magic)), None)


def how_damaged(path: Path, symptom: str) -> str:
    """The likely cause of damage, else the symptom itself."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    # A profile holds small numbers everywhere, so some thousand bytes of one have line feeds and bytes above 127.
    feeds, pairs = head.count(b"\n"), head.count(b"\r\n")
    if head.count(_REPLACEMENT) > max(3, len(head) / 5000):
        return "was mangled by a program that took it for UTF-8 text; copy it again as a binary file"
    if feeds > 8 and feeds == pairs:
        return "was mangled by a change of line ends (LF to CRLF); copy it again as a binary file"
    if head.isascii() and _is_printable(head):
        return "is text, not a profile"
    return symptom


def _is_printable(head: bytes) -> bool:
    return all(byte >= 32 or byte in b"\t\r\n\f" for byte in head)
