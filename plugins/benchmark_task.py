"""What the tasks of the benchmark have in common: the run they belong to, and errors told in a line."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow.sdk import get_current_context

from feedbench.errors import FeedbenchError

if TYPE_CHECKING:
    from feedbench.config import Settings
    from feedbench.progress import Progress
    from feedbench.store import Store


@contextmanager
def told() -> Iterator[None]:
    """An error that a person can mend ends the log with its one line, not with a stack of frames."""
    try:
        yield
    except FeedbenchError as error:
        logging.getLogger("airflow.task").error("%s", error)
        sys.exit(error.exit_code)


@dataclass(frozen=True)
class ThisRun:
    store: "Store"
    run_id: str
    settings: "Settings"
    progress: "Progress"
    """Into the task's log."""


def this_run() -> ThisRun:
    """The run that the task belongs to.

    Whether source, weights and variants are what they should be is for `download` to check: another worker need not
    see the folder that they came from.
    """
    from feedbench.config import Settings
    from feedbench.progress import Lines
    from feedbench.store import Store

    context = get_current_context()
    asked = {**context["params"], **(context["dag_run"].conf or {})}  # params alone would drop unknown keys
    return ThisRun(Store(), context["run_id"], Settings.parse(asked), Lines(sys.stdout))
