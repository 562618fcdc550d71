"""Step times of pipelines that nobody ran, from the baseline's trials alone.

Operational analysis after M. Kuchnik et al. (Plumber, MLSys 2022): a pipeline is a chain of segments that work at
the same time, divided where an operator runs ahead of its consumer (prefetch, parallel map). In steady state a batch
takes as long as the slowest segment, or as all work divided over the cores, whichever is longer:

    input = max(segments, work / cores)
    step  = max(model, input)         when the last operator runs ahead (prefetch)
          = model + input             when it does not

The model's part is what the baseline's step takes beyond its input. Where the model runs on the same cores as the
input (accelerator cpu), running ahead saves waiting but not work: step >= model + work / cores.

Limits: caches are warm; a machine that slows under load, or memory that is short, is not in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from feedbench.records import OperatorRates, Profile


@dataclass(frozen=True)
class Costs:
    """What a batch costs, in ms, and on how many cores; from the baseline's trials."""

    model_ms: float
    map_ms: float
    parallel_map_ms: float
    """A batch's photos decoded on all cores at once, wall time."""
    order_ms: float
    """Source, shuffle and repeat."""
    batch_ms: float
    memory_cache_ms: float
    file_cache_ms: float
    uint8_batch_ms: float
    to_float_ms: float
    cores: int
    model_shares_cores: bool


def costs(
    profile: Profile,
    rates: OperatorRates,
    step_ms: float,
    input_only_ms: float,
    batch_size: int,
    cores: int,
    on_cpu: bool,
) -> Costs | None:
    """The baseline's costs: the unprofiled drain gives the sum, the profile how it divides. None without stages."""
    weights = {}
    for stage in profile.stages:
        calls = 1 if stage.operator == "BatchV2" else batch_size
        weights[stage.operator] = stage.self_ms / stage.count * calls if stage.count else 0.0
    whole = sum(weights.values())
    if not whole or not {"Map", "BatchV2"} <= weights.keys():
        return None
    scale = input_only_ms / whole
    map_ms, batch_ms = weights["Map"] * scale, weights["BatchV2"] * scale
    # Rates taken alone are a little too good; the baseline's own batch says by how much a batch is dearer in earnest.
    in_earnest = max(batch_ms / rates.batch_ms, 1.0) if rates.batch_ms else 1.0
    speed_up = rates.map_ms / rates.parallel_map_ms if rates.parallel_map_ms else 1.0
    return Costs(
        model_ms=max(step_ms - input_only_ms, 0.0),
        map_ms=map_ms,
        parallel_map_ms=map_ms / min(max(speed_up, 1.0), cores),
        order_ms=max(input_only_ms - map_ms - batch_ms, 0.0),
        batch_ms=batch_ms,
        memory_cache_ms=rates.memory_cache_ms * batch_size,
        file_cache_ms=rates.file_cache_ms * batch_size,
        uint8_batch_ms=rates.uint8_batch_ms * in_earnest,
        to_float_ms=rates.to_float_ms,
        cores=cores,
        model_shares_cores=on_cpu,
    )


def forecast_ms(operators: Sequence[str], costs: Costs) -> float | None:
    """Step time of a chain of operators from source to sink, warm; None for an operator whose cost is not known."""
    if not operators:
        return None
    segments: list[float] = []
    here = work = 0.0
    bytes_cached = _casts_after_batch(operators)
    for position, operator in enumerate(operators):
        after_batch = "BatchV2" in operators[:position]
        if operator in ("MemoryCache", "FileCache"):  # warm: nothing below runs any more
            segments, work = [], 0.0
            here = costs.memory_cache_ms if operator == "MemoryCache" else costs.file_cache_ms
            work += here
        elif operator == "Map" and not after_batch:
            here += costs.map_ms
            work += costs.map_ms
        elif operator == "ParallelMapV2":
            segments.append(costs.to_float_ms if after_batch else costs.parallel_map_ms)
            if after_batch:
                segments.append(here)
            here = 0.0
            work += costs.to_float_ms if after_batch else costs.map_ms
        elif operator == "Shuffle":
            here += costs.order_ms
            work += costs.order_ms
        elif operator == "BatchV2":
            batch = costs.uint8_batch_ms if bytes_cached else costs.batch_ms
            here += batch
            work += batch
        elif operator == "Prefetch":
            segments.append(here)
            here = 0.0
        elif operator not in ("TensorSlice", "ForeverRepeat"):
            return None
    return _step(segments, here, work, operators[-1] == "Prefetch", costs)


def rewritten(operators: Sequence[str]) -> tuple[str, ...]:
    """What TensorFlow's default optimizations make of a chain: parallel maps, a prefetch at the end."""
    ahead = tuple("ParallelMapV2" if operator == "Map" else operator for operator in operators)
    return ahead if ahead[-1] == "Prefetch" else (*ahead, "Prefetch")


def _step(segments: Sequence[float], here: float, work: float, runs_ahead: bool, costs: Costs) -> float:
    input_ms = max([*segments, here, work / costs.cores])
    if not runs_ahead:
        return costs.model_ms + input_ms
    shared = costs.model_ms + work / costs.cores if costs.model_shares_cores else 0.0
    return max(costs.model_ms, input_ms, shared)


def _casts_after_batch(operators: Sequence[str]) -> bool:
    return "BatchV2" in operators and any(
        op in ("Map", "ParallelMapV2") for op in operators[operators.index("BatchV2") :]
    )
