"""What can be read from a run's artefacts by somebody who only looks."""

import itertools
import json
import threading
from pathlib import Path

from feedbench.errors import InputError
from feedbench.records import Trial
from feedbench.store import RunFolder


class Watcher:
    """Reads all JSON files below a folder, again whenever they changed, until told to stop."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.stop = threading.Event()
        self.broken: list[str] = []
        self.reads = 0
        self._seen: dict[Path, int] = {}

    def watch(self) -> None:
        while not self.stop.wait(0.02):
            for path in self.root.glob("runs/**/*.json"):
                self._look(path)

    def _look(self, path: Path) -> None:
        try:
            changed = path.stat().st_mtime_ns
            if self._seen.get(path) == changed:
                return
            self._seen[path] = changed
            content = path.read_bytes()
        except FileNotFoundError:
            return
        self.reads += 1
        try:
            json.loads(content)
        except ValueError:
            self.broken.append(f"{path}: {content[-80:]!r}")


def trials(*runs: RunFolder) -> list[Trial]:
    """The records of all trials that left one, in order of their start."""
    found = []
    for run in runs:
        for planned in run.read_run().trials:
            try:
                found.append(run.trial(planned).read_trial())
            except InputError:
                continue
    return sorted(found, key=lambda trial: trial.started_at)


def overlapping(found: list[Trial]) -> list[str]:
    """Pairs of trials of which the second began before the first had ended."""
    return [
        f"{first.run_id} {first.variant} until {first.finished_at}, {then.run_id} {then.variant} from {then.started_at}"
        for first, then in itertools.pairwise(found)
        if then.started_at < first.finished_at
    ]
