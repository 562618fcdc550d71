"""What is kept of old runs: everything but their profiles, which are nine tenths of the bytes."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from feedbench.errors import InputError, SettingsError
from feedbench.records import Run
from feedbench.store import RunFolder, Store
from feedbench.units import BYTES_PER_MB, count, mb


@dataclass(frozen=True)
class Kept:
    """What a clean-up did."""

    runs: tuple[str, ...]
    """Whose profiles were removed, oldest first."""
    freed_mb: float
    total_mb: float
    """Of all runs, after it."""
    limit_mb: float | None

    @property
    def sentence(self) -> str:
        removed = f"profiles of {count(len(self.runs), 'run')} removed, {mb(self.freed_mb)} freed"
        over = self.limit_mb is not None and self.total_mb > self.limit_mb
        limit = f", over the limit of {mb(self.limit_mb)}: what is left is pinned, new or no profile" if over else ""
        return f"{removed if self.runs else 'nothing to do'}; all runs take {mb(self.total_mb)}{limit}"


def prune(store: Store, keep_profiles: int, limit_mb: float | None = None) -> Kept:
    """Remove the profiles of all but the newest `keep_profiles` finished runs; of more, while runs exceed `limit_mb`.

    Pinned runs and runs without a report are left alone; the newest finished run always is. Removing is safe at any
    moment: reports, comparisons and what was read from the profiles stay.
    """
    if keep_profiles < 1:
        raise SettingsError(f"keep_profiles={keep_profiles}: keep those of the newest run at least; use 1 or more")
    if limit_mb is not None and not 0 < limit_mb < math.inf:
        raise SettingsError(f"limit of {limit_mb / 1000:g} GB: no number above 0; give one, or none for no limit")
    total = sum(folder.size() for folder in store.runs()) / BYTES_PER_MB
    finished = sorted(_finished(store), key=lambda it: (it[0].created_at, it[0].run_id))
    removed, freed = [], 0.0
    for number, (run, folder) in enumerate(finished[:-1]):
        is_old = number < len(finished) - keep_profiles
        is_too_much = limit_mb is not None and total - freed > limit_mb
        if not run.pinned and (is_old or is_too_much) and (size := folder.remove_profiles()):
            removed.append(run.run_id)
            freed += size / BYTES_PER_MB
    return Kept(tuple(removed), freed, total - freed, limit_mb)


def pin(store: Store, run_id: str, pinned: bool = True) -> None:
    """Keep a run whole for ever, or no longer. Raises InputError when there is no such run."""
    folder = store.run(run_id)
    folder.write_run(folder.read_run().model_copy(update={"pinned": pinned}))


def _finished(store: Store) -> Iterator[tuple[Run, RunFolder]]:
    for folder in store.runs():
        try:
            if folder.has_report():
                yield folder.read_run(), folder
        except InputError:  # somebody else's folder
            continue
