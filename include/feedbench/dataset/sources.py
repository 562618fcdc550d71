"""What a source is, and how its photos get to be a verified local folder.

`synthetic` and `flower_photos` by name; else an http(s) address or the path of an archive, or the path of a folder,
which is used where it lies. In a remote store a data set is one object, `datasets/<fingerprint>/photos.tar`: thousands
of small ones would take minutes each time.
"""

import os
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import httpx
from upath import UPath

from feedbench.config import Settings
from feedbench.dataset.download import Expected, current_version, download, same_version, shown
from feedbench.dataset.folders import class_root, count_photo_like, existing, fingerprint, listing, stat_identity
from feedbench.dataset.keep import Fetched, Keep, Note, read_note, write_note
from feedbench.dataset.synthetic import DEFAULT_PHOTOS, DRAWING_VERSION, draw_photos
from feedbench.dataset.unpack import SUFFIXES, unpack
from feedbench.errors import InputError, SettingsError, nearest
from feedbench.progress import BYTES, Progress, tracked
from feedbench.store import Store

__all__ = ["Fetched", "check_source", "expected_photos", "fetch", "localise"]

CACHE_ENVIRONMENT = "FEEDBENCH_CACHE"
FLOWER_PHOTOS = "https://storage.googleapis.com/download.tensorflow.org/example_images/flower_photos.tgz"
FLOWER_PHOTOS_EXPECTED = Expected(
    size=228_813_984, digest="sha256:4c54ace7911aaffe13a365c34f650e71dd5bf1be0a58b464e5a7183e3e595d9c"
)
FLOWER_PHOTOS_COUNT = 3670
_NAMES = ("synthetic", "flower_photos")
_PACKED = "photos.tar"


@dataclass(frozen=True)
class Source:
    kind: Literal["synthetic", "address", "archive", "folder"]
    place: str
    """Address, or absolute path; empty for synthetic."""
    expected: Expected = Expected()  # noqa: RUF009 frozen


def resolve(source: str) -> Source:
    """Raises SettingsError for what is neither a known name, nor an http(s) address, nor a path that exists."""
    if source == "synthetic":
        return Source("synthetic", "")
    if source == "flower_photos":
        return Source("address", FLOWER_PHOTOS, FLOWER_PHOTOS_EXPECTED)
    if "://" in source:
        return _address(source)
    path = existing(source)
    if path is not None and path.is_dir():
        return Source("folder", str(path))
    if path is not None and path.is_file():
        _check_suffix(source, path.name)
        return Source("archive", str(path))
    if path is not None:
        raise SettingsError(f"source={source!r}: neither a folder nor a file")
    if os.sep in source:
        raise SettingsError(f"source={source!r}: no such file or folder on this machine")
    hint = nearest(source, _NAMES)
    raise SettingsError(f"source={source!r}: no known name and no such file or folder{hint}, or an http(s) address")


def _address(source: str) -> Source:
    try:
        address = httpx.URL(source)
    except httpx.InvalidURL as error:
        raise SettingsError(f"source={source!r}: no valid address: {error}") from None
    if address.scheme not in ("http", "https") or not address.host:
        raise SettingsError(f"source={shown(source)!r}: only http:// and https:// addresses can be fetched")
    _check_suffix(shown(source), address.path)
    return Source("address", source)


def _check_suffix(source: str, name: str) -> None:
    if not name.lower().endswith(SUFFIXES):
        raise SettingsError(f"source={source!r}: no known kind of archive; use one of {', '.join(SUFFIXES)}")


def check_source(source: str) -> None:
    """Raises SettingsError, before anything is run, when `source` means nothing here."""
    resolve(source)


def expected_photos(settings: Settings) -> int | None:
    """How many photos a run will have at most, as far as that can be told without fetching or opening any."""
    source = resolve(settings.source)
    if source.kind == "synthetic":
        return settings.photos or DEFAULT_PHOTOS
    if source.kind == "folder":
        count = count_photo_like(Path(source.place))
        if not count:
            raise SettingsError(
                f"source={settings.source!r}: no file in it looks like a photo; one sub-folder per class is expected"
            )
    elif source.place == FLOWER_PHOTOS:
        count = FLOWER_PHOTOS_COUNT
    else:
        return None
    return min(count, settings.photos or count)


def fetch(settings: Settings, store: Store, progress: Progress) -> Fetched:
    """The source's photos, verified and where every worker on this store gets them. Instant the second time.

    May be killed at any moment and called again. Raises InputError naming what is wrong with the source.
    """
    source = resolve(settings.source)
    identity, version = _identity(source, settings), _version(source)
    note = _noted(store, identity, source, version)
    if note is None:
        note = _fetch_here(source, settings, identity, version, store, progress)
        if not store.is_local:
            _publish(_folder_of(source, note, store), store, identity, note, progress)
    if source.kind == "folder" and store.is_local:
        return Fetched(note.fingerprint, str(class_root(Path(source.place))))
    return Fetched(note.fingerprint, f"datasets/{note.fingerprint}")


def localise(store: Store, path: str, progress: Progress) -> Path:
    """The local folder of a data set that was fetched: itself, or a verified copy in $FEEDBENCH_CACHE.

    `path` as in Fetched. Raises InputError when it is gone.
    """
    place = Path(path) if Path(path).is_absolute() else None
    if place is None and store.is_local:
        place = Path(store.root / path)
    if place is None:
        return _cached(store, Path(path).name, progress)
    if not place.is_dir():
        raise InputError(f"{place}: the photos are gone; fetch them again")
    return place


