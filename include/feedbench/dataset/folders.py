"""Which files of a folder are photos by their place: one sub-folder per class, the photos right inside it.

What systems and programs leave behind (.DS_Store, Thumbs.db, __MACOSX ...) and documents (LICENSE.txt) are passed
over; what a person may have meant as a photo but is out of place is told as a stray.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from feedbench.dataset.cores import allowed_cores, in_order
from feedbench.errors import InputError
from feedbench.progress import BYTES, Progress, tracked

PHOTO_SUFFIXES = frozenset(
    (".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".heic", ".heif", ".avif")
)
_DOCUMENT_SUFFIXES = frozenset(
    (".txt", ".md", ".rst", ".pdf", ".htm", ".html", ".csv", ".tsv", ".json", ".jsonl", ".xml", ".yaml", ".yml", ".ini")
) | {".db", ".py", ".ipynb", ".log", ".url"}
_LITTER = frozenset(
    name.casefold()
    for name in (
        "Thumbs.db",
        "ehthumbs.db",
        "desktop.ini",
        "Icon\r",
        "__MACOSX",
        "@eaDir",
        "$RECYCLE.BIN",
        "System Volume Information",
        "lost+found",
    )
)
_NOT_UTF8 = "the name is not UTF-8"


def existing(typed: str) -> Path | None:
    """The absolute path that a person typed, if something is there."""
    try:
        path = Path(typed).expanduser().absolute()
        path.stat()
    except (OSError, ValueError, RuntimeError):  # too long for a name, with a \\0 in it, ~ of nobody
        return None
    return path


@dataclass(frozen=True)
class Listing:
    """Paths relative to the class root, with `/`, in sorted order."""

    files: tuple[str, ...]
    """`class/file` of each regular file that may be a photo."""
    strays: tuple[tuple[str, str], ...]
    """Path and reason of what can be no photo because of where or what it is."""


def is_litter(name: str) -> bool:
    """Whether a file or folder of this name is none of the user's: hidden, or made by an operating system."""
    return name.startswith(".") or name.casefold() in _LITTER


def class_root(folder: Path) -> Path:
    """The folder whose sub-folders are the classes: `folder`, or the one that wraps them, as archives have it."""
    while len(inner := _real_folders(folder)) == 1 and not _holds_photos(folder):
        if not _real_folders(inner[0]) or _holds_photos(inner[0]):
            break
        folder = inner[0]
    return folder


def listing(root: Path) -> Listing:
    """All that may be a photo in the class folders of `root`, and what is out of place.

    Raises InputError when `root` is no folder that can be read.
    """
    files: list[str] = []
    strays: list[tuple[str, str]] = []
    for entry in _entries(root):
        if not _is_utf8(entry.name):
            strays.append((_printable(entry.name), _NOT_UTF8))
        elif _is_folder(entry):
            _list_class(entry, files, strays)
        elif _photo_like(Path(entry.name)):
            strays.append((entry.name, "in no class folder"))
    return Listing(tuple(sorted(files)), tuple(sorted(strays)))


def count_photo_like(root: Path) -> int:
    """How many files look like photos by place and name, without opening one."""
    return sum(_photo_like(Path(file)) or not Path(file).suffix for file in listing(class_root(root)).files)


def fingerprint(root: Path, progress: Progress) -> str:
    """32 hex digits over relative paths and contents of all that may be a photo: equal data, equal fingerprint."""
    files = listing(root).files
    total = hashlib.sha256()
    sizes = [(root / file).stat().st_size for file in files]
    with tracked(progress, "fingerprint", sum(sizes), BYTES) as advance, ThreadPoolExecutor(allowed_cores()) as pool:
        digests = in_order(pool, lambda file: _digest(root / file), files)
        for file, size, digest in zip(files, sizes, digests, strict=True):
            total.update(f"{file}\0{digest}\n".encode())
            advance(size)
    return total.hexdigest()[:32]


def stat_identity(root: Path) -> str:
    """Changes whenever a file may have changed, told without reading one: names, sizes and times of change."""
    total = hashlib.sha256(f"{root}\n".encode("utf-8", "surrogateescape"))
    for file in listing(root).files:
        of = (root / file).stat()
        total.update(f"{file}\0{of.st_size}\0{of.st_mtime_ns}\0{of.st_ctime_ns}\n".encode())
    return total.hexdigest()


def _list_class(folder: os.DirEntry[str], files: list[str], strays: list[tuple[str, str]]) -> None:
    try:
        entries = list(_entries(Path(folder.path)))
    except InputError as error:
        strays.append((f"{folder.name}/", str(error)))
        return
    for entry in entries:
        path = f"{folder.name}/{entry.name}"
        if _is_folder(entry):
            if _holds_files(entry.path):
                strays.append((f"{_printable(path)}/", "a folder inside a class folder is not read"))
        elif Path(entry.name).suffix.lower() not in _DOCUMENT_SUFFIXES:
            reason = _unreadable_by_kind(entry)
            if reason:
                strays.append((_printable(path), reason))
            else:
                files.append(path)


def _unreadable_by_kind(entry: os.DirEntry[str]) -> str | None:
    """Why a file must not even be opened (a pipe would block for ever), or None."""
    if not _is_utf8(entry.name):
        return _NOT_UTF8
    try:
        mode = entry.stat().st_mode
    except FileNotFoundError:
        return "a link to nothing"
    except OSError as error:
        return error.strerror or str(error)
    return None if stat.S_ISREG(mode) else "not a regular file"


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return iter([entry for entry in entries if not is_litter(entry.name)])
    except OSError as error:
        raise InputError(f"{folder}: cannot be listed: {error.strerror}") from None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def _real_folders(folder: Path) -> list[Path]:
    """Without links, so that no walk down can go round in circles."""
    return [Path(entry.path) for entry in _entries(folder) if entry.is_dir(follow_symlinks=False)]


def _holds_photos(folder: Path) -> bool:
    return any(_photo_like(Path(entry.name)) for entry in _entries(folder))


def _photo_like(file: Path) -> bool:
    return file.suffix.lower() in PHOTO_SUFFIXES


def _holds_files(folder: str) -> bool:
    walk = os.walk(folder)
    return any(not is_litter(name) for _, _, names in walk for name in names)


def _is_utf8(name: str) -> bool:
    """File names that are no UTF-8 reach Python with surrogates, which no table can store."""
    return not any("\ud800" <= char <= "\udfff" for char in name)


def _printable(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _digest(file: Path) -> str:
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        return f"unreadable: {error.errno}"
