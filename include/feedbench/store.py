"""Where everything lies on disk or in an object store: the only module that knows the layout.

    datasets/<fingerprint>/                  verified, unpacked source
    weights/<file>                           verified start weights
    runs/<run_id>/run.json                   settings, data, plan, machine
                 /index.parquet  rejects.csv
                 /trials/<variant>/<round>/trial.json  profile.json  xprof.json
                                          /train/      TensorBoard logdir
                 /comparison.json  report.html  report.md

The root is a folder or an fsspec address (s3://, gs://, file://). Files appear whole or not at all.
"""

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError
from upath import UPath

from feedbench.errors import InputError, SettingsError
from feedbench.records import Comparison, Document, PlannedTrial, Profile, Run, Trial

ENVIRONMENT = "FEEDBENCH_ARTIFACTS"
_RUN_ID = re.compile(r"[A-Za-z0-9_~][A-Za-z0-9_.~:+-]{0,249}")
_D = TypeVar("_D", bound=Document)


class Store:
    """The artefacts folder. `root` defaults to $FEEDBENCH_ARTIFACTS, then ./artifacts."""

    def __init__(self, root: str | os.PathLike[str] | None = None) -> None:
        given = str(root or os.environ.get(ENVIRONMENT) or "artifacts")
        path = UPath(given.removeprefix("file://"))
        self.is_local = path.protocol in ("", "file")
        self.root = UPath(Path(path).absolute()) if self.is_local else path

    def dataset(self, fingerprint: str) -> UPath:
        return self.root / "datasets" / fingerprint

    @property
    def datasets(self) -> UPath:
        return self.root / "datasets"

    @property
    def weights(self) -> UPath:
        return self.root / "weights"

    def run(self, run_id: str) -> "RunFolder":
        """The folder of one run, there or not. Raises SettingsError for an id that is no plain name."""
        if not _RUN_ID.fullmatch(run_id):
            raise SettingsError(f"run id {run_id!r}: letters, digits and _ . ~ : + - only, not starting with a dot")
        return RunFolder(self.root / "runs" / run_id)

    def runs(self) -> Iterator["RunFolder"]:
        """All run folders, in no order; what is no run folder is passed over."""
        folder = self.root / "runs"
        if folder.is_dir():
            for path in folder.iterdir():
                if _RUN_ID.fullmatch(path.name) and path.is_dir():
                    yield RunFolder(path)


class RunFolder:
    """runs/<run_id>: its documents, and its trials."""

    def __init__(self, path: UPath) -> None:
        self.path = path
        self.run_id = path.name

    index = property(lambda self: self.path / "index.parquet")
    rejects = property(lambda self: self.path / "rejects.csv")
    report_html = property(lambda self: self.path / "report.html")
    report_md = property(lambda self: self.path / "report.md")

    def read_run(self) -> Run:
        return read(self.path / "run.json", Run)

    def write_run(self, run: Run) -> None:
        write(self.path / "run.json", run)

    def read_comparison(self) -> Comparison:
        return read(self.path / "comparison.json", Comparison)

    def write_comparison(self, comparison: Comparison) -> None:
        write(self.path / "comparison.json", comparison)

    def trial(self, planned: PlannedTrial) -> "TrialFolder":
        return TrialFolder(self.path / "trials" / planned.variant / str(planned.round))


class TrialFolder:
    """trials/<variant>/<round>: what one process left behind."""

    def __init__(self, path: UPath) -> None:
        self.path = path

    logdir = property(lambda self: self.path / "train")

    def read_trial(self) -> Trial:
        return read(self.path / "trial.json", Trial)

    def write_trial(self, trial: Trial) -> None:
        write(self.path / "trial.json", trial)

    def read_profile(self) -> Profile:
        return read(self.path / "profile.json", Profile)

    def write_profile(self, profile: Profile) -> None:
        write(self.path / "profile.json", profile)

    def xplanes(self) -> list[UPath]:
        """The profiles of this trial; exactly one after a good trial."""
        return sorted(self.logdir.glob("plugins/profile/*/*.xplane.pb"))


def read(path: UPath, kind: type[_D]) -> _D:
    """A document from its file. Raises InputError naming the file when it is missing or not what it should be."""
    try:
        return kind.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(
            f"{path}: not a {kind.__name__} record: {'.'.join(map(str, first['loc']))} {first['msg']}"
        ) from None


def write(path: UPath, document: Document) -> None:
    """A document to its file, whole or not at all."""
    write_bytes(path, document.model_dump_json(indent=1).encode())


def write_bytes(path: UPath, content: bytes) -> None:
    """Bytes to a file that appears whole or not at all, on disk or in an object store (whose writes are whole)."""
    if path.protocol not in ("", "file"):
        path.write_bytes(content)
        return
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def local_file(path: UPath, folder: Path) -> Path:
    """The file itself where it is local, else a copy of it in `folder`."""
    if path.protocol in ("", "file"):
        return Path(path)
    copy = folder / path.name
    copy.write_bytes(path.read_bytes())
    return copy


def upload(folder: Path, target: UPath, last: str) -> None:
    """Copy a local folder into the store; the file named `last` goes last, as the sign that all is there."""
    files = sorted((f for f in folder.rglob("*") if f.is_file()), key=lambda f: f == folder / last)
    for file in files:
        write_bytes(target / file.relative_to(folder).as_posix(), file.read_bytes())
