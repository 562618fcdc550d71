"""A profile as plain text, for a terminal."""

from collections.abc import Iterable, Sequence

from feedbench.records import Profile, Stage
from feedbench.units import DASH, mb, ms, share

_OPS = 10
_LAYERS = 8


def describe(profile: Profile) -> str:
    """What `feedbench inspect` prints: device, steps, the executed pipeline, its stages, top ops and layers."""
    if profile.status == "unusable":
        return f"{profile.file}: unusable: {profile.reason}"
    parts = [_head(profile), _stages(profile), _ops(profile), _layers(profile), _memory(profile), _notes(profile.notes)]
    return "\n\n".join(part for part in parts if part)


def _head(profile: Profile) -> str:
    lines = [profile.file]
    if profile.device:
        lines.append(f"device        {profile.device.kind}{f' ({profile.device.name})' if profile.device.name else ''}")
    if profile.step_time_ms is None:
        lines.append(f"step time     {DASH} (no step markers)")
    else:
        times = profile.step_time_ms
        lines.append(
            f"step time     {ms(times.mean)} ms mean of {profile.steps}, median {ms(times.median)}, "
            f"{ms(times.min)} to {ms(times.max)}"
        )
        wait = profile.input_wait_ms
        lines.append(f"input wait    {ms(wait.mean if wait else None)} ms a step, {share(profile.input_wait_share)}")
    if profile.device_compute_ms is not None:
        lines.append(f"device busy   {ms(profile.device_compute_ms)} ms a step")
    if profile.executed_pipeline:
        lines.append(f"pipeline      {' > '.join(profile.executed_pipeline)}")
    lines += [f"  and         {' > '.join(way)}" for way in profile.branches]
    if profile.slowest_stage:
        lines.append(f"slowest stage {profile.slowest_stage}")
    return "\n".join(lines)


def _stages(profile: Profile) -> str:
    blocking = [stage for stage in profile.stages if stage.operator == profile.slowest_stage and stage.blocking_ms]
    slowest = max(blocking, key=lambda stage: stage.blocking_ms.mean, default=None)
    rows = [_stage_row(stage, stage is slowest) for stage in profile.stages]
    return _table(("tf.data stage", "calls", "total ms", "self ms", "blocks ms/step", "share", "par.", "buffer"), rows)


def _stage_row(stage: Stage, is_slowest: bool) -> tuple[str, ...]:
    mark = " <- slowest" if is_slowest else ""
    return (
        f"{stage.operator}{mark}",
        f"{stage.count:,}",
        ms(stage.total_ms),
        ms(stage.self_ms),
        ms(stage.blocking_ms.mean if stage.blocking_ms else None),
        share(stage.share),
        _count(stage.parallelism),
        _count(stage.buffer),
    )


def _ops(profile: Profile) -> str:
    tables = []
    for where in ("device", "host"):
        rows = [
            (f"{op.type}  {op.name}"[:90], f"{op.count:,}", ms(op.self_ms), share(op.share))
            for op in profile.top_ops
            if op.where == where
        ]
        tables.append(_table((f"top {where} op", "calls", "self ms", "share"), rows[:_OPS]))
    return "\n\n".join(table for table in tables if table)


def _layers(profile: Profile) -> str:
    rows = [
        (f"{layer.name} ({layer.where})", ms(layer.forward_ms), ms(layer.backward_ms))
        for layer in profile.layers[:_LAYERS]
    ]
    return _table(("layer", "forward ms/step", "backward ms/step"), rows)


def _memory(profile: Profile) -> str:
    return "\n".join(
        f"memory        {use.allocator}: peak {mb(use.peak_mb)}, limit {mb(use.limit_mb)}" for use in profile.memory
    )


def _notes(notes: Iterable[str]) -> str:
    return "\n".join(f"note: {note}" for note in notes)


def _count(value: int | None) -> str:
    return DASH if value is None else f"{value:,}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns aligned: the first to the left, numbers to the right. Nothing where there are no rows."""
    if not rows:
        return ""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (head, *rows)
    )
