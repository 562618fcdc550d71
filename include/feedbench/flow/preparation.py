"""All that comes before the first trial: photos and weights fetched, photos indexed, trials planned."""

import os
import random
import subprocess
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from feedbench.config import CEILING, METHOD_VERSION, Settings
from feedbench.dataset.index import build_index, dataset_record, read_index, write_index
from feedbench.dataset.sources import Fetched, fetch, localise
from feedbench.dataset.weights import fetch_weights
from feedbench.flow.reach import check_writable
from feedbench.pipelines.variants import chosen
from feedbench.progress import Progress
from feedbench.records import PlannedTrial, Run
from feedbench.store import Store
from feedbench.training.machine import fingerprint


def download(store: Store, settings: Settings, progress: Progress) -> dict[str, Any]:
    """Photos and start weights, fetched and verified. Instant when they are there already."""
    check_writable(store)
    fetched = fetch(settings, store, progress)
    weights = fetch_weights(settings.weights, store, progress)
    return {
        "fingerprint": fetched.fingerprint,
        "path": fetched.path,
        "weights": weights.path if weights else None,
        "weights_digest": weights.digest if weights else None,
    }


def index(
    store: Store, run_id: str, settings: Settings, fetched: Mapping[str, Any], progress: Progress
) -> dict[str, int]:
    """Every photo decoded once; index.parquet and rejects.csv in the run's folder."""
    root = localise(store, fetched["path"], progress)
    found = build_index(root, settings, progress)
    write_index(store.run(run_id), found)
    return {"photos": len(found.photos), "rejects": len(found.rejects)}


def plan(store: Store, run_id: str, settings: Settings, fetched: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Writes run.json; returns the trials in the order they are to be run."""
    folder = store.run(run_id)
    found = read_index(folder)
    data = dataset_record(found, Fetched(fetched["fingerprint"], fetched["path"]), settings)
    variants = chosen(settings.variants, settings.variant_modules, a_a=settings.a_a)
    run = Run(
        run_id=run_id,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        settings=settings,
        method_version=METHOD_VERSION,
        data=data,
        variants=tuple(variant.spec() for variant in variants),
        trials=tuple(ordered_trials([variant.name for variant in variants], settings)),
        machine=fingerprint(),
        git_revision=_git_revision(),
        weights=fetched["weights"],
        weights_digest=fetched["weights_digest"],
    )
    folder.write_run(run)
    return [trial.model_dump() for trial in run.trials]


def ordered_trials(names: list[str], settings: Settings) -> Iterator[PlannedTrial]:
    """Round by round, the ceiling among the variants, shuffled by seed: drift of the machine hits all alike."""
    shuffler = random.Random(settings.seed)
    for number in range(1, (settings.max_rounds or settings.rounds) + 1):
        order = [*names, CEILING]
        shuffler.shuffle(order)
        for name in order:
            yield PlannedTrial(variant=name, round=number)


def _git_revision() -> str | None:
    """Of this code: $FEEDBENCH_GIT_REVISION (set in images), else of the checkout it lies in."""
    if given := os.environ.get("FEEDBENCH_GIT_REVISION"):
        return given
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip() or None
    except (OSError, subprocess.SubprocessError):
        return None
