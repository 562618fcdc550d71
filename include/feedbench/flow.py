"""The verbs of a run, one for each task of the DAG; the CLI calls the same ones in a loop.

    download -> index -> plan -> train[variant, round] -> compare -> gate

What passes between them on disk goes through `store.py`; what they return are small dicts of plain values,
fit for XCom.
"""

import os
import random
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from feedbench.analysis.compare import compare, settled
from feedbench.analysis.evidence import Evidence
from feedbench.config import CEILING, METHOD_VERSION, Settings
from feedbench.dataset.index import build_index, dataset_record, read_index, write_index
from feedbench.dataset.sources import Fetched, check_source, expected_photos, fetch, localise
from feedbench.dataset.weights import check_weights, fetch_weights
from feedbench.errors import InputError, MissingFile, Regressed, SettingsError, TrialFailed
from feedbench.history.judgement import change_sentence, judge
from feedbench.history.nights import History, night_of
from feedbench.pipelines.build import cache_bytes
from feedbench.pipelines.variants import Variant, chosen
from feedbench.progress import Progress
from feedbench.records import (
    Accepted,
    Change,
    Comparison,
    Machine,
    PlannedTrial,
    Profile,
    Run,
    RunSummary,
    Trial,
    XprofStatement,
)
from feedbench.report.render import render
from feedbench.store import RunFolder, Store, TrialFolder, local_file, upload, write_bytes
from feedbench.trace.profile import read_profile
from feedbench.trace.xprof_tools import xprof_statement
from feedbench.training.job import Job
from feedbench.training.launch import run_trial, scratch_folder
from feedbench.training.machine import allowed_memory_mb, fingerprint
from feedbench.units import BYTES_PER_MB, mb


def check(params: Mapping[str, Any], *, trains_here: bool = True) -> Settings:
    """Settings that can be run, checked as far as that goes before anything is downloaded.

    `trains_here`: this machine's memory is the trainer's too; else each trial holds its cache against its own worker.

    Raises SettingsError naming the setting, its value and what would be right.
    """
    settings = Settings.parse(params)
    check_source(settings.source)
    check_weights(settings.weights)
    variants = chosen(settings.variants, settings.variant_modules, a_a=settings.a_a)
    photos = expected_photos(settings)
    if photos is not None:
        check_enough(settings, photos)
        if trains_here:
            check_caches_fit(settings, variants, photos)
    return settings


def check_enough(settings: Settings, photos: int) -> None:
    train = int(photos * (1 - settings.validation_share))
    if train < settings.batch_size:
        raise SettingsError(
            f"batch_size={settings.batch_size}: {photos} photos leave {train} for training, less than one batch; "
            f"use batch_size <= {train} or more photos"
        )


def check_caches_fit(settings: Settings, variants: Iterable[Variant], photos: int) -> None:
    """A memory cache that cannot fit would only be found out by the kernel, an hour later."""
    allowed_mb = allowed_memory_mb()
    for variant in variants:
        needed_mb = cache_bytes(variant, photos, settings.image_size) / BYTES_PER_MB
        if needed_mb > allowed_mb:
            raise SettingsError(
                f"variants={variant.name}: its cache of {photos} photos at image_size={settings.image_size} needs "
                f"{mb(needed_mb)}, this machine allows {mb(allowed_mb)}; use uint8_cache, a smaller image_size, "
                "photos=N, or leave the variant out"
            )


def download(store: Store, settings: Settings, progress: Progress) -> dict[str, Any]:
    """Photos and start weights, fetched and verified. Instant when they are there already."""
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


def train(store: Store, run_id: str, planned: Mapping[str, Any], progress: Progress) -> dict[str, Any] | None:
    """Run one trial in a process of its own; None when enough rounds have settled the matter already.

    Raises TrialFailed with the trial's reason; its record has been written before.
    """
    trial_plan = PlannedTrial.model_validate(planned)
    folder = store.run(run_id)
    run = folder.read_run()
    if trial_plan.round > run.settings.rounds and is_settled(folder, run, before_round=trial_plan.round):
        return None
    trial = _run_locally(store, folder, run, trial_plan, progress)
    if trial.status == "failed":
        raise TrialFailed(f"{trial.variant} #{trial.round}: {trial.reason}")
    mean = sum(trial.step_times_ms) / len(trial.step_times_ms)
    return {"variant": trial.variant, "round": trial.round, "steps": len(trial.step_times_ms), "step_time_ms": mean}


