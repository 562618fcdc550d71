"""A person takes a regression for good."""

from feedbench.errors import SettingsError
from feedbench.flow.gate import regressions
from feedbench.flow.results import write_report
from feedbench.records import Accepted
from feedbench.store import Store


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
    with store.alone():
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
