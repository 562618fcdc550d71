"""Whether a run is red, and what a person may do about it."""

from feedbench.errors import Regressed, SettingsError, TrialFailed
from feedbench.flow.results import write_report
from feedbench.history.judgement import change_sentence
from feedbench.records import (
    Accepted,
    Change,
    Comparison,
)
from feedbench.store import Store


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