def _run_locally(store: Store, folder: RunFolder, run: Run, planned: PlannedTrial, progress: Progress) -> Trial:
    """The trial in a local folder: in place when the store is one, else uploaded at the end, trial.json last."""
    target = folder.trial(planned)
    if not store.is_local:
        with suppress(FileNotFoundError):  # what a try before this one uploaded must not pass for this one's
            target.path.fs.rm(target.path.path, recursive=True)
    with scratch_folder(f"{run.run_id}-{planned.variant}-{planned.round}") as scratch:
        (cache := scratch / "cache").mkdir()
        out = Path(target.path) if store.is_local else scratch / "trial"
        job = Job(
            run_id=run.run_id,
            variant=planned.variant,
            round=planned.round,
            settings=run.settings,
            index=str(local_file(folder.index, scratch)),
            photos_root=str(localise(store, run.data.path, progress)),
            out=str(out),
            scratch=str(cache),
            weights=str(local_file(store.root / run.weights, scratch)) if run.weights else None,
            parent_pid=os.getpid(),
        )
        trial = run_trial(job, progress)
        if not store.is_local:
            upload(out, target.path, last="trial.json")
    return trial


def is_settled(folder: RunFolder, run: Run, *, before_round: int) -> bool:
    """Whether the rounds before this one decide: judged on whole rounds only, so that every worker says the same."""
    done = [planned for planned in run.trials if planned.round < before_round]
    evidence = [_evidence(folder.trial(planned), planned, folder) for planned in done]
    return settled(run, evidence)


def compare_run(store: Store, run_id: str, progress: Progress) -> dict[str, Any]:
    """Reads every planned trial's files, there or not; writes comparison.json and the report."""
    folder = store.run(run_id)
    run = folder.read_run()
    ran = [planned for planned in run.trials if planned.round <= run.settings.rounds or _exists(folder, planned)]
    progress.start("reading profiles", len(ran), "trials")
    evidence = []
    for planned in ran:
        evidence.append(_evidence(folder.trial(planned), planned, folder))
        progress.advance()
    progress.done()
    comparison = _with_history(store, folder, run, compare(run, evidence, _xprof_reader(folder)))
    folder.write_comparison(comparison)
    write_report(folder, run, comparison)
    return {
        "verdict": comparison.verdict,
        "fastest": comparison.fastest[0] if comparison.fastest else None,
        "report": f"runs/{run_id}/report.html",
    }


def _with_history(store: Store, folder: RunFolder, run: Run, comparison: Comparison) -> Comparison:
    """Held against the nights before, and kept for those after."""
    history, tonight = History(store), night_of(run, comparison, _measured_on(folder, run))
    judged = judge(tonight, history.before(tonight), store.read_accepted(), run.settings.min_effect)
    history.add(tonight)
    warnings = (*comparison.warnings, *judged.suspicions)
    return comparison.model_copy(update={"history": judged.changes, "warnings": warnings})


def write_report(folder: RunFolder, run: Run, comparison: Comparison) -> None:
    """report.html, report.md and summary.json; the machine they tell is the one that trained, where a trial told it."""
    run = run.model_copy(update={"machine": _measured_on(folder, run) or run.machine})
    report = render(comparison, run)
    write_bytes(folder.report_md, report.markdown.encode())
    write_bytes(folder.report_html, report.html.encode())
    folder.write_summary(RunSummary.of(run, comparison))


def _measured_on(folder: RunFolder, run: Run) -> Machine | None:
    """The machine of the first trial that told it: the planner may well sit on another one."""
    for planned in run.trials:
        try:
            if machine := folder.trial(planned).read_trial().machine:
                return machine
        except InputError:
            continue
    return None


