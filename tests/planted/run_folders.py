"""Run folders as real runs leave them."""

from feedbench.history.nights import night_of
from feedbench.records import RunSummary
from planted import comparisons

DAG_ID = "input_pipeline_benchmark"
FINISHED = "scheduled__2026-03-04T02:30:00+00:00"
RUNNING = "manual__2026-03-05T09:00:00+00:00"
QUEUED = "manual__2026-03-05T10:00:00+00:00"
BROKEN = "by_hand"
LINKED = "linked__2026-03-04T02:30:00+00:00"
PROFILE = "trials/prefetch/1/train/plugins/profile/2026_03_04/worker.xplane.pb"
SECRET = b"what lies outside of the artefacts"
INSIDE = b"what only a reader may see"


def finished_comparison(run_id, **changes):
    return comparisons.comparison_of(*comparisons.healthy_variants(), run_id=run_id, **changes)


def finish(store, run_id, **changes):
    """A run folder with all that a finished run leaves."""
    folder, comparison = store.run(run_id), finished_comparison(run_id, **changes)
    run = comparisons.run_of(comparison)
    folder.write_run(run)
    folder.write_comparison(comparison)
    folder.write_summary(RunSummary.of(run, comparison))
    folder.report_html.write_bytes(b"<!DOCTYPE html><html><body><h1>" + INSIDE + b"</h1></body></html>")
    folder.report_md.write_bytes(INSIDE)
    folder.rejects.write_bytes(b"file,reason\n")
    profile = folder.path / PROFILE
    profile.parent.mkdir(parents=True, exist_ok=True)
    profile.write_bytes(INSIDE * 10_000)
    return folder


def plan(store, run_id):
    """A run folder as it is while the first trial runs."""
    store.run(run_id).write_run(comparisons.run_of(finished_comparison(run_id)))


def series_of(run_id):
    """Of its variant `prefetch`."""
    comparison = finished_comparison(run_id)
    return night_of(comparisons.run_of(comparison), comparison).results["prefetch"].series
