"""The index: one row per usable photo, in the order of the training, split by class.

Columns: path (relative to the photos' folder), label, class_name, bytes, width, height, format, split.
`split` is train, validation or unused; the rows stand in their shuffled order, the same for every variant.
"""

import hashlib
import io
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from upath import UPath

from feedbench.config import Settings
from feedbench.dataset.cores import allowed_cores, in_order
from feedbench.dataset.folders import class_root, listing
from feedbench.dataset.keep import Fetched
from feedbench.dataset.photo import Photo, Unusable, examine
from feedbench.errors import InputError
from feedbench.progress import Progress, tracked
from feedbench.records import DataSet
from feedbench.store import RunFolder, write_bytes
from feedbench.units import share

TRAIN, VALIDATION, UNUSED = "train", "validation", "unused"
_FOUND = ["path", "class_name", "bytes", "width", "height", "format"]
COLUMNS = ["path", "label", *_FOUND[1:], "split"]
_NAMED_IN_ERRORS = 5
_LAYOUT = "one sub-folder per class with the photos right inside it is expected, as in photos/daisy/1.jpg"


@dataclass(frozen=True)
class Index:
    photos: pd.DataFrame
    """As in the module's docstring."""
    rejects: pd.DataFrame
    """file (relative to the photos' folder), reason."""


def build_index(root: Path, settings: Settings, progress: Progress) -> Index:
    """Decode every photo under `root` once; label, order, limit and split them by `settings`.

    Raises InputError when there are no class folders, fewer than two classes, no usable photo, too many rejects, a
    class with one photo, or fewer photos than one batch.
    """
    found, rejects = _examine_all(root, progress)
    _check_usable(root, found, rejects, settings)
    photos = _limited(_shuffled(found, settings.seed), settings)
    photos["label"] = photos["class_name"].map({name: n for n, name in enumerate(sorted(set(photos["class_name"])))})
    photos["split"] = _split(photos, settings)
    return Index(photos[COLUMNS].reset_index(drop=True), rejects)


def _examine_all(root: Path, progress: Progress) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Usable photos sorted by path, and rejects."""
    classes = class_root(root)
    listed = listing(classes)
    inside = "" if classes == root else f"{classes.relative_to(root).as_posix()}/"
    rows, rejects = [], [(inside + file, reason) for file, reason in listed.strays]
    with (
        tracked(progress, "index", len(listed.files), "photos") as advance,
        ThreadPoolExecutor(allowed_cores()) as pool,
    ):
        results = in_order(pool, lambda file: _examine_file(classes / file), listed.files)
        for file, result in zip(listed.files, results, strict=True):
            if isinstance(result, str):
                rejects.append((inside + file, result))
            else:
                size, photo = result
                rows.append((inside + file, file.split("/")[0], size, photo.width, photo.height, photo.format))
            advance(1)
    return pd.DataFrame(rows, columns=_FOUND), pd.DataFrame(sorted(rejects), columns=["file", "reason"], dtype="str")


def _examine_file(file: Path) -> tuple[int, Photo] | str:
    """Size in bytes and what the photo is, or the reason why it is none."""
    try:
        content = file.read_bytes()
        return len(content), examine(content)
    except Unusable as reason:
        return str(reason)
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def _check_usable(root: Path, found: pd.DataFrame, rejects: pd.DataFrame, settings: Settings) -> None:
    files = len(found) + len(rejects)
    if not files:
        raise InputError(f"{root}: no class folder with photos in it; {_LAYOUT}")
    if found.empty:
        raise InputError(f"{root}: no usable photo among {files:,} files; {_LAYOUT}. {_head(rejects)}")
    if len(rejects) > settings.max_reject_share * files:
        raise InputError(
            f"{root}: {len(rejects):,} of {files:,} files are no usable photos ({share(len(rejects) / files)}), more "
            f"than max_reject_share={settings.max_reject_share:g} allows; mend or remove them, or raise it. "
            f"{_head(rejects)}"
        )
    counts = found["class_name"].value_counts()
    if len(counts) == 1:
        raise InputError(
            f"{root}: one class only, {counts.index[0]!r}; two are needed to learn to tell apart. {_LAYOUT}"
        )
    if counts.min() == 1:
        raise InputError(
            f"{root}: class {counts.idxmin()!r} has one usable photo; it needs at least one to train with and one to "
            "validate with: add photos or remove the folder"
        )


def _head(rejects: pd.DataFrame) -> str:
    named = [f"{row.file}: {row.reason}" for row in rejects.head(_NAMED_IN_ERRORS).itertuples()]
    more = len(rejects) - len(named)
    return "; ".join(named) + (f"; and {more:,} more" if more > 0 else "")


def _shuffled(photos: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Ordered by a keyed digest of the path: no library's random numbers, and a new photo does not move the others."""
    keys = [hashlib.blake2b(f"{seed}\0{path}".encode(), digest_size=16).digest() for path in photos["path"]]
    return photos.iloc[sorted(range(len(keys)), key=keys.__getitem__)]