def gate(store: Store, run_id: str) -> None:
    """Turns the run red for its failures, then for its regressions; the report exists before that.

    Raises TrialFailed naming every variant that failed or was invalid, else Regressed naming every one that got slower
    by more than `max_regression`, with size, interval and causes, and that nobody accepted.
    """
    folder = store.run(run_id)
    comparison, settings = folder.read_comparison(), folder.read_run().settings
    bad = [f"{variant.name}: {variant.reason}" for variant in comparison.variants if variant.status != "ok"]
    if bad:
        raise TrialFailed("; ".join(bad))
    worse = [c for c in regressions(comparison) if not c.accepted and c.size.value > settings.max_regression]
    if worse:
        how = f"to take it for good: feedbench accept '{run_id}' {worse[0].variant} --reason '...'"
        raise Regressed(" | ".join([*map(change_sentence, worse), how]))


def accept(store: Store, run_id: str, variant: str, reason: str) -> None:
    """A person takes a regression for good: this run is not red for it, and later nights are held against it.

    Raises SettingsError when the run has no such regression or no reason is given.
    """
    folder = store.run(run_id)
    run, comparison = folder.read_run(), folder.read_comparison()
    names = [change.variant for change in regressions(comparison)]
    if variant not in names:
        raise SettingsError(f"variant {variant!r}: not slower in this run; slower: {', '.join(names) or 'none'}")
    if not reason.strip():
        raise SettingsError("reason: say why, for those who ask later")
    known = store.read_accepted().reasons
    store.write_accepted(Accepted(reasons=known | {run_id: known.get(run_id, {}) | {variant: reason.strip()}}))
    changes = tuple(
        c.model_copy(update={"accepted": reason.strip()}) if c.variant == variant else c
        for c in comparison.history.changes
    )
    history = comparison.history.model_copy(update={"changes": changes})
    comparison = comparison.model_copy(update={"history": history})
    folder.write_comparison(comparison)
    write_report(folder, run, comparison)


def regressions(comparison: Comparison) -> list[Change]:
    changes = comparison.history.changes if comparison.history else ()
    return [change for change in changes if change.direction == "slower"]


def _exists(folder: RunFolder, planned: PlannedTrial) -> bool:
    return (folder.trial(planned).path / "trial.json").exists()


def _evidence(trial_folder: TrialFolder, planned: PlannedTrial, folder: RunFolder) -> Evidence:
    """A trial's record and profile, read from the files; what is missing or cannot be read has its reason."""
    logdir = str(trial_folder.logdir.relative_to(folder.path))
    try:
        trial = trial_folder.read_trial()
    except MissingFile:
        return Evidence(planned, None, None, logdir)
    except InputError as error:
        return Evidence(planned, None, None, logdir, unreadable=str(error))
    files = trial_folder.xplanes() if trial.status == "ok" else []
    if not files:
        return Evidence(planned, trial, _read_before(trial_folder) if trial.status == "ok" else None, logdir)
    if len(files) > 1:
        reason = f"{len(files)} profiles lie there, and nothing tells which is this trial's"
        return Evidence(planned, trial, Profile(file=logdir, status="unusable", reason=reason), logdir)
    with tempfile.TemporaryDirectory() as copies:
        profile = read_profile(local_file(files[0], Path(copies)))
    profile = profile.model_copy(update={"file": files[0].name})
    trial_folder.write_profile(profile)
    return Evidence(planned, trial, profile, logdir)


def _read_before(trial_folder: TrialFolder) -> Profile | None:
    """What an earlier comparison read from a profile that has been removed since, to save room."""
    try:
        return trial_folder.read_profile()
    except InputError:
        return None


def _xprof_reader(folder: RunFolder) -> Callable[[Evidence], XprofStatement]:
    """xprof's own statement on one trial; asked for one trial a variant, for it is slow."""

    def read(evidence: Evidence) -> XprofStatement:
        files = folder.trial(evidence.planned).xplanes()
        if len(files) != 1:
            return XprofStatement(available=False, reason=f"{len(files) or 'no'} profiles are there, not one")
        with tempfile.TemporaryDirectory() as copies:
            return xprof_statement(local_file(files[0], Path(copies)))

    return read


def _git_revision() -> str | None:
    """Of this code: $FEEDBENCH_GIT_REVISION (set in images), else of the checkout it lies in."""
    if given := os.environ.get("FEEDBENCH_GIT_REVISION"):
        return given
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip() or None
    except (OSError, subprocess.SubprocessError):
        return None
