"""How near the parts are to what the machine can do: ratios, measured side by side in one run.

    python perf/pipeline_perf.py [--photos FOLDER] [--runs 3]

* indexing against decoding alone on one core, times the cores;
* the fastest pipeline's input-only rate against libjpeg-turbo decoding and resizing nothing, on all cores (processes);
* drawing a report of 20 variants and 10 rounds;
* what the DAG adds to its trials.

Photos: a folder with one sub-folder per class; drawn ones without. Ratios and the report's time are medians with their
extremes; what the DAG adds, and the fastest rate of its trials, are of one run.
"""

import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import simplejpeg
from timing import seconds, spread

from feedbench.config import Settings
from feedbench.dataset.cores import allowed_cores
from feedbench.dataset.index import build_index
from feedbench.dataset.synthetic import draw_photos
from feedbench.progress import Silent
from feedbench.store import Store

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--photos", type=Path, default=_real_photos())
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        photos = options.photos or _drawn(Path(folder) / "photos")
        print(f"{allowed_cores()} cores, photos from {photos.name}")
        index_rate(photos, options.runs)
        run = dag_overhead(photos, Path(folder))
        input_rate(photos, run, options.runs)
        report_time(run, options.runs)
    return 0


def index_rate(photos: Path, runs: int) -> None:
    files = sorted(photos.glob("*/*.jpg"))
    settings = Settings(source=str(photos))
    ratios = []
    for _ in range(runs):  # in turn, so that a slow minute hits both
        alone = len(files) / seconds(lambda: [_decode(f) for f in files])
        indexed = len(files) / seconds(lambda: build_index(photos, settings, Silent()))
        ratios.append(indexed / (alone * allowed_cores()))
    print(f"index: {spread(ratios)} of one-core decoding times the cores")


def dag_overhead(photos: Path, folder: Path) -> Path:
    """Runs the DAG once; prints its wall time less its trials'; returns the run's folder."""
    conf = {
        "source": str(photos), "variants": ["naive", "parallel_map_prefetch"], "rounds": 1, "image_size": 224,
        "accelerator": "emulated", "emulated_step_ms": 10, "photos": None, "steps": 30, "profile_steps": 12,
    }  # fmt: skip
    env = {**os.environ, "FEEDBENCH_ARTIFACTS": str(folder / "artifacts"), "AIRFLOW_HOME": str(folder / "airflow")}
    command = [sys.executable, str(ROOT / "ops/once.py"), json.dumps(conf)]
    wall_s = seconds(lambda: subprocess.run(command, env=env, check=True, capture_output=True))
    run = next(Store(folder / "artifacts").runs())
    record = run.read_run()
    trials = [run.trial(planned).read_trial() for planned in record.trials]
    trials_s = sum(sum(trial.phases_s.values()) for trial in trials)
    print(
        f"DAG: {wall_s:.0f} s for {len(trials)} trials of {trials_s:.0f} s together; "
        f"{wall_s - trials_s:.0f} s is Airflow, its database, indexing, processes and the report"
    )
    return Path(run.path)


def input_rate(photos: Path, run: Path, runs: int) -> None:
    files = sorted(photos.glob("*/*.jpg"))
    limits = []
    with concurrent.futures.ProcessPoolExecutor(allowed_cores()) as pool:
        list(pool.map(_decode, files, chunksize=16))  # starts the processes
        for _ in range(runs):
            limits.append(len(files) / seconds(lambda: list(pool.map(_decode, files, chunksize=16))))
    comparison = Store(run.parent.parent).run(run.name).read_comparison()
    fastest = max(comparison.batch_size * 1000 / v.input_only_ms for v in comparison.variants if v.input_only_ms)
    ratios = [fastest / limit for limit in limits]
    print(f"input: {spread(ratios)} of libjpeg-turbo alone on all cores ({fastest:,.0f} photos/s, resized too)")


def report_time(run: Path, runs: int) -> None:
    from feedbench.report.render import render

    folder = Store(run.parent.parent).run(run.name)
    record, comparison = folder.read_run(), folder.read_comparison()
    rows = [
        row.model_copy(update={"name": f"variant_{n}", "rounds": 10, "round_means_ms": row.round_means_ms * 10})
        for n in range(9)
        for row in comparison.variants
    ]
    wide = comparison.model_copy(update={"variants": (*comparison.variants, *rows)})
    times = [seconds(lambda: render(wide, record)) for _ in range(runs)]
    print(f"report: {spread(times)} s for {len(wide.variants)} variants of 10 rounds")


def _real_photos() -> Path | None:
    data = os.environ.get("FEEDBENCH_REAL_DATA")
    return Path(data) / "flower_photos" if data else None


def _drawn(folder: Path) -> Path:
    draw_photos(folder, 300, 0, Silent())
    return folder


def _decode(file: Path) -> None:
    simplejpeg.decode_jpeg(file.read_bytes())


if __name__ == "__main__":
    sys.exit(main())
