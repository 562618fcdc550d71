"""The report, decided and formatted: a frozen tree of final strings and chart series.

Everything that a reader will see is chosen here and in the modules it calls; templates and charts only place it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from feedbench import units
from feedbench.config import Settings
from feedbench.records import Change, Comparison, DataSet, Run, VariantResult
from feedbench.report import wording
from feedbench.report.details import VariantDetails, details
from feedbench.report.glossary import GLOSSARY, Term
from feedbench.report.layout import Cell, Fact, FactList, Table
from feedbench.report.series import Picture, pictures
from feedbench.report.tables import LONGEST_NAME, forecasts_table, next_steps_table, variants_table


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
    method: tuple[FactList, ...]
    warnings: tuple[str, ...]
    glossary: tuple[Term, ...]


def build_view(comparison: Comparison, run: Run) -> View:
    comparison, run = wording.visible(comparison), wording.visible(run)
    variants = ordered(comparison)
    anchors = {variant.name: f"variant-{place}" for place, variant in enumerate(variants, start=1)}
    opened = {comparison.baseline, *comparison.fastest[:1]}
    specs = {spec.name: spec for spec in run.variants}
    return View(
        run_id=comparison.run_id,
        created=f"{run.created_at[:16].replace('T', ' ')} UTC",
        verdict=comparison.verdict,
        emulated=_emulated(run),
        labels=_labels(comparison, run),
        facts=_facts(comparison, run),
        history=_history(comparison),
        variants=variants_table(comparison, variants, anchors),
        fastest_note=fastest_note(comparison),
        next_steps=next_steps_table(comparison.next_steps),
        forecasts=forecasts_table(variants),
        pictures=pictures(comparison, variants),
        details=tuple(
            details(v, specs.get(v.name), anchors[v.name], v.name in opened, comparison.steps_per_pass)
            for v in variants
        ),
        method=_method(comparison, run),
        warnings=comparison.warnings,
        glossary=GLOSSARY,
    )


def ordered(comparison: Comparison) -> tuple[VariantResult, ...]:
    """The baseline first, the others as given."""
    return tuple(sorted(comparison.variants, key=lambda variant: variant.name != comparison.baseline))


# ---- the head ------------------------------------------------------------------------------------------------------


def _emulated(run: Run) -> Cell | None:
    """From the settings, so that it is also said of a run in which no trial got as far as its accelerator."""
    if run.settings.accelerator != "emulated":
        return None
    step = f"each step sleeps {units.ms(run.settings.emulated_step_ms)} ms instead of training on a device"
    return Cell("EMULATED ACCELERATOR", detail=step, tone="warn")


def _labels(comparison: Comparison, run: Run) -> tuple[Cell, ...]:
    """What must not be overlooked."""
    labels = []
    if run.settings.weights == "none" and run.settings.accelerator != "emulated":
        labels.append(Cell("Random weights", detail="the accuracies mean nothing", tone="muted"))
    failed = sum(variant.status != "ok" for variant in comparison.variants)
    if failed:
        label = f"{failed} of {units.count(len(comparison.variants), 'variant')} failed or invalid"
        labels.append(Cell(label, tone="bad", href="variants"))
    if comparison.warnings:
        labels.append(Cell(units.count(len(comparison.warnings), "warning"), tone="warn", href="warnings"))
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
        return f"★ {_named(comparison.fastest)} is faster than every other variant."
    return f"★ cannot be told apart from the fastest, the simplest first: {_named(comparison.fastest)}."


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


# ---- how it was measured -------------------------------------------------------------------------------------------


def _method(comparison: Comparison, run: Run) -> tuple[FactList, ...]:
    machine = run.machine
    statistics = _known(
        ("Method version", str(run.method_version)),
        ("Noise floor", _share(comparison.noise_floor), "m-noise-floor"),
        ("Smallest detectable effect", _share(comparison.smallest_detectable_effect), "m-detectable"),
        ("Page cache", "warm: every photo was read by the index just before the trials"),
    )
    hardware = _known(
        ("Host", machine.hostname),
        ("CPU", machine.cpu_model),
        ("Cores allowed", str(machine.cores)),
        ("Memory allowed", units.mb(machine.memory_mb)),
        ("GPU", ", ".join(machine.gpus) or "none"),
        ("Driver", machine.driver),
        ("CUDA", machine.cuda),
        ("Kernel", machine.kernel),
        ("Machine class", machine.machine_class),
    )
    versions = _known(
        ("Git revision", run.git_revision),
        ("Python", machine.python),
        *sorted(machine.packages.items()),
        ("All packages", machine.lock_hash),
        ("Start weights", run.weights_digest),
    )
    return (
        FactList("Measurement", (*statistics, *_settings(run.settings, ("Measurement", "Training", "Pipelines")))),
        FactList("Data", _data(run.data, run.settings)),
        FactList("Machine", hardware),
        FactList("Versions", versions),
    )


def _share(value: float | None) -> str | None:
    return None if value is None else units.share(value)


def _known(*facts: tuple[Any, ...]) -> tuple[Fact, ...]:
    return tuple(Fact(*fact) for fact in facts if fact[1])


def _data(data: DataSet, settings: Settings) -> tuple[Fact, ...]:
    files = data.photos + data.rejects
    rejected = f"{units.count(data.rejects, 'file')} ({units.share(data.rejects / files if files else 0)})"
    return _known(
        ("Source", data.source),
        ("Photos", f"{data.photos:,}, of which {data.train_photos:,} to train, {data.validation_photos:,} to validate"),
        ("Classes", f"{len(data.classes)}: {wording.shortened(', '.join(data.classes), 300)}"),
        ("Rejected", f"{rejected}, named in rejects.csv" if data.rejects else "none"),
        ("Fingerprint", data.fingerprint),
        *((fact.label, fact.value) for fact in _settings(settings, ("Data",)) if fact.label != "Photos from"),
    )


def _settings(settings: Settings, sections: Iterable[str]) -> tuple[Fact, ...]:
    """Every setting of the sections under its title in the trigger form."""
    return tuple(
        Fact(field.title or name, _setting(name, getattr(settings, name)))
        for section in sections
        for name, field in Settings.model_fields.items()
        if isinstance(field.json_schema_extra, dict) and field.json_schema_extra.get("section") == section
    )


def _setting(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(value) or ("all" if name == "variants" else "none")
    if value is None:
        return "not set"
    return f"{value:g}" if isinstance(value, float) else str(value)
