"""Step times of pipelines that nobody ran, from the baseline's trials alone.

Operational analysis after M. Kuchnik et al. (Plumber, MLSys 2022): a pipeline is a chain of segments that work at
the same time, divided where an operator runs ahead of its consumer (prefetch, a parallel map over batches). In steady
state a batch takes as long as the slowest segment, or as all work divided over the cores, whichever is longer:

    input = max(segments, work / cores)
    step  = model + input                                              when the last operator does not run ahead
          = max(model, input, (work + the model's own work) / cores)   when it does

The model's part is what the baseline's step takes beyond its input. Its own work on the cores is all of it on a CPU,
what an emulated step takes beyond its sleep, and none on a GPU.

A parallel map over photos is fast, but hardly ahead: it holds as many results as it has threads, a part of a batch,
while the photos before are put together or trained on. That part alone is saved. Being in order and hardly ahead, it
also waits for the thread whose core the model takes: the model's own work is added to its segment.

A shuffle buffer that is emptied at the end of every pass gives its memory back and asks for it again, which the
baseline's costs contain. TensorFlow's rewriting fuses it with the repeat and never empties it: there the operators cost
what they cost alone.

Limits: caches are warm; a prefetch buffer is as long as it has to be; a machine that slows under load, or memory that
is short, is not in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from feedbench.records import OperatorRates, Profile


@dataclass(frozen=True)
class Costs:
    """What a batch costs, in ms, and on how many cores; from the baseline's trials."""

    model_ms: float
    model_work_ms: float
    """Of the model's part, what it works on the cores, in ms of one core."""
    map_ms: float
    parallel_map_ms: float
    """A batch's photos decoded on all cores at once, wall time."""
    ready_share: float
    """Of a batch, that a parallel map over photos holds at most before it is asked for it."""
    order_ms: float
    """Source, shuffle and repeat."""
    batch_ms: float
    memory_cache_ms: float
    file_cache_ms: float
    uint8_batch_ms: float
    to_float_ms: float
    """A batch cast on all cores, several batches at once, wall time."""
    alone: tuple[float, float, float]
    """`map_ms`, `parallel_map_ms` and `batch_ms` with no shuffle buffer between them that is emptied and refilled."""
    cores: int

    def undrained(self) -> "Costs":
        """With a shuffle buffer that is never emptied."""
        map_ms, parallel_map_ms, batch_ms = self.alone
        return replace(self, map_ms=map_ms, parallel_map_ms=parallel_map_ms, batch_ms=batch_ms)

    def on(self, cores: int) -> "Costs":
        """The same on another number of cores: what uses all of them scales perfectly, the model stays as it is."""
        faster = self.cores / cores
        map_ms, parallel_map_ms, batch_ms = self.alone
        return replace(
            self,
            cores=cores,
            alone=(map_ms, parallel_map_ms * faster, batch_ms),
            parallel_map_ms=self.parallel_map_ms * faster,
            ready_share=min(self.ready_share / faster, 1.0),
            to_float_ms=self.to_float_ms * faster,
        )


def costs(
    profile: Profile,
    rates: OperatorRates,
    input_ms: float,
    model_ms: float,
    model_work_ms: float,
    batch_size: int,
    cores: int,
) -> Costs | None:
    """The baseline's costs: the unprofiled drain gives the sum, the profile how it divides. None without stages."""
    weights = {}
    for stage in profile.stages:
        calls = 1 if stage.operator == "BatchV2" else batch_size
        weights[stage.operator] = stage.self_ms / stage.count * calls if stage.count else 0.0
    whole = sum(weights.values())
    if not whole or not {"Map", "BatchV2"} <= weights.keys():
        return None
    map_ms, batch_ms = (weights[operator] * input_ms / whole for operator in ("Map", "BatchV2"))
    # Rates taken alone are a little too good; the baseline's own batch says by how much a batch is dearer in earnest.
    in_earnest = max(batch_ms / rates.batch_ms, 1.0) if rates.batch_ms else 1.0
    speed_up = rates.map_ms / rates.parallel_map_ms if rates.parallel_map_ms else 1.0
    speed_up = min(max(speed_up, 1.0), cores)
    map_alone_ms = min(rates.map_ms * batch_size, map_ms)
    return Costs(
        model_ms=model_ms,
        model_work_ms=model_work_ms,
        map_ms=map_ms,
        parallel_map_ms=map_ms / speed_up,
        ready_share=min(cores / batch_size, 1.0),
        order_ms=max(input_ms - map_ms - batch_ms, 0.0),
        batch_ms=batch_ms,
        memory_cache_ms=rates.memory_cache_ms * batch_size,
        file_cache_ms=rates.file_cache_ms * batch_size,
        uint8_batch_ms=rates.uint8_batch_ms * in_earnest,
        to_float_ms=rates.to_float_ms,
        alone=(map_alone_ms, map_alone_ms / speed_up, min(rates.batch_ms, batch_ms)),
        cores=cores,
    )


