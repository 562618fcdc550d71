"""Where everything lies on disk or in an object store: the only module that knows the layout.

    datasets/<fingerprint>/                  verified, unpacked source; in an object store one photos.tar
            /.sources/ .work/ .lock          what was fetched from where, work half done (dataset/keep.py)
    weights/<file>                           verified start weights
    runs/<run_id>/run.json                   settings, data, plan, machine
                 /index.parquet  rejects.csv
                 /trials/<variant>/<round>/trial.json  profile.json
                                          /train/      TensorBoard logdir
                 /comparison.json  report.html  report.md  summary.json
    history.jsonl                            one line a finished run; derived from runs/, can be removed at any time
    accepted.json                            regressions that a person took for good

The root is a folder or an fsspec address (s3://, gs://, file://). Files appear whole or not at all.
Links are not followed: no document or file of a run lies outside of its folder.
"""

import fcntl
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError
from pydantic_core import from_json
from upath import UPath

from feedbench import listing
from feedbench.errors import InputError, MissingFile, OutputError, SettingsError
from feedbench.records import (
    Accepted,
    Comparison,
    Document,
    PlannedTrial,
    Profile,
    Run,
    RunSummary,
    Trial,
)
from feedbench.records.base import RUN_ID
from feedbench.records.migrations import migrated

ENVIRONMENT = "FEEDBENCH_ARTIFACTS"
os.umask(_UMASK := os.umask(0o077))  # it can only be read by setting it
_RUN_ID = re.compile(RUN_ID)
_FOR_PEOPLE = re.compile(
    r"report\.(html|md)|comparison\.json|rejects\.csv"
    r"|trials/\w+/\d+/train/plugins/profile/[\w.~:+-]+/[\w.~:+-]+\.xplane\.pb"
)
"""Files of a run that make sense by themselves, as paths in its folder."""
_D = TypeVar("_D", bound=Document)


class Store:
    """The artefacts folder. `root` defaults to $FEEDBENCH_ARTIFACTS, then ./artifacts."""

    def __init__(self, root: str | os.PathLike[str] | None = None) -> None:
        given = str(root or os.environ.get(ENVIRONMENT) or "artifacts")
        try:
            path = UPath(given.removeprefix("file://"))
            self.is_local = path.protocol in ("", "file")
            if not self.is_local:  # other processes write there: a listing from before is a wrong one
                path = UPath(given, use_listings_cache=False)
                _ = path.fs  # a missing client library is found out now, not after an hour of training
        except (ValueError, ImportError) as error:
            raise SettingsError(
                f"artefacts at {given}: {error}; use a folder, or s3:// with the package s3fs, gs:// with gcsfs"
            ) from None
        self.root = UPath(Path(path).absolute()) if self.is_local else path

    def dataset(self, fingerprint: str) -> UPath:
        return self.root / "datasets" / fingerprint

    @property
    def datasets(self) -> UPath:
        return self.root / "datasets"

    @property
    def weights(self) -> UPath:
        return self.root / "weights"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """For read-change-write of what all runs share: others wait. Not in an object store, which has no locks."""
        if not self.is_local:
            yield
            return
        lock = Path(self.root) / ".lock"
        with writing(lock):
            lock.parent.mkdir(parents=True, exist_ok=True)
            handle = lock.open("w")
        with handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    @property
    def history(self) -> UPath:
        return self.root / "history.jsonl"

    def read_accepted(self) -> Accepted:
        try:
            return read(self.root / "accepted.json", Accepted)
        except MissingFile:
            return Accepted()

    def write_accepted(self, accepted: Accepted) -> None:
        write(self.root / "accepted.json", accepted)

    def run(self, run_id: str) -> "RunFolder":
        """The folder of one run, there or not. Raises SettingsError for an id that is none, InputError for a link."""
        if not _RUN_ID.fullmatch(run_id):
            raise SettingsError(f"run id {run_id!r}: letters, digits and _ . ~ : + - only, not starting with a dot")
        return RunFolder(_no_link(self.root / "runs" / run_id))

    def runs(self) -> Iterator["RunFolder"]:
        """All run folders, in no order; what is no run folder is passed over."""
        return (self.run(run_id) for run_id in self.run_ids())

    def run_ids(self) -> list[str]:
        """Names of all run folders, in no order: one listing, however many runs."""
        folder = self.root / "runs"
        try:
            names = listing.folders(folder)
        except FileNotFoundError:
            return []
        return [name for name in names if _RUN_ID.fullmatch(name)]


