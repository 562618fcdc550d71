"""From all trials of a run to its comparison and report."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from feedbench.analysis.compare import compare
from feedbench.analysis.evidence import Evidence
from feedbench.errors import InputError
from feedbench.flow.evidence import read_evidence
from feedbench.history.judgement import judge
from feedbench.history.nights import History, night_of
from feedbench.progress import Progress, tracked
from feedbench.records import Accepted, Comparison, Run, RunSummary, XprofStatement
from feedbench.report.render import render
from feedbench.store import RunFolder, Store, local_file, write_bytes
from feedbench.trace.xprof_tools import xprof_statement


def compare_run(store: Store, run_id: str, progress: Progress) -> dict[str, Any]:
    """Reads every planned trial's files, there or not; writes comparison.json and the report."""
    folder = store.run(run_id)
    run = folder.read_run()
    ran = [
        planned for planned in run.trials if planned.round <= run.settings.rounds or folder.trial(planned).has_record()
    ]
    evidence = []
    with tracked(progress, "reading profiles", len(ran), "trials") as advance:
        for planned in ran:
            evidence.append(read_evidence(folder, planned))
            advance(1)
    history = History(store)
    comparison = _with_history(history, store, run, compare(run, evidence, _xprof_reader(folder)))
    folder.write_comparison(comparison)
    write_report(folder, run, comparison)
    history.add(night_of(run, comparison))
    return {
        "verdict": comparison.verdict,
        "fastest": comparison.fastest[0] if comparison.fastest else None,
        "report": f"runs/{run_id}/report.html",
    }


def _with_history(history: History, store: Store, run: Run, comparison: Comparison) -> Comparison:
    """Held against the nights before."""
    accepted, unread = _accepted(store)
    tonight = night_of(run, comparison)
    judged = judge(tonight, history.before(tonight), accepted, run.settings.min_effect)
    warnings = (*comparison.warnings, *judged.suspicions, *unread)
    return comparison.model_copy(update={"history": judged.changes, "warnings": warnings})


def _accepted(store: Store) -> tuple[Accepted, tuple[str, ...]]:
    """What people took for good; nothing, with a warning, where that cannot be read: the report is due all the same."""
    try:
        return store.read_accepted(), ()
    except InputError as error:
        return Accepted(), (f"No regression counts as accepted, for acceptances could not be read: {error}.",)


def write_report(folder: RunFolder, run: Run, comparison: Comparison) -> None:
    """report.html, report.md and summary.json; the machine they tell is the one that trained, where a trial told it."""
    run = run.model_copy(update={"machine": comparison.machine or run.machine})
    report = render(comparison, run)
    write_bytes(folder.report_md, report.markdown.encode())
    write_bytes(folder.report_html, report.html.encode())
    folder.write_summary(RunSummary.of(run, comparison))


def _xprof_reader(folder: RunFolder) -> Callable[[Evidence], XprofStatement]:
    """xprof's own statement on one trial; asked for one trial a variant, for it is slow.

    Of a profile that has been removed since, to save room, what it said before stands.
    """
    try:
        before = {variant.name: variant.xprof for variant in folder.read_comparison().variants}
    except InputError:
        before = {}

    def read(evidence: Evidence) -> XprofStatement:
        files = folder.trial(evidence.planned).xplanes()
        if not files and (said := before.get(evidence.planned.variant)):
            return said
        if len(files) != 1:
            return XprofStatement(available=False, reason=f"{len(files) or 'no'} profiles are there, not one")
        with tempfile.TemporaryDirectory() as copies:
            return xprof_statement(local_file(files[0], Path(copies)))

    return read
