"""The list of runs: which there are, in which order, and what each row says. Strings for people, decided here."""

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from feedbench.errors import InputError, MissingFile
from feedbench.records import Machine, Run, RunSummary
from feedbench.store import RunFolder, Store
from feedbench.units import DASH, count

PAGE_SIZE = 50
READERS = 16
"""Documents read at once: an object store answers each in tens of milliseconds, however many are asked for."""
ACTIVE = ("queued", "running")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?([+-]\d\d:\d\d)?")
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Known:
    """What Airflow knows of a run."""

    state: str
    run_after: datetime


@dataclass(frozen=True)
class Row:
    """One run, as the page shows it."""

    run_id: str
    when: str
    """UTC, to the minute."""
    state: str
    tone: str
    """good, warn, bad or muted."""
    verdict: str = ""
    machine: str = DASH
    machine_detail: str = ""
    accelerator: str = DASH
    fastest: str = DASH
    fastest_detail: str = ""
    has_report: bool = False
    has_folder: bool = True


@dataclass(frozen=True)
class Page:
    """Some of the runs, newest first. `number` counts from one."""

    rows: tuple[Row, ...]
    number: int
    pages: int
    runs: int

    @property
    def first(self) -> int:
        return (self.number - 1) * PAGE_SIZE + 1


def runs_page(store: Store, known: Mapping[str, Known], number: int) -> Page:
    """Page `number` of all runs with a folder, and of those that have been queued or started and have none yet.

    One listing and at most PAGE_SIZE runs read. A number past the end shows the last page.
    """
    there = set(store.run_ids())
    active = {run_id for run_id, run in known.items() if run.state in ACTIVE}
    ordered = sorted(there | active, key=lambda run_id: (began(run_id, known), run_id), reverse=True)
    pages = max(1, -(-len(ordered) // PAGE_SIZE))
    number = min(number, pages)
    wanted = ordered[(number - 1) * PAGE_SIZE : number * PAGE_SIZE]
    return Page(_rows(store, wanted, there, known), number, pages, len(ordered))


def _rows(store: Store, wanted: Sequence[str], there: set[str], known: Mapping[str, Known]) -> tuple[Row, ...]:
    def row(run_id: str) -> Row:
        return run_row(store.run(run_id) if run_id in there else None, run_id, known)

    with ThreadPoolExecutor(READERS) as readers:
        return tuple(readers.map(row, wanted))


def began(run_id: str, known: Mapping[str, Known]) -> datetime:
    """When a run was due, from Airflow or else from its name; long ago where neither tells."""
    if run_id in known:
        return known[run_id].run_after
    if found := _TIME.search(run_id):
        try:
            when = datetime.fromisoformat(found[0])
        except ValueError:  # the 31st of February
            return _LONG_AGO
        return when if when.tzinfo else when.replace(tzinfo=UTC)
    return _LONG_AGO


def run_row(folder: RunFolder | None, run_id: str, known: Mapping[str, Known]) -> Row:
    """What is to be said of one run. A file that cannot be understood is said, too, and breaks nothing."""
    row = Row(run_id, _minute(began(run_id, known)), *_without_report(run_id, known))
    if folder is None:
        return replace(row, has_folder=False)
    try:
        return _finished(row, folder.read_summary())
    except MissingFile:
        return _unfinished(row, folder)
    except InputError as error:
        return _broken(row, folder, error)


def _without_report(run_id: str, known: Mapping[str, Known]) -> tuple[str, str]:
    state = known[run_id].state if run_id in known else None
    if state in ACTIVE:
        return state, "muted"
    return ("no report: the run ended without one", "bad") if state else ("no report yet", "muted")


def _finished(row: Row, summary: RunSummary) -> Row:
    said = row.state, row.tone
    if row.state not in ACTIVE:
        said = ("done", "good")
        if summary.without_result:
            said = (f"{summary.without_result} of {summary.variants} variants without result", "bad")
    row = replace(row, state=said[0], tone=said[1], verdict=summary.verdict, has_report=True)
    row = _with_machine(row, summary.machine, summary.created_at)
    on = summary.accelerator
    return replace(row, accelerator=on.in_words if on else DASH, **_fastest(summary.fastest))


def _unfinished(row: Row, folder: RunFolder) -> Row:
    try:
        run = folder.read_run()
    except MissingFile:
        return row
    except InputError as error:
        return _broken(row, folder, error)
    return _with_machine(_planned(row, run), run.machine, run.created_at)


def _planned(row: Row, run: Run) -> Row:
    return replace(row, verdict=f"{len(run.variants)} variants, {len(run.trials)} trials planned")


def _broken(row: Row, folder: RunFolder, error: InputError) -> Row:
    reason = str(error).replace(f"{folder.path}/", "")
    return replace(row, state="broken file", tone="bad", verdict=reason)


def _with_machine(row: Row, machine: Machine, created_at: str) -> Row:
    when = row.when if row.when != DASH else created_at
    return replace(
        row, when=when, machine=machine.hostname, machine_detail=f"{machine.cpu_model}, {count(machine.cores, 'core')}"
    )


def _fastest(names: Sequence[str]) -> dict[str, str]:
    """The one to ship, and how many others cannot be told from it."""
    if not names:
        return {}
    others = len(names) - 1
    return {"fastest": names[0], "fastest_detail": f"and {others} not distinguishable" if others else ""}


def _minute(when: datetime) -> str:
    return DASH if when == _LONG_AGO else f"{when.astimezone(UTC):%Y-%m-%d %H:%M}"
