"""Whether the artefacts' place answers: asked once, before anything is drawn or trained."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from feedbench.errors import FeedbenchError, OutputError
from feedbench.store import Store, write_bytes

_PROBE = ".probe"


def reached(root: str | None) -> Store:
    """The store there, empty or not. Raises OutputError when the place does not answer."""
    with _answering(root):
        store = Store(root)
        if store.root.protocol == "memory":
            raise OutputError(f"artefacts at {root!r}: gone when this process ends; use a folder or a bucket")
        with suppress(FileNotFoundError):
            store.root.stat()
    return store


def check_writable(store: Store) -> None:
    """Raises OutputError where nothing can be kept: no room, no right, no such bucket."""
    with _answering(str(store.root)):
        write_bytes(store.root / _PROBE, b"x")
        (store.root / _PROBE).unlink(missing_ok=True)


@contextmanager
def _answering(root: str | None) -> Iterator[None]:
    try:
        yield
    except FeedbenchError:
        raise
    except Exception as error:  # each object store's client has errors of its own, of no common kind
        reason = ": ".join([type(error).__name__, *str(error).splitlines()[:1]])
        raise OutputError(f"artefacts at {root!r}: {reason}; use a folder or a bucket that can be reached") from error
