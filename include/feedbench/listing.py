"""What lies in a folder, on disk or in an object store: one listing each, and no link followed."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

from upath import UPath


def folders(folder: UPath) -> list[str]:
    """Names of the folders in it, in no order. Raises FileNotFoundError when it is not there."""
    if isinstance(folder, Path):
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    listing = folder.fs.ls(folder.path, detail=True)
    return [PurePosixPath(entry["name"]).name for entry in listing if entry["type"] == "directory"]


def files(folder: UPath) -> Iterator[tuple[str, int]]:
    """All files below it: path from there, and size in bytes."""
    return _walk(Path(folder)) if isinstance(folder, Path) else _find(folder)


def _walk(folder: Path) -> Iterator[tuple[str, int]]:
    for place, _, names in os.walk(folder, followlinks=False):
        for path in (Path(place, name) for name in names):
            with suppress(FileNotFoundError):  # a run that is going on, or being tidied up
                status = path.lstat()
                if stat.S_ISREG(status.st_mode):
                    yield path.relative_to(folder).as_posix(), status.st_size


def _find(folder: UPath) -> Iterator[tuple[str, int]]:
    for name, entry in folder.fs.find(folder.path, detail=True).items():
        yield PurePosixPath(name).relative_to(folder.path).as_posix(), entry["size"]
