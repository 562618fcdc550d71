"""What can go wrong in a way that a person can mend, and the exit code that says so."""

import difflib
from collections.abc import Iterable


class FeedbenchError(Exception):
    """Base of every error whose message is meant for a person; anything else is a defect."""

    exit_code = 1


class SettingsError(FeedbenchError):
    """A setting, name or option is wrong; nothing has been run yet."""

    exit_code = 2


class InputError(FeedbenchError):
    """The data given (photos, archive, profile, run folder) cannot be used."""

    exit_code = 3


class MissingFile(InputError):
    """A file that should be there is not, or not yet."""


class OutputError(FeedbenchError):
    """A result cannot be written: the disk is full, or the store refuses it."""


class TrialFailed(FeedbenchError):
    """A trial ended without a result; its row in the report carries the same reason."""


class Regressed(FeedbenchError):
    """A variant got slower than its recent nights by more than the limit, and nobody accepted it."""


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for a mistyped name: `; did you mean 'prefetch'?`, or all the names when none is near."""
    names = list(known)
    match = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {match[0]!r}?" if match else f"; known: {', '.join(names)}"
