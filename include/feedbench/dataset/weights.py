"""The weights that training starts from: fetched and verified once, upstream, so that trainers read a file.

`none` is random weights; `imagenet` is the file that Keras publishes for EfficientNetB0 without its top; anything
else is the path of such a file.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from feedbench.dataset.download import Expected, Patience, download
from feedbench.dataset.folders import existing
from feedbench.dataset.keep import Keep
from feedbench.dataset.sources import local_store
from feedbench.errors import InputError, SettingsError, nearest
from feedbench.progress import Progress
from feedbench.store import Store, write_bytes

IMAGENET = "https://storage.googleapis.com/keras-applications/efficientnetb0_notop.h5"
IMAGENET_EXPECTED = Expected(digest="md5:50bc09e76180e00e4465e1a485ddc09d")
"""As in keras/applications/efficientnet.py."""
_STARTS = {".h5": b"\x89HDF\r\n\x1a\n", ".hdf5": b"\x89HDF\r\n\x1a\n", ".keras": b"PK"}
_NAMES = ("imagenet", "none")


@dataclass(frozen=True)
class Weights:
    path: str
    """`weights/<file>` in the store, or absolute for a local file that is used where it lies."""
    digest: str
    """`sha256:<hex>` of the file."""


def check_weights(weights: str) -> None:
    """Raises SettingsError, before anything is run, when `weights` means nothing here."""
    if weights in _NAMES:
        return
    path = existing(weights)
    if path is None or not path.is_file():
        raise SettingsError(f"weights={weights!r}: no known name and no such file{nearest(weights, _NAMES)}")
    start = _STARTS.get(path.suffix.lower())
    if start is None:
        raise SettingsError(f"weights={weights!r}: not a weights file; use one of {', '.join(_STARTS)}")
    with path.open("rb") as file:
        if not file.read(len(start)).startswith(start):
            raise SettingsError(f"weights={weights!r}: its content is not what {path.suffix} says")


def fetch_weights(
    weights: str,
    store: Store,
    progress: Progress,
    patience: Patience = Patience(tries=3),  # noqa: B008 frozen
) -> Weights | None:
    """The start weights where every worker on this store gets them; None for random ones. Instant the second time.

    Raises SettingsError as check_weights does, InputError when they cannot be fetched, with the ways out.
    """
    if weights == "none":
        return None
    check_weights(weights)
    if weights == "imagenet":
        return _imagenet(store, progress, patience)
    path = existing(weights)
    digest = _sha256(path)
    if store.is_local:
        return Weights(str(path), digest)
    target = store.weights / f"{digest.partition(':')[2][:32]}{path.suffix}"
    if not target.exists():
        write_bytes(target, path.read_bytes())
    return Weights(f"weights/{target.name}", digest)


def _imagenet(store: Store, progress: Progress, patience: Patience) -> Weights:
    here, name = local_store(store), IMAGENET.rpartition("/")[2]
    kept = Path(here.weights / name)
    if not kept.exists():
        with Keep(here).work(f"address {IMAGENET}", progress) as work:
            try:
                download(IMAGENET, work / name, progress, IMAGENET_EXPECTED, patience)
            except InputError as error:
                raise InputError(
                    f"{error}. Without a network use weights=none (random), or weights=FILE, a copy of that file"
                ) from None
            kept.parent.mkdir(parents=True, exist_ok=True)
            (work / name).replace(kept)
    if not store.is_local and not (store.weights / name).exists():
        write_bytes(store.weights / name, kept.read_bytes())
    return Weights(f"weights/{name}", _sha256(kept))


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return f"sha256:{hashlib.file_digest(content, 'sha256').hexdigest()}"
