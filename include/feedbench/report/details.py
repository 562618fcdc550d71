"""One section a variant: the chain that ran, its stages, operators, layers and kernels, and what xprof says."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from feedbench import units
from feedbench.records import Op, Profile, Stage, VariantResult, VariantSpec, Window
from feedbench.report import wording
from feedbench.report.layout import Cell, Chain, Column, Fact, Row, Table

MOST_ROWS = 10


@dataclass(frozen=True)
class VariantDetails:
    anchor: str
    name: str
    why: str
    summary: str
    opened: bool
    reason: str
    chains: tuple[Chain, ...]
    facts: tuple[Fact, ...]
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    tensorboard: str


def details(
    variant: VariantResult, spec: VariantSpec | None, anchor: str, opened: bool, steps_per_pass: int | None
) -> VariantDetails:
    summary = variant.summary if variant.summary and variant.summary.status == "ok" else None
    return VariantDetails(
        anchor=anchor,
        name=variant.name,
        why=variant.why,
        summary=_summary(variant),
        opened=opened,
        reason=f"{variant.status}: {variant.reason or 'no reason recorded'}" if variant.status != "ok" else "",
        chains=_chains(variant, spec),
        facts=_facts(variant, steps_per_pass),
        tables=_tables(variant, summary) if summary else (),
        notes=_notes(variant),
        tensorboard=f"tensorboard --logdir {shlex.quote(variant.profile)}" if variant.profile else "",
    )


def _summary(variant: VariantResult) -> str:
    time = variant.step_time_ms
    if variant.status != "ok" or time is None:
        return variant.status if variant.status != "ok" else "not measured"
    return wording.sentences((f"{units.ms(time.mean)} ms a step", variant.verdict))


def _notes(variant: VariantResult) -> tuple[str, ...]:
    unusable = variant.summary and variant.summary.status == "unusable"
    reason = f"Profile unusable: {variant.summary.reason or 'no reason recorded'}" if unusable else None
    profile_notes = variant.summary.notes if variant.summary else ()
    all_notes = (variant.verdict_reason, *variant.notes, reason, *profile_notes)
    return tuple(dict.fromkeys(note for note in all_notes if note))


# ---- the chain -----------------------------------------------------------------------------------------------------


def _chains(variant: VariantResult, spec: VariantSpec | None) -> tuple[Chain, ...]:
    check = variant.pipeline
    chains = [Chain("Written", tuple(Cell(operator) for operator in check.written))]
    if check.declared != check.written:
        chains.append(Chain("Declared for warm steps", tuple(Cell(operator) for operator in check.declared)))
    rewritten = spec is not None and spec.rewritten
    if check.executed is None:
        links: tuple[Cell, ...] = (Cell("not seen: no usable profile", tone="muted"),)
    elif rewritten or check.matches is None:
        links = tuple(Cell(operator) for operator in check.executed)
    else:
        links = compared_chain(check.declared, check.executed)
    chains.append(Chain("Executed", links, _chain_verdict(check.matches, rewritten)))
    return tuple(chains)


def _chain_verdict(matches: bool | None, rewritten: bool) -> Cell | None:
    if rewritten:
        return Cell("rewritten by TensorFlow, as this variant is meant to show", tone="muted")
    if matches is None:
        return None
    return Cell("as declared", tone="good") if matches else Cell("not what was declared", tone="bad")


def compared_chain(declared: Sequence[str], executed: Sequence[str]) -> tuple[Cell, ...]:
    """The executed chain, with what was not declared and what is missing marked in its place."""
    links: list[Cell] = []
    for kind, i, j, k, m in SequenceMatcher(None, declared, executed, autojunk=False).get_opcodes():
        if kind == "equal":
            links += [Cell(operator) for operator in executed[k:m]]
            continue
        links += [Cell(operator, detail="missing", tone="bad") for operator in declared[i:j]]
        links += [Cell(operator, detail="not declared", tone="bad") for operator in executed[k:m]]
    return tuple(links)


# ---- single values -------------------------------------------------------------------------------------------------


def _facts(variant: VariantResult, steps_per_pass: int | None) -> tuple[Fact, ...]:
    time = variant.step_time_ms
    candidates = (
        ("Median / p95 step", time and f"{units.ms(time.median)} / {units.ms(time.p95)} ms", "m-step-time"),
        ("Step time by round", variant.round_means_ms and f"{', '.join(map(units.ms, variant.round_means_ms))} ms", ""),
        ("Input only", _if(variant.input_only_ms, f"{units.ms(variant.input_only_ms)} ms a batch"), "m-input-only"),
        ("Forecast", _if(variant.forecast_ms, f"{units.ms(variant.forecast_ms)} ms"), "m-forecast"),
        ("First batch after", _if(variant.first_batch_s, wording.duration(variant.first_batch_s)), ""),
        ("Cache filled in", _if(variant.fill_s, wording.duration(variant.fill_s)), "m-cache"),
        ("Peak memory", _if(variant.peak_rss_mb, units.mb(variant.peak_rss_mb)), "m-memory"),
        ("Cache", _if(variant.cache_mb, units.mb(variant.cache_mb)), "m-cache"),
        ("Loss", _if(variant.loss, f"{variant.loss or 0:.3f}"), ""),
        ("Accuracy", _if(variant.accuracy, units.share(variant.accuracy)), ""),
        ("Validation accuracy", _if(variant.val_accuracy, units.share(variant.val_accuracy)), ""),
        ("Profile window", variant.window and _window(variant.window, steps_per_pass), ""),
    )
    return tuple(Fact(label, value, term) for label, value, term in candidates if value)


def _if(measured: float | None, text: str) -> str | None:
    return None if measured is None else text


def _window(window: Window, steps_per_pass: int | None) -> str:
    place = f"step {window.first_step_in_pass} of a pass"
    return (
        f"{window.steps} steps from step {window.first_step} ({place}{f' of {steps_per_pass}' * bool(steps_per_pass)})"
    )


# ---- tables --------------------------------------------------------------------------------------------------------


def _tables(variant: VariantResult, profile: Profile) -> tuple[Table, ...]:
    made = (
        _stages(profile, wording.round_shown(variant)),
        _ops("Operators with the most self time on the host", profile.top_ops, "host"),
        _ops("Operators with the most self time on the device", profile.top_ops, "device"),
        _layers(profile),
        _kernels(profile),
        _memory(profile),
        _statements(variant, profile),
    )
    return tuple(table for table in made if table is not None)


def _stages(profile: Profile, which_round: str) -> Table | None:
    if not profile.stages:
        return None
    columns = (
        Column("stage"),
        Column("calls", kind="number"),
        Column("total, ms", kind="number"),
        Column("self, ms", "m-self", kind="number"),
        Column("blocking a step, ms: mean", "m-blocking", kind="number"),
        Column("median", kind="number"),
        Column("p95", kind="number"),
        Column("share of step", "m-blocking", kind="number"),
        Column("parallelism", "m-parallelism", kind="number"),
        Column("buffer", "m-parallelism", kind="number"),
        Column("element", kind="number"),
        Column("operators inside"),
    )
    slowest = _slowest(profile)
    rows = tuple(_stage_row(stage, stage is slowest) for stage in profile.stages)
    window = units.count(profile.steps, "profiled step") + (f" of {which_round}" if which_round else "")
    return Table(f"Stages from the source to the last one, over {window}; ▶ the slowest", columns, rows)


def _slowest(profile: Profile) -> Stage | None:
    named = [stage for stage in profile.stages if stage.operator == profile.slowest_stage]
    return max(named, key=lambda stage: stage.blocking_ms.mean if stage.blocking_ms else -1.0, default=None)


def _stage_row(stage: Stage, is_slowest: bool) -> Row:
    blocking = stage.blocking_ms
    return Row(
        (
            Cell(stage.operator, detail=stage.name if stage.name != stage.operator else ""),
            Cell(f"{stage.count:,}"),
            Cell(units.ms(stage.total_ms)),
            Cell(units.ms(stage.self_ms)),
            Cell(units.ms(blocking and blocking.mean)),
            Cell(units.ms(blocking and blocking.median)),
            Cell(units.ms(blocking and blocking.p95)),
            Cell(units.share(stage.share), tone="warn" if is_slowest else ""),
            Cell(wording.unknown(stage.parallelism)),
            Cell(_buffer(stage)),
            Cell(wording.size(stage.element_bytes)),
            Cell(", ".join(f"{op.type} {units.ms(op.self_ms)} ms" for op in stage.ops[:MOST_ROWS])),
        ),
        mark="▶" if is_slowest else "",
        tone="warn" if is_slowest else "",
    )


def _buffer(stage: Stage) -> str:
    if stage.buffered is None:
        return wording.unknown(stage.buffer)
    return f"{stage.buffered:,} / {wording.unknown(stage.buffer)}"


def _ops(caption: str, ops: Sequence[Op], where: str) -> Table | None:
    columns = (
        Column("operator"),
        Column("type"),
        Column("calls", kind="number"),
        Column("self, ms", kind="number"),
        Column("share", kind="number"),
    )
    rows = tuple(
        Row(
            (
                Cell(op.name),
                Cell(op.type),
                Cell(f"{op.count:,}"),
                Cell(units.ms(op.self_ms)),
                Cell(units.share(op.share)),
            )
        )
        for op in ops
        if op.where == where
    )[:MOST_ROWS]
    return Table(caption, columns, rows) if rows else None


def _layers(profile: Profile) -> Table | None:
    columns = (
        Column("layer"),
        Column("where"),
        Column("forward, ms a step", kind="number"),
        Column("backward, ms a step", kind="number"),
    )
    slowest_first = sorted(profile.layers, key=lambda layer: layer.forward_ms + layer.backward_ms, reverse=True)
    rows = tuple(
        Row((Cell(layer.name), Cell(layer.where), Cell(_seen(layer.forward_ms)), Cell(_seen(layer.backward_ms))))
        for layer in slowest_first[:MOST_ROWS]
    )
    return Table("Slowest layers of the model", columns, rows) if rows else None


def _seen(ms: float) -> str:
    """No time at all is a direction that was not seen in the trace, not one that takes none."""
    return units.ms(ms or None)


def _kernels(profile: Profile) -> Table | None:
    columns = (
        Column("kernel"),
        Column("calls", kind="number"),
        Column("total, ms", kind="number"),
        Column("share", kind="number"),
    )
    rows = tuple(
        Row((Cell(k.name), Cell(f"{k.count:,}"), Cell(units.ms(k.total_ms)), Cell(units.share(k.share))))
        for k in profile.kernels[:MOST_ROWS]
    )
    return Table("Device kernels with the most time", columns, rows) if rows else None


def _memory(profile: Profile) -> Table | None:
    columns = (Column("allocator"), Column("peak", kind="number"), Column("limit", kind="number"))
    rows = tuple(
        Row((Cell(use.allocator), Cell(units.mb(use.peak_mb)), Cell(units.mb(use.limit_mb)))) for use in profile.memory
    )
    return Table("Memory of TensorFlow's allocators", columns, rows) if rows else None


def _statements(variant: VariantResult, profile: Profile) -> Table | None:
    """Two readers of one file: where they differ a person should know."""
    xprof = variant.xprof
    if xprof is None:
        return None
    columns = (Column("reader"), Column("step time, ms", kind="number"), Column("input", kind="number"), Column("says"))
    time = profile.step_time_ms
    ours = Row(
        (
            Cell("this report"),
            Cell(units.ms(time and time.mean)),
            Cell(units.share(profile.input_wait_share)),
            Cell(variant.verdict),
        )
    )
    theirs = (
        (Cell(units.ms(xprof.step_time_ms)), Cell(units.share(xprof.input_share)), Cell(xprof.statement or units.DASH))
        if xprof.available
        else (Cell(f"not available: {xprof.reason or 'no reason recorded'}", tone="muted"),)
    )
    return Table("The same profile read by xprof", columns, (ours, Row((Cell("xprof"), *theirs))))
