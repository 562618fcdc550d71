"""Step times of pipelines that nobody ran, from the baseline's trials alone.

Operational analysis after M. Kuchnik et al. (Plumber, MLSys 2022): a pipeline is a chain of segments that work at
the same time, divided where an operator runs ahead of its consumer (prefetch, a parallel map over batches). A batch
takes as long as its slowest segment, or as all work divided over the cores, whichever is longer:

    input = mean over the batches of a pass of max(segments, work / cores)
    step  = model + input                                              when the last operator does not run ahead
          = max(model, input, (work + the model's own work) / cores)   when it does (prefetch)

The model's part is what the baseline's step takes beyond its input; its own work on the cores is all of it on a CPU,
what an emulated step takes beyond its sleep, and none on a GPU.

A parallel map over photos is fast, but hardly ahead: it holds as many results as it has threads, a small part of a
batch, and stands still while the batch is put together. That part alone is saved.

The batches of a pass differ, since a shuffle buffer is filled for the first one and drained by the last ones, which
fetch nothing: what is overlapped within a batch is not overlapped over the pass.

Limits: caches are warm; a prefetch buffer is as long as it has to be; a machine that slows under load, or memory that
is short, is not in it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean

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
    model_work_ms: float
    """Of the model's part, what it works on the cores, in ms of one core."""
    ready_share: float = 0.0
    """Of a batch, that a parallel map over photos holds at most before it is asked for it."""
    fetched: tuple[float, ...] = (1.0,)
    """Photos fetched from below the shuffle for each batch of a pass, in batches; their mean is 1."""


def fetched(batch_size: int, steps_per_pass: int, shuffle_buffer: int) -> tuple[float, ...]:
    """Photos fetched for each batch of a pass, in batches: the first fills the shuffle buffer, the last drain it."""
    photos = batch_size * steps_per_pass
    ends = [min(photos, shuffle_buffer + batch_size * step) for step in range(1, steps_per_pass + 1)]
    return tuple((end - start) / batch_size for start, end in zip((0, *ends), ends, strict=False))


def costs(
    profile: Profile,
    rates: OperatorRates,
    step_ms: float,
    input_only_ms: float,
    batch_size: int,
    cores: int,
    model_work_ms: Callable[[float], float],
    passes: tuple[float, ...] = (1.0,),
) -> Costs | None:
    """The baseline's costs: the unprofiled drain gives the sum, the profile how it divides. None without stages.

    `model_work_ms`: of a model's part of a step, what works on the cores; `passes`: as `Costs.fetched`.
    """
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
    model_ms = max(step_ms - input_only_ms, 0.0)
    return Costs(
        model_ms=model_ms,
        map_ms=map_ms,
        parallel_map_ms=map_ms / min(max(speed_up, 1.0), cores),
        order_ms=max(input_only_ms - map_ms - batch_ms, 0.0),
        batch_ms=batch_ms,
        memory_cache_ms=rates.memory_cache_ms * batch_size,
        file_cache_ms=rates.file_cache_ms * batch_size,
        uint8_batch_ms=rates.uint8_batch_ms * in_earnest,
        to_float_ms=rates.to_float_ms,
        cores=cores,
        model_work_ms=model_work_ms(model_ms),
        ready_share=min(cores / batch_size, 1.0),
        fetched=passes,
    )


def forecast_ms(operators: Sequence[str], costs: Costs) -> float | None:
    """Step time of a chain of operators from source to sink, warm; None for an operator whose cost is not known."""
    if not operators:
        return None
    chain = _Chain()
    bytes_cached = _casts_after_batch(operators)
    for position, operator in enumerate(operators):
        after_batch = "BatchV2" in operators[:position]
        if operator in ("MemoryCache", "FileCache"):  # warm: nothing below runs any more
            chain = _Chain()
            chain.does(costs.memory_cache_ms if operator == "MemoryCache" else costs.file_cache_ms)
        elif operator == "Map" and not after_batch:
            chain.does(costs.map_ms)
        elif operator == "ParallelMapV2" and after_batch:
            chain.runs_ahead()
            chain.does(costs.to_float_ms)
            chain.runs_ahead()
        elif operator == "ParallelMapV2":
            chain.does(costs.parallel_map_ms, costs.map_ms, ready_ms=costs.parallel_map_ms * costs.ready_share)
        elif operator in ("Shuffle", "ShuffleAndRepeat"):
            chain.is_shuffled(each_pass=operator == "Shuffle")
            chain.does(costs.order_ms)
        elif operator == "BatchV2":
            chain.does(costs.uint8_batch_ms if bytes_cached else costs.batch_ms)
        elif operator == "Prefetch":
            chain.runs_ahead()
        elif operator not in ("TensorSlice", "ForeverRepeat"):
            return None
    return _step(chain, operators[-1] == "Prefetch", costs)


@dataclass
class _Cost:
    """ms a batch: of what is done for each photo fetched, below a shuffle, and for each batch that comes out."""

    below: float = 0.0
    above: float = 0.0
    ready: float = 0.0
    """Of what is below, done already if there was as much time for it."""

    def of(self, fetched: float, idle_ms: float = 0.0) -> float:
        """`idle_ms`: while the next segment is busy and asks for nothing."""
        ready = min(self.ready, self.above + idle_ms) if fetched else 0.0
        return self.below * fetched + self.above - ready


class _Chain:
    """Segments that work at the same time, from the source on, and their work in ms of one core."""

    def __init__(self) -> None:
        self.segments = [_Cost()]
        self.work = _Cost()
        self.drains = False

    def does(self, ms: float, work_ms: float | None = None, ready_ms: float = 0.0) -> None:
        """`work_ms`: of all cores together, where it is not one that works."""
        self.segments[-1].above += ms
        self.segments[-1].ready += ready_ms
        self.work.above += ms if work_ms is None else work_ms

    def runs_ahead(self) -> None:
        self.segments.append(_Cost())

    def is_shuffled(self, each_pass: bool) -> None:
        """What was done so far is done for photos that are fetched, no longer for batches that come out."""
        self.drains = each_pass
        for cost in (*self.segments, self.work):
            cost.below, cost.above = cost.below + cost.above, 0.0


def rewritten(operators: Sequence[str]) -> tuple[str, ...]:
    """What TensorFlow's default optimizations make of it: parallel maps, one shuffle over all passes, a prefetch."""
    ahead = tuple({"Map": "ParallelMapV2", "Shuffle": "ShuffleAndRepeat"}.get(op, op) for op in operators)
    ahead = tuple(op for op in ahead if op != "ForeverRepeat")
    return ahead if ahead[-1] == "Prefetch" else (*ahead, "Prefetch")


def _step(chain: _Chain, runs_ahead: bool, costs: Costs) -> float:
    batches = costs.fetched if chain.drains else (1.0,)
    idle_ms = 0.0 if runs_ahead else costs.model_ms
    *before, last = chain.segments
    input_ms = mean(
        max([last.of(share, idle_ms), *(it.of(share) for it in before), chain.work.of(share) / costs.cores])
        for share in batches
    )
    if not runs_ahead:
        return costs.model_ms + input_ms
    return max(costs.model_ms, input_ms, (chain.work.of(1) + costs.model_work_ms) / costs.cores)


def _casts_after_batch(operators: Sequence[str]) -> bool:
    return "BatchV2" in operators and any(
        op in ("Map", "ParallelMapV2") for op in operators[operators.index("BatchV2") :]
    )