def _limited(photos: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """The first photos of each class, evenly, so many as `photos` allows."""
    if settings.photos is None or settings.photos >= len(photos):
        return photos.copy()
    counts = photos["class_name"].value_counts().to_dict()
    if settings.photos < 2 * len(counts):
        raise InputError(f"photos={settings.photos}: {len(counts)} classes need at least {2 * len(counts)} photos")
    quota = even_quota(counts, settings.photos)
    rank = photos.groupby("class_name").cumcount()
    return photos[rank < photos["class_name"].map(quota)].copy()


def even_quota(available: dict[str, int], total: int) -> dict[str, int]:
    """How many of each class, as even as their numbers allow, so that the sum is `total`."""
    quota, left = {}, total
    for turn, (name, count) in enumerate(sorted(available.items(), key=lambda item: (item[1], item[0]))):
        quota[name] = min(count, left // (len(available) - turn))
        left -= quota[name]
    return quota


def _split(photos: pd.DataFrame, settings: Settings) -> pd.Series:
    """Per class the first share for validation, at least one on each side; train trimmed to whole batches."""
    counts = photos["class_name"].value_counts()
    held = (counts * settings.validation_share).round().clip(1, counts - 1)
    rank = photos.groupby("class_name").cumcount()
    split = pd.Series(TRAIN, index=photos.index, dtype="str")
    split[rank < photos["class_name"].map(held)] = VALIDATION
    train = split.index[split == TRAIN]
    if len(train) < settings.batch_size:
        raise InputError(
            f"batch_size={settings.batch_size}: {len(photos):,} photos leave {len(train):,} for training, less than "
            f"one batch; use batch_size <= {len(train)} or more photos"
        )
    split[train[len(train) // settings.batch_size * settings.batch_size :]] = UNUSED
    return split


def dataset_record(index: Index, fetched: Fetched, settings: Settings) -> DataSet:
    split = index.photos["split"].value_counts()
    return DataSet(
        source=settings.source,
        path=fetched.path,
        fingerprint=fetched.fingerprint,
        classes=tuple(sorted(set(index.photos["class_name"]))),
        photos=len(index.photos),
        rejects=len(index.rejects),
        train_photos=int(split.get(TRAIN, 0)),
        validation_photos=int(split.get(VALIDATION, 0)),
    )


def write_index(folder: RunFolder, index: Index) -> None:
    """index.parquet and rejects.csv of a run."""
    write_bytes(folder.rejects, index.rejects.to_csv(index=False).encode())
    write_bytes(folder.index, index.photos.to_parquet(index=False))


def read_index(folder: RunFolder) -> Index:
    """Raises InputError when the run has none."""
    photos = read_photos(folder.index)
    rejects = pd.read_csv(io.BytesIO(folder.rejects.read_bytes()), dtype="str", keep_default_na=False)
    return Index(photos, rejects)


def read_photos(file: Path | UPath) -> pd.DataFrame:
    """The photos alone, from an index.parquet. Raises InputError naming a missing file."""
    try:
        return pd.read_parquet(io.BytesIO(file.read_bytes()))
    except FileNotFoundError:
        raise InputError(f"{file}: no such file; the run has not been indexed") from None
