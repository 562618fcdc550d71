"""What many nights cost: the trend pages, a night's own history section, and what adding one night takes.

    python perf/history_perf.py [--nights 1000] [--variants 10] [--runs 5]

Seconds and megabytes are of this machine; what is hoped for is 0.5 s for a trend page and 1 s for the history section.
A night is held against RECALLED others at most: from that night on it costs the same but for reading a longer file.
"""

import argparse
import random
import statistics
import sys
import tempfile
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plugins"))

from timing import seconds, spread

from benchmark_pages.trends import overview, trend_page
from feedbench.history.judgement import judge
from feedbench.history.nights import RECALLED, History
from feedbench.records import Accepted, Machine, Night, NightlyResult, NightlyStage
from feedbench.store import Store

STAGES = ("TensorSlice", "ParallelMapV2", "Shuffle", "ForeverRepeat", "BatchV2", "Prefetch")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nights", type=int, default=1000)
    parser.add_argument("--variants", type=int, default=10)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()

    def median(work: Callable[[], object]) -> str:
        return f"{spread([seconds(work) for _ in range(options.runs)])} s"

    with tempfile.TemporaryDirectory() as few, tempfile.TemporaryDirectory() as many:
        early, store = Store(few), Store(many)
        _fill(early, RECALLED, options.variants)
        _fill(store, options.nights, options.variants)
        print(f"{options.nights:,} nights of {options.variants} variants")
        print(f"first look at a trend, with its libraries: {seconds(lambda: trend_page(store, 'variant 0')):.2f} s")
        print(f"trend page: {median(lambda: trend_page(store, 'variant 0'))}")
        print(f"overview: {median(lambda: overview(store))}")
        tonight, early_tonight = (_night(count, options.variants) for count in (options.nights, RECALLED))
        print(f"a night's history section: {median(lambda: _judge(store, tonight))}")
        late = [
            (seconds(lambda: _add(store, tonight)), seconds(lambda: _add(early, early_tonight)))
            for _ in range(options.runs)
        ]
        times, ratio = statistics.median(s for s, _ in late), statistics.median(a / b for a, b in late)
        print(f"adding a night: {times:.2f} s, {ratio:.1f} times what it takes at night {RECALLED}")
        print(f"at most {_peak_mb(lambda: trend_page(store, 'variant 0')):.0f} MB of Python objects for a trend page")
    return 0


def _night(number: int, variants: int) -> Night:
    generator = random.Random(number)
    machine = Machine(
        machine_class="m", hostname="h", cpu_model="EPYC", cores=16, memory_mb=64_000, kernel="6.1", python="3.11",
        packages=dict.fromkeys(("tensorflow", "keras", "numpy", "xprof", "pandas", "apache-airflow"), "1.2.3"),
    )  # fmt: skip
    stages = tuple(NightlyStage(operator=name, self_ms=generator.uniform(1, 9), parallelism=8) for name in STAGES)
    results = {
        f"variant_{n}": NightlyResult(
            series=f"variant {n}", kin=f"variant {n}", step_time_ms=50 * generator.lognormvariate(0, 0.01), error=0.003,
            verdict="balanced", stages=stages,
        )
        for n in range(variants)
    }  # fmt: skip
    created = datetime(2024, 1, 1, 2, 30, tzinfo=UTC) + timedelta(days=number)
    return Night(
        run_id=f"scheduled__{created.isoformat()}", created_at=created.isoformat(), machine=machine,
        git_revision=f"{number // 7:07x}", conditions={"data": "abc", "batch_size": "32", "accelerator": "gpu T4"},
        ceiling_ms=45.0, results=results,
    )  # fmt: skip


def _fill(store: Store, count: int, variants: int) -> None:
    nights = [_night(number, variants) for number in range(count)]
    store.run(_night(count, variants).run_id).path.mkdir(parents=True)  # tonight's
    store.history.write_text("".join(night.model_dump_json() + "\n" for night in nights))
    for night in nights:
        store.run(night.run_id).path.mkdir(parents=True)


def _judge(store: Store, tonight: Night) -> None:
    judge(tonight, History(store).before(tonight), Accepted(), 0.02)


def _add(store: Store, tonight: Night) -> None:
    """All that a comparison does about the nights: read, judge, keep."""
    history = History(store)
    judge(tonight, history.before(tonight), Accepted(), 0.02)
    history.add(tonight)


def _peak_mb(work: Callable[[], object]) -> float:
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


if __name__ == "__main__":
    sys.exit(main())
