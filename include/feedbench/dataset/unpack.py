"""Archives from anywhere, unpacked safely: regular files and folders inside the target only, within limits.

Links, devices, absolute names and names with `..` are refused, not skipped: an archive that has them is no photo
archive. Python's own `data` filter (PEP 706) stands behind for tar.
"""

import bz2
import gzip
import lzma
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import IO, Any

from feedbench.errors import InputError
from feedbench.progress import BYTES, Progress, tracked
from feedbench.units import BYTES_PER_MB, mb

SUFFIXES = (".tgz", ".tar.gz", ".tar", ".tar.bz2", ".tar.xz", ".zip")

MAX_RATIO = 100
"""Unpacked to packed bytes. Photos are compressed already, about 1; a bomb has a thousand and more."""
ALWAYS_ALLOWED = 100 * BYTES_PER_MB
"""Whatever the ratio: drawings of one colour pack well."""
MAX_FILES = 20_000_000
_MAX_HEADER = 64 * 1024 * 1024

_COMPRESSED: dict[bytes, Callable[..., Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
_BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    NotImplementedError,  # a compression that zipfile does not know
    RuntimeError,  # an encrypted zip
    ValueError,
)


def unpack(archive: Path, target: Path, progress: Progress) -> None:
    """Unpack into `target`, a new folder: what a killed try left there is removed first.

    Raises InputError naming the archive and what is wrong with it; `target` is gone then.
    """
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    size = archive.stat().st_size
    budget = _Budget(size, shutil.disk_usage(target).free)
    try:
        with archive.open("rb") as file, tracked(progress, f"unpack {archive.name}", size, BYTES) as advance:
            if _start(file).startswith(b"PK"):
                _unzip(file, target, budget, advance)
            else:
                _untar(file, target, budget, advance)
    except _BROKEN as error:
        shutil.rmtree(target)
        raise InputError(f"{archive}: cannot be unpacked: {error}") from None


class _Refused(ValueError):
    """A member that no photo archive has."""


class _Budget:
    """What an archive may still take on the disk."""

    def __init__(self, packed: int, free: int) -> None:
        self.allowed = max(ALWAYS_ALLOWED, MAX_RATIO * packed)
        self.free, self.bytes, self.files = free, 0, 0

    def spend(self, name: str, size: int) -> None:
        self.bytes += size
        self.files += 1
        if self.bytes > self.allowed:
            raise _Refused(f"{name}: more than {mb(self.allowed / BYTES_PER_MB)} unpacked, far more than photos are")
        if self.bytes > self.free:
            raise _Refused(f"{name}: more than the {mb(self.free / BYTES_PER_MB)} that the disk has free")
        if self.files > MAX_FILES:
            raise _Refused(f"{name}: more than {MAX_FILES:,} files")


def _untar(file: IO[bytes], target: Path, budget: _Budget, advance: Callable[[int], None]) -> None:
    start = _start(file)
    opener = next((opener for magic, opener in _COMPRESSED.items() if start.startswith(magic)), None)
    stream = _NoHugeHeader(opener(file) if opener else file)
    with tarfile.open(fileobj=stream, mode="r:") as tar:
        before = 0
        for member in tar:
            if not (member.isreg() or member.isdir()):
                raise _Refused(f"{member.name!r} is a link or device; only files and folders are unpacked")
            _check_name(member.name)
            budget.spend(member.name, member.size)
            tar.extract(member, target, filter="data")
            advance(file.tell() - before)
            before = file.tell()
        if opener is None:
            _check_end(file)


def _unzip(file: IO[bytes], target: Path, budget: _Budget, advance: Callable[[int], None]) -> None:
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            kind = stat.S_IFMT(member.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _Refused(f"{member.filename!r} is a link or device; only files and folders are unpacked")
            _check_name(member.filename)
            budget.spend(member.filename, member.file_size)  # zipfile reads no more than this
            archive.extract(member, target)
            advance(member.compress_size)


def _start(file: IO[bytes]) -> bytes:
    start = file.read(8)
    file.seek(0)
    return start


def _check_name(name: str) -> None:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or "\0" in name or (path.parts and path.parts[0].endswith(":")):
        raise _Refused(f"{name!r} would lie outside of the folder")


def _check_end(file: IO[bytes]) -> None:
    """A plain tar that was cut between two files reads well; what it lacks is the two empty blocks at its end."""
    file.seek(-2 * tarfile.BLOCKSIZE, 2)
    if any(file.read()):
        raise _Refused("the archive ends too early")


class _NoHugeHeader:
    """A stream that refuses to be read in one huge piece: tarfile takes extended headers whole, as long as they claim
    to be, while contents are copied in small pieces."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.seek, self.tell = stream.seek, stream.tell

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _MAX_HEADER:
            raise _Refused(f"a header of {size:,} bytes")
        return self._stream.read(size)