def forecast_ms(operators: Sequence[str], costs: Costs) -> float | None:
    """Step time of a chain of operators from source to sink, warm; None for an operator whose cost is not known."""
    if not operators:
        return None
    if "ShuffleAndRepeat" in operators:
        costs = costs.undrained()
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
            chain.does(costs.to_float_ms, work_ms=costs.to_float_ms * costs.cores)
            chain.runs_ahead()
        elif operator == "ParallelMapV2":
            chain.does(costs.parallel_map_ms, work_ms=costs.map_ms)
            chain.ready_ms = costs.parallel_map_ms * costs.ready_share
            chain.taken_ms = min(costs.model_work_ms, costs.model_ms)
        elif operator in ("Shuffle", "ShuffleAndRepeat"):
            chain.waits_while_it_does(costs.order_ms)
        elif operator == "BatchV2":
            chain.waits_while_it_does(costs.uint8_batch_ms if bytes_cached else costs.batch_ms)
        elif operator == "Prefetch":
            chain.runs_ahead()
        elif operator not in ("TensorSlice", "ForeverRepeat"):
            return None
    return chain.step_ms(runs_ahead(operators), costs)


def runs_ahead(operators: Sequence[str]) -> bool:
    """Whether the last operator gets batches ready while the model works."""
    return operators[-1] == "Prefetch" or (operators[-1] == "ParallelMapV2" and "BatchV2" in operators)


def rewritten(operators: Sequence[str]) -> tuple[str, ...]:
    """What TensorFlow's default optimizations make of a chain: parallel maps, one shuffle, a prefetch at the end."""
    fused = " ".join(operators).replace("Shuffle ForeverRepeat", "ShuffleAndRepeat").split()
    ahead = tuple("ParallelMapV2" if operator == "Map" else operator for operator in fused)
    return ahead if ahead[-1] == "Prefetch" else (*ahead, "Prefetch")


class _Chain:
    """Segments that work at the same time, from the source on, in ms a batch, and their work in ms of one core."""

    def __init__(self) -> None:
        self.before: list[float] = []
        self.here = self.work = 0.0
        self.ready_ms = self.taken_ms = 0.0
        """Of this segment's parallel map, what can be done before it is asked for; what a model beside it takes."""
        self.idle_ms = 0.0
        """While that map is asked for nothing."""

    def does(self, ms: float, work_ms: float | None = None) -> None:
        """`work_ms`: of all cores together, where it is not one that works."""
        self.here += ms
        self.work += ms if work_ms is None else work_ms

    def waits_while_it_does(self, ms: float) -> None:
        self.does(ms)
        self.idle_ms += ms

    def runs_ahead(self) -> None:
        self.before.append(self.here - min(self.ready_ms, self.idle_ms) + self.taken_ms)
        self.here = self.ready_ms = self.taken_ms = self.idle_ms = 0.0

    def step_ms(self, ahead: bool, costs: Costs) -> float:
        idle_ms = self.idle_ms if ahead else self.idle_ms + costs.model_ms
        input_ms = max([*self.before, self.here - min(self.ready_ms, idle_ms), self.work / costs.cores])
        if not ahead:
            return costs.model_ms + input_ms
        return max(costs.model_ms, input_ms, (self.work + costs.model_work_ms) / costs.cores)


def _casts_after_batch(operators: Sequence[str]) -> bool:
    return "BatchV2" in operators and any(
        op in ("Map", "ParallelMapV2") for op in operators[operators.index("BatchV2") :]
    )
