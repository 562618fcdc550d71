"""Verified data sets, kept on a local disk by their fingerprint; whatever is half done lies apart from them.

datasets/<fingerprint>/        a whole data set: it got here by one rename
        /.sources/<key>.json   which source had which fingerprint; written last
        /.work/<key>/          what a fetch is at; the next one goes on with it
        /.lock                 held by the fetch that works here; the system frees it when a process dies
"""

import hashlib
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import Field, ValidationError
from upath import UPath

from feedbench.dataset.folders import class_root, fingerprint, listing
from feedbench.errors import InputError
from feedbench.progress import Progress
from feedbench.records import Record
from feedbench.store import Store, write_bytes

_STALE_S = 24 * 3600
"""A fetch that nobody took up again in a day is given up: its work folder goes."""


@dataclass(frozen=True)
class Fetched:
    """A verified data set: its fingerprint, and where it is."""

    fingerprint: str
    path: str
    """`datasets/<fingerprint>` in the store, or absolute for a local folder that is used where it lies."""


class Note(Record):
    """What is known of a source that was fetched before."""

    fingerprint: str
    files: int
    bytes: int
    """Files and bytes of the data set, to notice one that somebody has deleted from."""
    version: dict[str, str] = Field(default_factory=dict)
    """ETag and Last-Modified of an address, sizes and times of files: to notice that it is something else now."""


def key(identity: str) -> str:
    """A file name for a source; its address may hold secrets."""
    return hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()[:24]


def note_file(datasets: UPath, identity: str) -> UPath:
    return datasets / ".sources" / f"{key(identity)}.json"


def read_note(datasets: UPath, identity: str) -> Note | None:
    """None for a source that is new here, or whose note was written by another version."""
    try:
        return Note.model_validate_json(note_file(datasets, identity).read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def write_note(datasets: UPath, identity: str, note: Note) -> None:
    write_bytes(note_file(datasets, identity), note.model_dump_json().encode())


class Keep:
    """The data sets of one local store."""

    def __init__(self, store: Store) -> None:
        self.datasets = store.datasets
        self._folder = Path(store.datasets)

    def known(self, identity: str) -> Note | None:
        """The note of a source whose data set is here and whole; no photo is read."""
        note = read_note(self.datasets, identity)
        return note if note and _extent(self.folder(note.fingerprint)) == (note.files, note.bytes) else None

    def folder(self, fingerprint_: str) -> Path:
        return self._folder / fingerprint_

    @contextmanager
    def work(self, identity: str, progress: Progress) -> Iterator[Path]:
        """The folder to fetch this source in, alone: it may hold what a killed fetch left, and goes when all is done.

        Whoever else fetches into this store waits meanwhile.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        with _locked(self._folder / ".lock", progress):
            mine = self._folder / ".work" / key(identity)
            self._sweep()
            mine.mkdir(parents=True, exist_ok=True)
            yield mine
            shutil.rmtree(mine)

    def take(self, identity: str, unpacked: Path, version: dict[str, str], progress: Progress) -> Note:
        """Move a finished data set in and note its source. Raises InputError when there is no file in class folders."""
        root = class_root(unpacked)
        found = fingerprint(root, progress)
        if not listing(root).files:
            raise InputError(f"{unpacked}: no photos in class folders; one sub-folder per class is expected")
        target = self.folder(found)
        files, size = _extent(root)
        if _extent(target) != (files, size):
            shutil.rmtree(target, ignore_errors=True)  # damaged, or from a folder of the same name
            root.rename(target)
        note = Note(fingerprint=found, files=files, bytes=size, version=version)
        write_note(self.datasets, identity, note)
        return note

    def _sweep(self) -> None:
        """Remove what killed fetches left behind; what is fresh of it (a download to go on with) at a later time."""
        for folder in (self._folder / ".work").glob("*"):
            if _age_s(folder) > _STALE_S:
                shutil.rmtree(folder)
        for unfinished in (self._folder / ".sources").glob(".*"):
            if _age_s(unfinished) > _STALE_S:
                unfinished.unlink()


@contextmanager
def _locked(file: Path, progress: Progress) -> Iterator[None]:
    lock = FileLock(file)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        progress.note(f"waiting for another fetch into {file.parent}")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _age_s(path: Path) -> float:
    return time.time() - path.stat().st_mtime


def _extent(root: Path) -> tuple[int, int] | None:
    """Number and bytes of all files that may be photos; None when there is no such folder."""
    if not root.is_dir():
        return None
    files = listing(root).files
    return len(files), sum((root / file).stat().st_size for file in files)
