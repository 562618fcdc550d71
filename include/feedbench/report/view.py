"""The report, decided and formatted: a frozen tree of final strings and chart series.

Everything that a reader will see is chosen here and in the modules it calls; templates and charts only place it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from feedbench import units
from feedbench.analysis.verdict import lowest
from feedbench.config import A_A_TWIN
from feedbench.records import Change, Comparison, Run, VariantResult
from feedbench.report import wording
from feedbench.report.details import VariantDetails, details
from feedbench.report.glossary import GLOSSARY, Term
from feedbench.report.layout import Cell, Fact, FactList, Table
from feedbench.report.measurement import cautions, measured_how, more_rounds
from feedbench.report.series import Picture, pictures
from feedbench.report.tables import LONGEST_NAME, forecasts_table, next_steps_table, variants_table

_DETAILS_NOTE = (
    "Step times, input wait and verdict are of all rounds, as in the table above. What the profile tells (stages, "
    "operators, layers, and xprof's reading) is of one round each, the one of median step time, and may differ from it."
)


@dataclass(frozen=True)
class ChangeStory:
    sentence: str
    tone: str
    causes: tuple[str, ...]


@dataclass(frozen=True)
class History:
    """The section "since last night"."""

    summary: str
    changes: tuple[ChangeStory, ...]
    environment: tuple[str, ...]


@dataclass(frozen=True)
class View:
    run_id: str
    created: str
    verdict: str
    emulated: Cell | None
    """Said in large letters: no device was measured."""
    labels: tuple[Cell, ...]
    facts: tuple[Fact, ...]
    history: History | None
    variants: Table
    fastest_note: str
    next_steps: Table | None
    forecasts: Table | None
    pictures: tuple[Picture, ...]
    details: tuple[VariantDetails, ...]
    details_note: str
    method: tuple[FactList, ...]
    warnings: tuple[str, ...]
    glossary: tuple[Term, ...]


def build_view(comparison: Comparison, run: Run) -> View:
    comparison, run = wording.visible(comparison), wording.visible(run)
    variants = ordered(comparison)
    anchors = {variant.name: f"variant-{place}" for place, variant in enumerate(variants, start=1)}
    warnings = cautions(comparison, run)
    opened = _opened(comparison)
    specs = {spec.name: spec for spec in run.variants}
    return View(
        run_id=comparison.run_id,
        created=f"{run.created_at[:16].replace('T', ' ')} UTC",
        verdict=comparison.verdict,
        emulated=_emulated(run),
        labels=_labels(comparison, run, warnings),
        facts=_facts(comparison, run),
        history=_history(comparison),
        variants=variants_table(comparison, variants, anchors),
        fastest_note=fastest_note(comparison),
        next_steps=next_steps_table(comparison.next_steps, more_rounds(comparison, run)),
        forecasts=forecasts_table(variants, comparison.baseline),
        pictures=pictures(comparison, variants),
        details=tuple(
            details(v, specs.get(v.name), anchors[v.name], v.name in opened, comparison.steps_per_pass)
            for v in variants
        ),
        details_note=_DETAILS_NOTE,
        method=measured_how(comparison, run),
        warnings=warnings,
        glossary=GLOSSARY,
    )


def ordered(comparison: Comparison) -> tuple[VariantResult, ...]:
    """The baseline first, the others as given."""
    return tuple(sorted(comparison.variants, key=lambda variant: variant.name != comparison.baseline))


def _opened(comparison: Comparison) -> set[str]:
    """The baseline, and the one to ship; where that is the baseline, the one of lowest mean that equals it."""
    if not comparison.fastest:
        return {comparison.baseline}
    ship = comparison.fastest[0]
    return {comparison.baseline, ship if ship != comparison.baseline else lowest(comparison).name}


# ---- the head ------------------------------------------------------------------------------------------------------


def _emulated(run: Run) -> Cell | None:
    """From the settings, so that it is also said of a run in which no trial got as far as its accelerator."""
    if run.settings.accelerator != "emulated":
        return None
    step = f"each step sleeps {units.ms(run.settings.emulated_step_ms)} ms instead of training on a device"
    return Cell("EMULATED ACCELERATOR", detail=step, tone="warn")


def _labels(comparison: Comparison, run: Run, warnings: Sequence[str]) -> tuple[Cell, ...]:
    """What must not be overlooked."""
    labels = []
    if run.settings.weights == "none" and run.settings.accelerator != "emulated":
        labels.append(Cell("Random weights", detail="the accuracies mean nothing", tone="muted"))
    failed = sum(variant.status != "ok" for variant in comparison.variants)
    if failed:
        label = f"{failed} of {units.count(len(comparison.variants), 'variant')} failed or invalid"
        labels.append(Cell(label, tone="bad", href="variants"))
    if warnings:
        labels.append(Cell(units.count(len(warnings), "warning"), tone="warn", href="warnings"))
    return tuple(labels)


def _facts(comparison: Comparison, run: Run) -> tuple[Fact, ...]:
    machine, on = run.machine, comparison.accelerator
    rounds = units.count(max((variant.rounds for variant in comparison.variants), default=0), "round")
    per_pass = f", {comparison.steps_per_pass} steps a pass" if comparison.steps_per_pass else ""
    facts = [
        Fact("Machine", f"{machine.cpu_model}, {units.count(machine.cores, 'core')}, {units.mb(machine.memory_mb)}"),
        Fact("Accelerator", on.in_words if on else "not known: no trial got so far"),
        Fact("Data", f"{run.data.source}: {units.count(run.data.photos, 'photo')}"),
        Fact("Measured", f"{rounds}{per_pass}, batch of {comparison.batch_size}"),
    ]
    if comparison.ceiling_ms is not None:
        facts.append(Fact("Ceiling", f"{units.ms(comparison.ceiling_ms)} ms a step", "m-ceiling"))
    return tuple(facts)


def fastest_note(comparison: Comparison) -> str:
    if not comparison.fastest:
        return ""
    if len(comparison.fastest) == 1:
        rivals = {v.name for v in comparison.variants if v.status == "ok"} - {A_A_TWIN, *comparison.fastest}
        if not rivals:
            return f"★ {_named(comparison.fastest)} is the only variant with a valid result: it was compared with none."
        return f"★ {_named(comparison.fastest)} is faster than every other variant."
    return f"★ cannot be told apart from the fastest: {_named(comparison.fastest)}."


def _named(variants: Iterable[str]) -> str:
    return ", ".join(wording.shortened(name, LONGEST_NAME) for name in variants)


# ---- since last night ----------------------------------------------------------------------------------------------


def _history(comparison: Comparison) -> History | None:
    history = comparison.history
    if history is None:
        return None
    if history.compared_with is None:
        summary = "First night of this series: from the next one on, changes are told here."
    else:
        since = f"{units.count(history.nights, 'recent night')}; last good night: {history.compared_with}"
        changed = units.count(len(history.changes), "variant changed", "variants changed")
        summary = f"{changed if history.changes else 'No variant changed'} against {since}."
    return History(summary, tuple(map(_change, history.changes)), history.environment)


def _change(change: Change) -> ChangeStory:
    size = f"{units.share(abs(change.size.value))} {change.direction}"
    accepted = f" Accepted: {change.accepted}" if change.accepted else ""
    return ChangeStory(
        f"{change.variant} is {size} {wording.interval_share(change.size)} since {change.since} "
        f"(run {change.since_run}; confidence {_confidence(change.confidence)}).{accepted}",
        "muted" if change.accepted else "bad" if change.direction == "slower" else "good",
        change.causes,
    )


def _confidence(share: float) -> str:
    """Never 100 %: nothing here is certain."""
    return "over 99 %" if share > 0.99 else units.share(share)
