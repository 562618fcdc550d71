"""Steps stand still for the stage that was planted as slow, on drawn captures with times known exactly."""

import pytest

from feedbench.trace.profile import read_profile

ROOT = "Iterator::Root"


def blocked(profile) -> dict[str, float]:
    return {stage.operator: pytest.approx(stage.blocking_ms.mean, abs=1e-9) for stage in profile.stages}


def test_blocking_adds_up_to_the_wait_and_goes_to_the_deepest(drawing, steps, tmp_path) -> None:
    calls = [
        (f"{ROOT}::BatchV2", 0, 10),
        (f"{ROOT}::BatchV2::Map", 1, 8),
        (f"{ROOT}::BatchV2::Map::TensorSlice", 1, 2),
    ]
    drawing.thread("python", [*steps(1, 20, 10), *calls])
    profile = read_profile(drawing.save(tmp_path / "a.xplane.pb"))
    assert blocked(profile) == {"TensorSlice": 1, "Map": 6, "BatchV2": 3}
    assert sum(stage.blocking_ms.mean for stage in profile.stages) == pytest.approx(profile.input_wait_ms.mean)
    assert profile.slowest_stage == "Map"


def test_a_producer_blocks_only_while_somebody_waits(drawing, steps, tmp_path) -> None:
    """Behind a Prefetch the producer works 18 of 20 ms; the step waits for 4 of them."""
    prefetch = f"{ROOT}::Prefetch"
    drawing.thread("python", [*steps(1, 20, 4), (prefetch, 0, 4)])
    drawing.thread("producer", [(f"{prefetch}::BatchV2", 0, 18), (f"{prefetch}::BatchV2::Map", 1, 17)])
    assert blocked(read_profile(drawing.save(tmp_path / "a.xplane.pb"))) == {"Map": 3, "BatchV2": 1, "Prefetch": 0}


def test_a_stage_whose_caller_is_idle_does_not_block(drawing, steps, tmp_path) -> None:
    """The wait is BatchV2's copying, while the parallel map below it fills its buffer for later on other threads."""
    path = f"{ROOT}::BatchV2::ParallelMapV2"
    drawing.thread("python", [*steps(1, 20, 10), (f"{ROOT}::BatchV2", 0, 10), (path, 0, 1)])
    drawing.thread("runner", [(f"{path}::TensorSlice", 0.5, 9)])
    assert blocked(read_profile(drawing.save(tmp_path / "a.xplane.pb"))) == {
        "BatchV2": 9,
        "ParallelMapV2": 0.5,
        "TensorSlice": 0.5,
    }


def parallel_map(drawing, steps, tmp_path, source_ms: float, function_ms: float):
    """A wait of 40 ms in a parallel map of two slots: its source and its function, each again and again."""
    path = f"{ROOT}::ParallelMapV2"
    drawing.thread("python", [*steps(1, 50, 40), (path, 0, 40, {"parallelism": 2}), (ROOT, 0, 40, {"cpu_budget": 8})])
    fetched, runs = [], {1: [], 2: []}
    free = {1: 0.0, 2: 0.0}
    at, number = 0.0, 100
    while at < 40:
        thread = min(free, key=free.get)
        start = max(at, free[thread] - source_ms)
        fetched.append((f"{path}::Generator", start, start + source_ms))
        at = start + source_ms
        fetched.append(("InstantiatedCapturedFunction::RunAsync", at, at, {"id": number}))
        runs[thread].append(("ExecutorState::Process", max(at, free[thread]), at + function_ms, {"id": number}))
        free[thread] = at + function_ms
        number += 1
    drawing.thread("runner", fetched)
    for thread, events in runs.items():
        drawing.thread(f"tf_data_private_threadpool/{thread}", events)
    return read_profile(drawing.save(tmp_path / "a.xplane.pb"))


def test_a_parallel_map_with_busy_slots_is_to_blame(drawing, steps, tmp_path) -> None:
    """Source 2 ms, function 10 ms on two slots: 5 ms an element, the source is at work for 2 of them."""
    profile = parallel_map(drawing, steps, tmp_path, source_ms=2, function_ms=10)
    assert profile.slowest_stage == "ParallelMapV2"
    assert blocked(profile)["Generator"] == 0