def cache_store() -> Store:
    """Where this machine keeps copies from a remote store: $FEEDBENCH_CACHE, else ~/.cache/feedbench."""
    return Store(os.environ.get(CACHE_ENVIRONMENT) or Path.home() / ".cache" / "feedbench")


def local_store(store: Store) -> Store:
    return store if store.is_local else cache_store()


def _identity(source: Source, settings: Settings) -> str:
    """What a source is called. Whether it is still what it was, its version tells."""
    if source.kind == "synthetic":
        return f"synthetic {DRAWING_VERSION} photos={settings.photos or DEFAULT_PHOTOS} seed={settings.seed}"
    return f"{source.kind} {source.place} {source.expected.digest}"


def _version(source: Source) -> dict[str, str]:
    """What would change if the source did, told without reading it; empty when that cannot be told or never changes."""
    if source.kind == "folder":
        return {"files": stat_identity(class_root(Path(source.place)))}
    if source.kind == "archive":
        of = Path(source.place).stat()
        return {"file": f"{of.st_size} bytes, {of.st_mtime_ns}"}
    return current_version(source.place) if source.kind == "address" and not source.expected.digest else {}


def _noted(store: Store, identity: str, source: Source, version: dict[str, str]) -> Note | None:
    """The note of an earlier fetch, if its data set is still there and the source is still the same."""
    if not store.is_local:
        note = read_note(store.datasets, identity)
        note = note if note and (store.dataset(note.fingerprint) / _PACKED).exists() else None
    elif source.kind == "folder":
        note = read_note(store.datasets, identity)
    else:
        note = Keep(store).known(identity)
    return note if note and same_version(note.version, version) else None


def _fetch_here(
    source: Source, settings: Settings, identity: str, version: dict[str, str], store: Store, progress: Progress
) -> Note:
    """On this machine's disk: in the store when that is local, else in the cache."""
    if source.kind == "folder":
        return _note_folder(class_root(Path(source.place)), identity, version, store, progress)
    here = local_store(store)
    keep = Keep(here)
    with keep.work(identity, progress) as work:
        note = _noted(here, identity, source, version)  # another process may have been faster
        if note is None:
            arrived = _prepare(source, settings, work, progress)
            note = keep.take(identity, work / "photos", arrived or version, progress)
    return note


def _note_folder(root: Path, identity: str, version: dict[str, str], store: Store, progress: Progress) -> Note:
    note = Note(fingerprint=fingerprint(root, progress), files=len(listing(root).files), bytes=0, version=version)
    if store.is_local:
        write_note(store.datasets, identity, note)
    return note


def _prepare(source: Source, settings: Settings, work: Path, progress: Progress) -> dict[str, str]:
    """The photos in work/photos; returns what a server called the version that it sent."""
    photos = work / "photos"
    if source.kind == "synthetic":
        draw_photos(photos, settings.photos or DEFAULT_PHOTOS, settings.seed, progress)
        return {}
    if source.kind == "archive":
        unpack(Path(source.place), photos, progress)
        return {}
    archive = work / Path(httpx.URL(source.place).path).name
    version = download(source.place, archive, progress, source.expected)
    try:
        unpack(archive, photos, progress)
    except InputError:
        archive.unlink()  # or the next try would find the same broken file here
        raise
    return version


def _folder_of(source: Source, note: Note, store: Store) -> Path:
    if source.kind == "folder":
        return class_root(Path(source.place))
    return Keep(local_store(store)).folder(note.fingerprint)


def _publish(folder: Path, store: Store, identity: str, note: Note, progress: Progress) -> None:
    """The data set as one object of the remote store, and then the note that it is there."""
    target = store.dataset(note.fingerprint) / _PACKED
    if not target.exists():
        with Keep(cache_store()).work(f"publish {note.fingerprint}", progress) as work:
            packed = work / _PACKED
            _pack(folder, packed, progress)
            target.fs.put_file(str(packed), target.path)
    write_note(store.datasets, identity, note)


def _pack(folder: Path, packed: Path, progress: Progress) -> None:
    files = listing(folder).files
    with tarfile.open(packed, "w", dereference=True) as tar, tracked(progress, "pack", len(files), "photos") as advance:
        for file in files:
            tar.add(folder / file, file)
            advance(1)


def _cached(store: Store, wanted: str, progress: Progress) -> Path:
    keep, identity = Keep(cache_store()), f"fingerprint {wanted}"
    if keep.known(identity) is None:
        with keep.work(identity, progress) as work:
            if keep.known(identity) is None:
                _copy(store.dataset(wanted) / _PACKED, work / _PACKED, progress)
                unpack(work / _PACKED, work / "photos", progress)
                found = keep.take(identity, work / "photos", {}, progress).fingerprint
                if found != wanted:
                    raise InputError(f"{store.dataset(wanted)}: holds other photos, of fingerprint {found}")
    return keep.folder(wanted)


def _copy(remote: UPath, local: Path, progress: Progress) -> None:
    try:
        size = remote.stat().st_size
    except FileNotFoundError:
        raise InputError(f"{remote}: the photos are gone; fetch them again") from None
    with (
        remote.open("rb") as source,
        local.open("wb") as target,
        tracked(progress, f"copy {remote.name}", size, BYTES) as advance,
    ):
        while piece := source.read(4 << 20):
            target.write(piece)
            advance(len(piece))
