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
also waits for the thread whose core the model takes: beside a model that works on one core, its segment takes the
model's work longer, though never longer than both in turn.

A shuffle buffer that is emptied at the end of every pass gives its memory back and asks for it again: photos and
batches cost more in the baseline's passes than alone. TensorFlow's rewriting fuses shuffle and repeat into one
operator that is never emptied, and there they cost what they cost alone.

Limits: caches are warm; a prefetch buffer is as long as it has to be; a machine that slows under load, or memory that
is short, is not in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from feedbench.records import OperatorRates, Profile


@dataclass(frozen=True)
class Handling:
    """What decoding a batch's photos and putting them together costs, in ms."""

    map_ms: float
    parallel_map_ms: float
    """On all cores at once, wall time."""
    batch_ms: float
    uint8_batch_ms: float


@dataclass(frozen=True)
class Costs:
    """What a batch costs, in ms, and on how many cores; from the baseline's trials."""

    model_ms: float
    model_work_ms: float
    """Of the model's part, what it works on the cores, in ms of one core."""
    in_passes: Handling
    """With a shuffle buffer that is emptied at the end of every pass."""
    alone: Handling
    """With none, or one that is never emptied."""
    ready_share: float
    """Of a batch, that a parallel map over photos holds at most before it is asked for it."""
    order_ms: float
    """Source, shuffle and repeat."""
    memory_cache_ms: float
    file_cache_ms: float
    to_float_ms: float
    """A batch cast on all cores, several batches at once, wall time."""
    cores: int

    def on(self, cores: int) -> "Costs":
        """The same on another number of cores: what uses all of them scales perfectly, the model stays as it is."""
        longer = self.cores / cores
        in_passes, alone = (
            replace(handling, parallel_map_ms=handling.parallel_map_ms * longer)
            for handling in (self.in_passes, self.alone)
        )
        return replace(
            self,
            cores=cores,
            in_passes=in_passes,
            alone=alone,
            ready_share=min(self.ready_share / longer, 1.0),
            to_float_ms=self.to_float_ms * longer,
        )

    @property
    def taken_ms(self) -> float:
        """What a model beside a parallel map takes of it; one that works on many cores is in the sum of all work."""
        return self.model_work_ms if self.model_work_ms <= self.model_ms else 0.0


def costs(
    profile: Profile,
    rates: OperatorRates,
    *,
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
    # A rate of 0 is one that was lost in noise. What it costs alone is at most what it costs in the passes.
    map_alone_ms = min(rates.map_ms * batch_size or map_ms, map_ms)
    batch_alone_ms = min(rates.batch_ms or batch_ms, batch_ms)
    speed_up = rates.map_ms / rates.parallel_map_ms if rates.parallel_map_ms else 1.0
    speed_up = min(max(speed_up, 1.0), cores)
    return Costs(
        model_ms=model_ms,
        model_work_ms=model_work_ms,
        in_passes=Handling(
            map_ms=map_ms,
            parallel_map_ms=map_ms / speed_up,
            batch_ms=batch_ms,
            uint8_batch_ms=rates.uint8_batch_ms * (batch_ms / batch_alone_ms if batch_alone_ms else 1.0),
        ),
        alone=Handling(
            map_ms=map_alone_ms,
            parallel_map_ms=map_alone_ms / speed_up,
            batch_ms=batch_alone_ms,
            uint8_batch_ms=rates.uint8_batch_ms,
        ),
        ready_share=min(cores / batch_size, 1.0),
        order_ms=max(input_ms - map_ms - batch_ms, 0.0),
        memory_cache_ms=rates.memory_cache_ms * batch_size,
        file_cache_ms=rates.file_cache_ms * batch_size,
        to_float_ms=rates.to_float_ms,
        cores=cores,
    )


def forecast_ms(operators: Sequence[str], costs: Costs) -> float | None:
    """Step time of a chain of operators from source to sink, warm; None where the cost of an operator is not known."""
    if not operators or not _decodes_once(operators):
        return None
    handling = costs.alone if "ShuffleAndRepeat" in operators else costs.in_passes
    chain = _Chain()
    bytes_cached = _casts_after_batch(operators)
    for position, operator in enumerate(operators):
        after_batch = "BatchV2" in operators[:position]
        if operator in ("MemoryCache", "FileCache"):  # warm: nothing below runs any more
            chain = _Chain()
            chain.does(costs.memory_cache_ms if operator == "MemoryCache" else costs.file_cache_ms)
        elif operator == "Map" and not after_batch:
            chain.does(handling.map_ms)
        elif operator == "ParallelMapV2" and after_batch:
            chain.runs_ahead(costs)
            chain.does(costs.to_float_ms, work_ms=costs.to_float_ms * costs.cores)
            chain.runs_ahead(costs)
        elif operator == "ParallelMapV2":
            chain.does(handling.parallel_map_ms, work_ms=handling.map_ms)
            chain.ready_ms = handling.parallel_map_ms * costs.ready_share
        elif operator in ("Shuffle", "ShuffleAndRepeat"):
            chain.waits_while_it_does(costs.order_ms)
        elif operator == "BatchV2":
            chain.waits_while_it_does(handling.uint8_batch_ms if bytes_cached else handling.batch_ms)
        elif operator == "Prefetch":
            chain.runs_ahead(costs)
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
        self.ready_ms = 0.0
        """Of this segment's parallel map, what can be done before it is asked for; 0 without one."""
        self.idle_ms = 0.0
        """While that map is asked for nothing."""

    def does(self, ms: float, work_ms: float | None = None) -> None:
        """`work_ms`: of all cores together, where it is not one that works."""
        self.here += ms
        self.work += ms if work_ms is None else work_ms

    def waits_while_it_does(self, ms: float) -> None:
        self.does(ms)
        self.idle_ms += ms

    def runs_ahead(self, costs: Costs) -> None:
        beside = self._takes_ms() + (costs.taken_ms if self.ready_ms else 0.0)
        in_turn = costs.model_ms + self._takes_ms(costs.model_ms)
        self.before.append(min(beside, in_turn))
        self.here = self.ready_ms = self.idle_ms = 0.0

    def step_ms(self, ahead: bool, costs: Costs) -> float:
        if not ahead:
            return costs.model_ms + max([self._takes_ms(costs.model_ms), *self.before, self.work / costs.cores])
        work = (self.work + costs.model_work_ms) / costs.cores
        return max([costs.model_ms, self._takes_ms(), work, *self.before])

    def _takes_ms(self, model_ms: float = 0.0) -> float:
        """This segment; its map gets ready while it is idle, and while a model after it works."""
        return self.here - min(self.ready_ms, self.idle_ms + model_ms)


def _decodes_once(operators: Sequence[str]) -> bool:
    """Whether a map over photos can be the decoding: of two, or of one behind a cache, who knows what they do."""
    over_photos = operators[: operators.index("BatchV2")] if "BatchV2" in operators else operators
    maps = [op in ("Map", "ParallelMapV2") for op in over_photos]
    cached = any(op in ("MemoryCache", "FileCache") for op in over_photos[: maps.index(True)]) if any(maps) else False
    return sum(maps) <= 1 and not cached


def _casts_after_batch(operators: Sequence[str]) -> bool:
    return "BatchV2" in operators and any(
        op in ("Map", "ParallelMapV2") for op in operators[operators.index("BatchV2") :]
    )
