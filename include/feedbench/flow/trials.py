"""One trial in a process of its own, its files where the others look for them."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from feedbench.dataset.sources import localise
from feedbench.errors import TrialFailed
from feedbench.flow.evidence import read_evidence
from feedbench.progress import Progress
from feedbench.records import PlannedTrial, Run, Trial
from feedbench.store import RunFolder, Store, TrialFolder, local_file, upload
from feedbench.training.job import Job
from feedbench.training.launch import run_trial, scratch_folder


def train(store: Store, run_id: str, planned: Mapping[str, Any], progress: Progress) -> dict[str, Any] | None:
    """Run one trial in a process of its own; None when enough rounds have settled the matter already.

    Raises TrialFailed with the trial's reason; its record has been written before.
    """
    trial_plan = PlannedTrial.model_validate(planned)
    folder = store.run(run_id)
    run = folder.read_run()
    if trial_plan.round > run.settings.rounds and is_settled(folder, run, before_round=trial_plan.round):
        return None
    number = run.trials.index(trial_plan) + 1
    progress.note(f"trial {number} of {len(run.trials)}: {trial_plan.variant} #{trial_plan.round}")
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
            upload(out, target.path, last=TrialFolder.RECORD)
    return trial


def is_settled(folder: RunFolder, run: Run, *, before_round: int) -> bool:
    """Whether the rounds before this one decide: judged on whole rounds only, so that every worker says the same."""
    from feedbench.analysis.compare import settled  # scipy: most trials never ask

    done = [planned for planned in run.trials if planned.round < before_round]
    evidence = [read_evidence(folder, planned) for planned in done]
    return settled(run, evidence)
