"""What to try next, and which accelerator a pipeline could feed: forecasts put to use."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from feedbench.analysis.diagnose import GOOD_UTILISATION
from feedbench.analysis.forecast import Costs, forecast_ms
from feedbench.records import NextStep, WhatIf
from feedbench.units import share

_CURVE_MS = np.geomspace(1, 1000, 61)


@dataclass(frozen=True)
class Candidate:
    """A pipeline that can be written with the built-in steps."""

    change: str
    operators: tuple[str, ...]
    memory_mb: float


def next_steps(
    costs: Costs, best_ms: float, executed: Sequence[tuple[str, ...]], cached_photos_mb: float, min_effect: float
) -> tuple[NextStep, ...]:
    """Changes that nobody ran, by predicted gain over the fastest measured; one line that says so when none helps.

    `executed`: chains that were measured; `cached_photos_mb`: the training photos as float32.
    """
    tried = set(executed)
    candidates = [c for c in _pipelines(cached_photos_mb) if c.operators not in tried]
    steps = [_step(c.change, forecast_ms(c.operators, costs), best_ms, c.memory_mb) for c in candidates]
    twice = replace(costs, cores=2 * costs.cores, parallel_map_ms=costs.parallel_map_ms / 2)
    parallel = max(tried, key=lambda chain: "ParallelMapV2" in chain and "Prefetch" in chain, default=())
    if "ParallelMapV2" in parallel:
        steps.append(
            _step(f"{2 * costs.cores} cores instead of {costs.cores}", forecast_ms(parallel, twice), best_ms, None)
        )
    helpful = sorted((s for s in steps if s.gain > min_effect), key=lambda s: (-s.gain, s.memory_mb or 0))
    if helpful:
        return tuple(helpful[:5])
    limit = max(best_ms - costs.model_ms, 0.0) / best_ms
    return (
        NextStep(
            change=f"nothing to gain from input: without any input work the step would be {share(limit)} shorter"
            if limit > min_effect
            else "nothing to gain from input: the step takes as long as the model alone",
            forecast_ms=min(best_ms, costs.model_ms) or best_ms,
            gain=0.0,
        ),
    )


def what_if(input_only_ms: float, runs_ahead: bool, batch_size: int) -> WhatIf:
    """Photos per second of a pipeline against the accelerator's step time.

    It keeps up where the accelerator is busy for 90 % of a step: from 0.9 x input on when it runs ahead, else from
    9 x input on.
    """
    steps = np.maximum(_CURVE_MS, input_only_ms) if runs_ahead else _CURVE_MS + input_only_ms
    factor = GOOD_UTILISATION if runs_ahead else GOOD_UTILISATION / (1 - GOOD_UTILISATION)
    return WhatIf(
        accelerator_step_ms=tuple(float(x) for x in _CURVE_MS),
        photos_per_s=tuple(float(batch_size * 1000 / x) for x in steps),
        keeps_up_from_ms=factor * input_only_ms,
    )


def _step(change: str, forecast: float, best_ms: float, memory_mb: float | None) -> NextStep:
    return NextStep(change=change, forecast_ms=forecast, gain=1 - forecast / best_ms, memory_mb=memory_mb)


def _pipelines(float_mb: float) -> Iterator[Candidate]:
    """Every combination of sequential or parallel map, a cache or none, prefetch or none."""
    caches = {(): (0.0, ""), ("MemoryCache",): (float_mb, "cache in memory"), ("FileCache",): (0.0, "cache on file")}
    for map_operator, map_name in (("Map", ""), ("ParallelMapV2", "parallel map")):
        for cache, (memory_mb, cache_name) in caches.items():
            for ahead in ((), ("Prefetch",)):
                below = cache or ("TensorSlice", map_operator)
                names = [name for name in (map_name, cache_name, "prefetch" if ahead else "") if name]
                if names and not (cache and map_name):  # a warm cache does not care how it was filled
                    yield Candidate(
                        " + ".join(names), (*below, "Shuffle", "ForeverRepeat", "BatchV2", *ahead), memory_mb
                    )
    yield Candidate(
        "cache as uint8 + prefetch",
        ("MemoryCache", "Shuffle", "ForeverRepeat", "BatchV2", "ParallelMapV2", "Prefetch"),
        float_mb / 4,
    )
