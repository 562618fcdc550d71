"""What changed with a step time: two nights' stages and surroundings side by side, as sentences."""

from collections.abc import Iterator, Sequence
from statistics import median

from feedbench.records import Change, Machine, Night, NightlyStage
from feedbench.units import ms, share, signed_share

_NAMES = {
    "cpu_model": "CPU", "cores": "cores", "memory_mb": "memory", "gpus": "GPU", "driver": "GPU driver", "cuda": "CUDA",
    "kernel": "kernel", "python": "Python",
}  # fmt: skip
_TELLING_SHARE = 0.1
"""Of the change of a step time: what moved by less explains nothing."""
_MEMORY_STEP_MB = 500
"""The same machine reports a few MB more or less after an update."""


def environment(before: Night, tonight: Night) -> tuple[str, ...]:
    """All that differs around two nights: machine, software, conditions, code."""
    machine = _machine(before.machine, tonight.machine)
    code = _change("code", before.git_revision, tonight.git_revision)
    return tuple(sentence for sentence in (*machine, *conditions(before, tonight), code) if sentence)


def conditions(before: Night, tonight: Night) -> list[str]:
    """What was measured, where it differs: data, settings, accelerator, method."""
    names = sorted(before.conditions.keys() | tonight.conditions.keys())
    told = (
        _change(name.replace("_", " "), before.conditions.get(name), tonight.conditions.get(name)) for name in names
    )
    return [sentence for sentence in told if sentence]


def _machine(before: Machine, tonight: Machine) -> Iterator[str]:
    for field, name in _NAMES.items():
        old, new = getattr(before, field), getattr(tonight, field)
        if field == "memory_mb":
            near = abs(old - new) < _MEMORY_STEP_MB
            old, new = (None, None) if near else (f"{old / 1000:.1f} GB", f"{new / 1000:.1f} GB")
        if field == "gpus":
            old, new = ", ".join(old) or None, ", ".join(new) or None
        yield _change(name, old, new)
    named = [
        _change(name, before.packages.get(name), tonight.packages.get(name))
        for name in sorted(before.packages.keys() | tonight.packages.keys())
    ]
    yield from named
    if before.lock_hash != tonight.lock_hash and not any(named):
        yield "other Python packages changed"


def _change(name: str, old: object, new: object) -> str:
    return "" if old == new else f"{name} {in_words(old)} → {in_words(new)}"


def in_words(value: object) -> str:
    """A value as a person writes it; settings are kept in Python's words."""
    return {"None": "none", "False": "off", "True": "on"}.get(str(value), str(value))


def stages(before: Sequence[Sequence[NightlyStage]], tonight: Sequence[NightlyStage], change_ms: float) -> list[str]:
    """Stages whose self time or parallelism moved with a step time that changed by `change_ms`, most telling first.

    `before`: the stages of some recent nights, for one profile window is a small sample.
    """
    told = []
    for number, stage in enumerate(tonight):
        past = [
            night[number] for night in before if len(night) == len(tonight) and night[number].operator == stage.operator
        ]
        if past:
            told.append(_stage(past, stage, change_ms))
    return [sentence for _, sentence in sorted(told, key=lambda it: -it[0]) if sentence]


def _stage(past: Sequence[NightlyStage], tonight: NightlyStage, change_ms: float) -> tuple[float, str]:
    usual_ms = median(stage.self_ms for stage in past)
    moved_ms = tonight.self_ms - usual_ms
    parts = []
    if moved_ms * change_ms > 0 and abs(moved_ms) > _TELLING_SHARE * abs(change_ms) and usual_ms > 0:
        moved = f"({ms(usual_ms)} → {ms(tonight.self_ms)} ms a step)"
        parts.append(f"self time of {tonight.operator} {signed_share(moved_ms / usual_ms)} {moved}")
    last = past[-1].parallelism
    if None not in (last, tonight.parallelism) and last != tonight.parallelism:
        parts.append(f"parallelism{'' if parts else f' of {tonight.operator}'} {last} → {tonight.parallelism}")
    return abs(moved_ms), ", ".join(parts)


def model(before: Sequence[Night], tonight: Night, size: float) -> list[str]:
    """Whether the step without any input changed alike: then it is not the pipeline's doing alone.

    `size`: the variant's own relative change.
    """
    past = [night.ceiling_ms for night in before if night.ceiling_ms]
    if not past or not tonight.ceiling_ms:
        return []
    usual = median(past)
    moved = tonight.ceiling_ms / usual - 1
    if moved * size <= 0 or abs(moved) < abs(size) / 2:
        return []
    direction = "slower" if moved > 0 else "faster"
    sizes = f"{share(abs(moved))} {direction} too ({ms(usual)} → {ms(tonight.ceiling_ms)} ms)"
    return [f"the step without any input is {sizes}: machine or model, not this pipeline alone"]


def change_sentence(change: Change) -> str:
    """A change in one line: `naive +18 % [+15 %, +21 %] since 2026-03-03: cores 4 → 2`."""
    low, value, high = map(signed_share, (change.size.ci_low, change.size.value, change.size.ci_high))
    causes = f": {', '.join(change.causes)}" if change.causes else ": nothing seen that explains it"
    return f"{change.variant} {value} [{low}, {high}] since {change.since}{causes}"
