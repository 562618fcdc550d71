"""What a trial left behind, read from its files."""

import tempfile
from pathlib import Path

from upath import UPath

from feedbench.analysis.evidence import Evidence
from feedbench.errors import InputError, MissingFile
from feedbench.records import PlannedTrial, Profile
from feedbench.store import RunFolder, TrialFolder, local_file
from feedbench.trace.profile import read_profile


def read_evidence(folder: RunFolder, planned: PlannedTrial) -> Evidence:
    """A trial's record and profile, read from the files; what is missing or cannot be read has its reason."""
    trial_folder = folder.trial(planned)
    logdir = str(trial_folder.logdir.relative_to(folder.path))
    try:
        trial = trial_folder.read_trial()
    except MissingFile:
        return Evidence(planned, None, None, logdir)
    except InputError as error:
        return Evidence(planned, None, None, logdir, unreadable=str(error))
    if (trial.variant, trial.round) != (planned.variant, planned.round):
        reason = f"{trial_folder.path / TrialFolder.RECORD}: the record of {trial.variant} #{trial.round}, not of this"
        return Evidence(planned, None, None, logdir, unreadable=reason)
    files = trial_folder.xplanes() if trial.status == "ok" else []
    if not files:
        return Evidence(planned, trial, _read_before(trial_folder) if trial.status == "ok" else None, logdir)
    if len(files) > 1:
        reason = f"{len(files)} profiles lie there, and nothing tells which is this trial's"
        return Evidence(planned, trial, Profile(file=logdir, status="unusable", reason=reason), logdir)
    profile = _read_now(files[0])
    trial_folder.write_profile(profile)
    return Evidence(planned, trial, profile, logdir)


def _read_now(file: UPath) -> Profile:
    try:
        with tempfile.TemporaryDirectory() as copies:
            profile = read_profile(local_file(file, Path(copies)))
    except InputError as error:  # a link that leads nowhere
        return Profile(file=file.name, status="unusable", reason=str(error))
    return profile.model_copy(update={"file": file.name})


def _read_before(trial_folder: TrialFolder) -> Profile | None:
    """What an earlier comparison read from a profile that has been removed since, to save room."""
    try:
        return trial_folder.read_profile()
    except InputError:
        return None