def test_a_slow_source_below_a_parallel_map_is_to_blame(drawing, steps, tmp_path) -> None:
    """Source 5 ms, function 7 ms on two slots: 3.5 ms an element would do, so the slots are busy for 70 %."""
    assert parallel_map(drawing, steps, tmp_path, source_ms=5, function_ms=7).slowest_stage == "Generator"


def shuffle(drawing, steps, tmp_path, calls_below: list[int]):
    """One step for each request to the buffer, which asks that many elements (1 ms each) of the map below."""
    path, events, at = f"{ROOT}::Shuffle", [], 0.0
    for number, asked in enumerate(calls_below):
        events.append(("train", at, at + asked + 5, {"step_num": number, "_r": 1}))
        events.append(("IteratorGetNextOp::DoCompute", at, at + asked))
        events.append((path, at, at + asked))
        events += [(f"{path}::Map", at + call, at + call + 1) for call in range(asked)]
        at += asked + 5
    drawing.thread("python", events)
    return read_profile(drawing.save(tmp_path / "a.xplane.pb"))


def test_a_fill_in_excess_of_what_was_delivered_is_the_shuffles(drawing, steps, tmp_path) -> None:
    """The buffer of 90 fills in the window: 100 asked for, 10 delivered."""
    profile = shuffle(drawing, steps, tmp_path, [91] + [1] * 9)
    assert profile.slowest_stage == "Shuffle"
    assert blocked(profile) == {"Shuffle": 9, "Map": 1}


def test_a_buffer_that_drains_and_fills_again_leaves_the_blame_below(drawing, steps, tmp_path) -> None:
    """The pass ends: five steps take from the buffer, one asks for six. Nothing is in excess, the map costs."""
    profile = shuffle(drawing, steps, tmp_path, [1, 1, 0, 0, 0, 0, 0, 6, 1, 1])
    assert profile.slowest_stage == "Map"
    assert blocked(profile) == {"Shuffle": 0, "Map": 1}


def test_median_and_p95_show_what_the_mean_hides(drawing, steps, tmp_path) -> None:
    """Nine waits of 1 ms and one of 11: mean 2, median 1, 95th percentile 1 + 0.55 x 10 by linear interpolation."""
    waits = [1] * 9 + [11]
    events = []
    for number, wait in enumerate(waits):
        at = number * 20
        events += [("train", at, at + 20, {"step_num": number, "_r": 1}), (f"{ROOT}::Map", at, at + wait)]
        events.append(("IteratorGetNextOp::DoCompute", at, at + wait))
    drawing.thread("python", events)
    (stage,) = read_profile(drawing.save(tmp_path / "a.xplane.pb")).stages
    assert (stage.blocking_ms.mean, stage.blocking_ms.median) == (2, 1)
    assert stage.blocking_ms.p95 == pytest.approx(6.5)
    assert stage.share == pytest.approx(0.1)


def test_no_stage_is_slow_where_steps_hardly_wait(drawing, steps, tmp_path) -> None:
    """0.1 ms of 20: half a per cent."""
    drawing.thread("python", [*steps(3, 20, 0.1), (f"{ROOT}::Map", 0, 0.1)])
    profile = read_profile(drawing.save(tmp_path / "a.xplane.pb"))
    assert profile.slowest_stage is None
    assert profile.stages[0].self_ms == pytest.approx(0.1)


def test_a_call_under_way_when_the_capture_began_is_known_from_those_below(drawing, steps, tmp_path) -> None:
    """Shuffle's first call is not in the capture, its map's calls are; the step waited through both."""
    path = f"{ROOT}::Shuffle"
    drawing.thread("python", [*steps(1, 20, 10), (f"{path}::Map", 0, 4), (path, 5, 10), (f"{path}::Map", 5, 9)])
    assert blocked(read_profile(drawing.save(tmp_path / "a.xplane.pb"))) == {"Shuffle": 1, "Map": 8}


def test_without_waits_nothing_is_known_of_blocking(drawing, tmp_path) -> None:
    drawing.thread("python", [("train", 0, 5, {"step_num": 1, "_r": 1}), (f"{ROOT}::Map", 1, 2)])
    (stage,) = read_profile(drawing.save(tmp_path / "a.xplane.pb")).stages
    assert (stage.blocking_ms, stage.share) == (None, None)