class RunFolder:
    """runs/<run_id>: its documents, and its trials."""

    def __init__(self, path: UPath) -> None:
        self.path = path
        self.run_id = path.name

    index = property(lambda self: self.path / "index.parquet")
    rejects = property(lambda self: self.path / "rejects.csv")
    report_html = property(lambda self: self.path / "report.html")
    report_md = property(lambda self: self.path / "report.md")

    def has_report(self) -> bool:
        return self.report_html.exists()

    def read_run(self) -> Run:
        return read(self.path / "run.json", Run)

    def write_run(self, run: Run) -> None:
        write(self.path / "run.json", run)

    def read_comparison(self) -> Comparison:
        return read(self.path / "comparison.json", Comparison)

    def write_comparison(self, comparison: Comparison) -> None:
        write(self.path / "comparison.json", comparison)

    def read_summary(self) -> RunSummary:
        """Of a run from before there were summaries: made from its comparison."""
        try:
            return read(self.path / "summary.json", RunSummary)
        except MissingFile:
            return RunSummary.of(self.read_run(), self.read_comparison())

    def write_summary(self, summary: RunSummary) -> None:
        write(self.path / "summary.json", summary)

    def files(self) -> dict[str, int]:
        """Sizes in bytes of the files that a person may want, by path in this folder; one listing.

        To be safe from a name that somebody sends, compare it with these; never join it to a path.
        """
        return {name: size for name, size in sorted(listing.files(self.path)) if _FOR_PEOPLE.fullmatch(name)}

    def trial(self, planned: PlannedTrial) -> "TrialFolder":
        """There or not. Raises InputError where a link stands on the way to it."""
        path = self.path
        for part in ("trials", planned.variant, str(planned.round)):
            path = _no_link(path / part)
        return TrialFolder(path)

    def size(self) -> int:
        """Bytes of all its files."""
        return sum(size for _, size in listing.files(self.path))

    def remove_profiles(self) -> int:
        """Remove the profiles of all trials; returns the bytes freed."""
        profiles = {name: size for name, size in self.files().items() if name.endswith(".xplane.pb")}
        for name in profiles:
            (self.path / name).unlink(missing_ok=True)
        return sum(profiles.values())


class TrialFolder:
    """trials/<variant>/<round>: what one process left behind."""

    def __init__(self, path: UPath) -> None:
        self.path = path

    RECORD = "trial.json"
    """Written last: with it all the others are there."""

    logdir = property(lambda self: self.path / "train")

    def has_record(self) -> bool:
        return (self.path / self.RECORD).exists()

    def read_trial(self) -> Trial:
        return read(self.path / self.RECORD, Trial)

    def write_trial(self, trial: Trial) -> None:
        write(self.path / self.RECORD, trial)

    def read_profile(self) -> Profile:
        return read(self.path / "profile.json", Profile)

    def write_profile(self, profile: Profile) -> None:
        write(self.path / "profile.json", profile)

    def xplanes(self) -> list[UPath]:
        """The profiles of this trial; exactly one after a good trial."""
        return sorted(self.logdir.glob("plugins/profile/*/*.xplane.pb"))


def _no_link(path: UPath) -> UPath:
    if isinstance(path, Path) and path.is_symlink():
        raise InputError(f"{path}: a link; put what it points to in its place")
    return path


def read_bytes(path: UPath) -> bytes:
    """A file's content. Raises MissingFile when it is not there, InputError for a link, a folder, a pipe."""
    try:
        if isinstance(_no_link(path), Path) and not stat.S_ISREG(path.stat().st_mode):
            raise InputError(f"{path}: not a file")
        return path.read_bytes()
    except FileNotFoundError:
        raise MissingFile(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None


def read(path: UPath, kind: type[_D]) -> _D:
    """A document from its file.

    Raises InputError naming the file when it is not what it should be, its kind MissingFile when it is not there.
    """
    content = read_bytes(path)
    try:
        return kind.model_validate(migrated(from_json(content)))
    except ValidationError as error:
        first = error.errors()[0]
        reason = f"{'.'.join(map(str, first['loc']))} {first['msg']}"
    except ValueError as error:
        reason = str(error)
    raise InputError(f"{path}: not a {kind.__name__} record: {reason}")


def write(path: UPath, document: Document) -> None:
    """A document to its file, whole or not at all."""
    write_bytes(path, document.model_dump_json(indent=1).encode())


def write_bytes(path: UPath | Path, content: bytes) -> None:
    """Bytes to a file that appears whole or not at all, on disk or in an object store (whose writes are whole).

    Raises OutputError naming the file when there is no room for it or no right to write it.
    """
    with writing(path):
        if isinstance(path, Path):
            _write_whole(Path(path), content)
        else:
            path.write_bytes(content)


@contextmanager
def writing(path: UPath | Path) -> Iterator[None]:
    """What the system says against writing there becomes an OutputError, which a person can act on."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from error


def _write_whole(target: Path, content: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o666 & ~_UMASK)  # mkstemp's own is for its owner alone
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def local_file(path: UPath | Path, folder: Path) -> Path:
    """The file itself where it is local, else a copy of it in `folder`."""
    if isinstance(path, Path):
        return Path(path)
    copy = folder / path.name
    copy.write_bytes(path.read_bytes())
    return copy


def upload(folder: Path, target: UPath, last: str) -> None:
    """Copy a local folder into the store; the file named `last` goes last, as the sign that all is there."""
    files = sorted((f for f in folder.rglob("*") if f.is_file()), key=lambda f: f == folder / last)
    for file in files:
        write_bytes(target / file.relative_to(folder).as_posix(), file.read_bytes())
