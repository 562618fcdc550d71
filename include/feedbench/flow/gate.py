"""Whether a run is red. Light: it is asked by a task of its own and by whoever tells people of it."""

from feedbench.errors import Regressed, TrialFailed
from feedbench.history.causes import change_sentence
from feedbench.records import Change, Comparison
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


def regressions(comparison: Comparison) -> list[Change]:
    changes = comparison.history.changes if comparison.history else ()
    return [change for change in changes if change.direction == "slower"]
