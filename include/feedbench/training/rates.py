"""How fast operators are alone, and those that the baseline lacks: measured in the baseline's trial. Child side.

A forecast for a pipeline that nobody ran needs the rate of every operator in it (the operational analysis of
M. Kuchnik et al., Plumber, MLSys 2022). The baseline's profile has what its own cost it in its passes; the rest, and
what those cost alone, is measured here on a few photos, with nothing else running, warm.
"""

import time
from dataclasses import replace
from typing import Any

from feedbench.pipelines.build import as_written
from feedbench.pipelines.steps import AUTO, Cache, Decode, RunValues, ToFloat, bind
from feedbench.records import OperatorRates

PHOTOS = 128
"""At most so many photos are read for it; a quarter of a second of work."""


def measure_rates(dataset: Any, values: RunValues, photos: int) -> OperatorRates:
    """Rates over the source `dataset` of (path, label); `photos`: how many it holds."""
    count = min(PHOTOS, photos)
    few = dataset.take(count)
    decoded = _apply(few, [Decode()], values)
    kept = decoded.cache()
    _drain(kept)
    file_cache = _apply(decoded, [Cache("file")], _in_folder(values, "rates"))
    _drain(file_cache)
    as_bytes = _apply(few, [Decode(dtype="uint8")], values).cache()
    _drain(as_bytes)
    batch = values.batch_size
    memory_ms = _ms_an_element(kept, count)
    batches = max(count // batch, 1) * 4
    batch_ms, bytes_ms = (
        _ms_an_element(cached.repeat().batch(batch), batches) - batch * memory_ms for cached in (kept, as_bytes)
    )
    one = as_bytes.repeat().batch(batch).take(1).cache()
    _drain(one)
    return OperatorRates(
        map_ms=_ms_an_element(decoded, count),
        parallel_map_ms=_ms_an_element(_apply(few, [Decode(parallel=AUTO)], values), count),
        memory_cache_ms=memory_ms,
        file_cache_ms=_ms_an_element(file_cache, count),
        batch_ms=max(batch_ms, 0.0),
        uint8_batch_ms=max(bytes_ms, 0.0),
        to_float_ms=_ms_an_element(_apply(one.repeat(), [ToFloat(parallel=AUTO)], values), 16),
    )


def _apply(dataset: Any, steps: list[Any], values: RunValues) -> Any:
    for step in bind(steps, values):
        dataset = step(dataset)
    return dataset


def _in_folder(values: RunValues, name: str) -> RunValues:
    folder = values.scratch / name
    folder.mkdir()
    return replace(values, scratch=folder)


def _drain(dataset: Any) -> None:
    for _ in as_written(dataset):
        pass


def _ms_an_element(dataset: Any, elements: int) -> float:
    """Milliseconds an element, without Python's own loop: `skip` walks the elements inside tf.data."""
    times_ms = []
    for walked in (0, elements - 1):
        walk = iter(as_written(dataset.skip(walked)))
        start = time.perf_counter()
        next(walk)
        times_ms.append((time.perf_counter() - start) * 1000)
    return max(times_ms[1] - times_ms[0], 0.0) / max(elements - 1, 1)
