"""What to try next, and which accelerator a pipeline could feed: forecasts put to use."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from feedbench.analysis.diagnose import GOOD_UTILISATION
from feedbench.analysis.forecast import Costs, forecast_ms
from feedbench.records import NextStep, WhatIf
from feedbench.units import mb, share

_CURVE_MS = np.geomspace(1, 1000, 61)


@dataclass(frozen=True)
class Candidate:
    """A pipeline that can be written with the built-in steps."""

    change: str
    operators: tuple[str, ...]
    memory_mb: float | None
    """Of a cache in memory; None without one: what buffers take was not measured."""


def next_steps(
    costs: Costs,
    best: tuple[str, ...],
    best_ms: float,
    tried: Sequence[tuple[str, ...]],
    cached_photos_mb: float,
    min_effect: float,
) -> tuple[NextStep, ...]:
    """Changes that nobody ran, by predicted gain over the fastest measured; one line that says so when none helps.

    `best`: the fastest one's operators, `best_ms`: its measured step; `tried`: all chains that were measured;
    `cached_photos_mb`: the training photos as float32. Forecasts are held against the forecast of the fastest, not
    against its measured time, so that what all forecasts leave out is not taken for a gain.
    """
    here_ms = forecast_ms(best, costs)
    if here_ms is None:
        return ()
    twice = costs.on(2 * costs.cores)
    forecasts = [
        (c.change, forecast_ms(c.operators, costs), c.memory_mb)
        for c in _pipelines(cached_photos_mb)
        if c.operators not in tried
    ]
    forecasts.append((f"{twice.cores} cores instead of {costs.cores}", forecast_ms(best, twice), None))
    steps = [
        NextStep(change=change, forecast_ms=best_ms * ms / here_ms, gain=1 - ms / here_ms, memory_mb=memory_mb)
        for change, ms, memory_mb in forecasts
    ]
    helpful = sorted((s for s in steps if s.gain > min_effect), key=lambda s: (-s.gain, s.memory_mb or 0))
    return tuple(helpful[:5]) or (_nothing_to_gain(costs.model_ms, best_ms, min_effect),)


def _nothing_to_gain(model_ms: float, best_ms: float, min_effect: float) -> NextStep:
    """When no input change helps: how much of the measured step is left beyond the model's part of the baseline's.

    Where nothing is left, that part may still hold input work that shares the model's cores: it is not called the
    model alone.
    """
    left = 1 - model_ms / best_ms
    return NextStep(
        change="nothing to gain from input: "
        + (
            f"by the clock {share(left)} of the step is not the model's, but no change tried here would save it"
            if left > min_effect
            else f"no change tried here would save more than {share(min_effect)} of the step"
        ),
        forecast_ms=best_ms,
        gain=0.0,
    )


def rounds_to_see(effect: float, rounds: int, detectable: float) -> int:
    """About how many rounds would find `effect`, where these found `detectable`: noise falls with their square root."""
    return math.ceil(rounds * (math.log1p(detectable) / math.log1p(effect)) ** 2)


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


def _pipelines(float_mb: float) -> Iterator[Candidate]:
    """Every combination of sequential or parallel map, a cache or none, prefetch or none."""
    caches = {
        (): (None, ""),
        ("MemoryCache",): (float_mb, "cache in memory"),
        ("FileCache",): (None, f"cache on file (on disk {mb(float_mb)})"),
    }
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
