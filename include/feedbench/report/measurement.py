"""How it was measured: every setting, the machine, the data, and what a reader must be warned of."""

from collections.abc import Iterable
from typing import Any

from feedbench import units
from feedbench.analysis.advise import rounds_to_see
from feedbench.analysis.verdict import no_clear_winner
from feedbench.config import A_A_TWIN, Settings
from feedbench.records import Comparison, DataSet, Run
from feedbench.report import wording
from feedbench.report.layout import Fact, FactList

_MOST_ROUNDS = 100
_SHARES = ("validation_share", "max_reject_share", "min_effect", "max_regression")
_NOT_GIVEN = {"photos": "all", "max_rounds": "no more than asked for", "emulated_step_ms": "not emulated"}


# ---- what a reader must be warned of -------------------------------------------------------------------------------


def cautions(comparison: Comparison, run: Run) -> tuple[str, ...]:
    """The record's warnings, and one more where the run was too noisy to decide anything."""
    told = comparison.warnings
    lead, found = _largest_lead(comparison), comparison.smallest_detectable_effect
    needed = _rounds_needed(comparison, run)
    if lead is None or needed is None:
        return told
    way_out = (
        f"About --rounds {needed} would do"
        if needed <= _MOST_ROUNDS
        else f"More than {_MOST_ROUNDS} rounds would be needed: use a quieter machine"
    )
    undecided = (
        f"This run cannot decide: the smallest effect that it would find is {units.share(found)}, and the largest "
        f"difference from {comparison.baseline} that it saw is {units.share(lead)}. {way_out}."
    )
    return (*told, undecided)


def more_rounds(comparison: Comparison, run: Run) -> str:
    """The first thing to try where there is no clear winner; else nothing."""
    if not no_clear_winner(comparison):
        return ""
    needed = _rounds_needed(comparison, run)
    return f"more rounds (--rounds {needed})" if needed and needed <= _MOST_ROUNDS else "more rounds"


def _largest_lead(comparison: Comparison) -> float | None:
    """The largest difference between the baseline's step time and another's, as a share; None without two."""
    times = {v.name: v.step_time_ms.mean for v in comparison.variants if v.status == "ok" and v.step_time_ms}
    baseline = times.pop(comparison.baseline, None)
    times.pop(A_A_TWIN, None)
    if baseline is None or not times:
        return None
    return max(max(baseline, other) / min(baseline, other) - 1 for other in times.values())


def _rounds_needed(comparison: Comparison, run: Run) -> int | None:
    """To see the largest lead, or the smallest effect that matters; None where the run could see it already."""
    lead, found = _largest_lead(comparison), comparison.smallest_detectable_effect
    if lead is None or found is None:
        return None
    wanted = max(lead, run.settings.min_effect)
    rounds = max(variant.rounds for variant in comparison.variants)
    return rounds_to_see(wanted, rounds, found) if 0 < wanted < found else None


# ---- facts ---------------------------------------------------------------------------------------------------------


def measured_how(comparison: Comparison, run: Run) -> tuple[FactList, ...]:
    machine = run.machine
    statistics = _known(
        ("Method version", str(run.method_version)),
        ("Noise floor", _share(comparison.noise_floor), "m-noise-floor"),
        ("Smallest detectable effect", _share(comparison.smallest_detectable_effect), "m-detectable"),
        ("Page cache", "warm for all variants: every photo was read while indexing"),
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
        FactList(
            "Measurement", (*statistics, *_settings(run.settings, ("Measurement", "Training", "Pipelines"), comparison))
        ),
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
    left_over = data.photos - data.train_photos - data.validation_photos
    uses = [f"{data.train_photos:,} to train", f"{data.validation_photos:,} to validate"]
    if left_over > 0:
        uses.append(f"{left_over:,} left over, for a pass has whole batches only")
    rejected = f"{units.count(data.rejects, 'file')} ({units.share(data.rejects / files if files else 0)})"
    return _known(
        ("Source", data.source),
        ("Photos", f"{data.photos:,}, of which {', '.join(uses)}"),
        ("Classes", f"{len(data.classes)}: {wording.shortened(', '.join(data.classes), 300)}"),
        ("Rejected", f"{rejected}, named in rejects.csv" if data.rejects else "none"),
        ("Fingerprint", data.fingerprint),
        *((fact.label, fact.value) for fact in _settings(settings, ("Data",)) if fact.label != "Photos from"),
    )


def _settings(settings: Settings, sections: Iterable[str], comparison: Comparison | None = None) -> tuple[Fact, ...]:
    """Every setting of the sections under its title in the trigger form."""
    return tuple(
        Fact(field.title or name, _steps(settings, comparison) if name == "steps" else _setting(name, settings))
        for section in sections
        for name, field in Settings.model_fields.items()
        if isinstance(field.json_schema_extra, dict) and field.json_schema_extra.get("section") == section
    )


def _setting(name: str, settings: Settings) -> str:
    value: Any = getattr(settings, name)
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return ", ".join(value) or ("all" if name == "variants" else "none")
    if value is None:
        return _NOT_GIVEN.get(name, "not set")
    if name in _SHARES:
        return units.share(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _steps(settings: Settings, comparison: Comparison | None) -> str:
    """What was measured beside what was asked for, where whole passes made it more."""
    measured = (
        next((len(v.step_times_ms) for v in comparison.variants if v.step_times_ms), None) if comparison else None
    )
    if measured is None or measured == settings.steps:
        return str(settings.steps)
    passes = comparison.steps_per_pass
    return f"{measured:,} (asked {settings.steps:,}{f', whole passes of {passes:,}' if passes else ''})"
