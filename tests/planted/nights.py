"""Nights as runs leave them, with planted step times."""

from feedbench.records import Night, NightlyResult, NightlyStage
from planted.machines import machine


def night(number: int, step_ms: dict[str, float], **changes: object) -> Night:
    """Night `number` of June 2026; `map_ms` and `parallelism` are those of the one stage of every variant."""
    on = changes.pop("machine", machine())
    stage = NightlyStage(
        operator="ParallelMapV2", self_ms=changes.pop("map_ms", 12.0), parallelism=changes.pop("parallelism", 8)
    )
    results = {
        name: NightlyResult(
            series=f"{name} on {on.machine_class}", kin=f"{name} on {on.cpu_model}", step_time_ms=ms, error=0.002,
            verdict="balanced", stages=(stage,),
        )
        for name, ms in step_ms.items()
    }  # fmt: skip
    values = {
        "run_id": f"night_{number}", "created_at": f"2026-06-{number:02d}T02:30:00+00:00", "machine": on,
        "git_revision": "abc", "conditions": {"data": "f", "batch_size": "32"}, "ceiling_ms": 45.0, "results": results,
    }  # fmt: skip
    return Night(**values | changes)
