"""The tree of tf.data operators, and what each costs, on drawn captures."""

import pytest

from feedbench.trace.profile import read_profile
from feedbench.trace.stages import Pipeline, chain

ROOT = "Iterator::Root"


def by_operator(profile) -> dict:
    return {stage.operator: stage for stage in profile.stages}


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (
            ["Root::BatchV2::ForeverRepeat[3]::Shuffle::Map::TensorSlice"],
            ("TensorSlice", "Map", "Shuffle", "ForeverRepeat", "BatchV2"),
        ),
        (["Root::ForeverRepeat[0]::Map", "Root::ForeverRepeat[12]::Map"], ("Map", "ForeverRepeat")),
        (["Model::Prefetch::Generator"], ("Generator", "Prefetch")),
        (["Prefetch::Generator"], ("Generator", "Prefetch")),
        (["Root::BatchV2::MemoryCache", "Root::BatchV2::MemoryCacheImpl"], ("MemoryCache", "BatchV2")),
        (["Root::FileCache", "Root::FileCacheImpl::Map"], ("Map", "FileCache")),
        (["Root::Prefetch::FlatMap[0]::Generator"], ("Generator", "FlatMap", "Prefetch")),
        (["Root::FlatMap::FromTensor", "Root::FlatMap[0]::Generator"], ("Generator", "FlatMap")),
        (["Root::FlatMap[3]::Map::FromTensor", "Root::FlatMap::TensorSlice"], ("TensorSlice", "FlatMap")),
        (["Root::Interleave[3]::TFRecord", "Root::Interleave::Map"], ("Map", "Interleave")),
        (["Root::Interleave[3]::TFRecord"], ("TFRecord", "Interleave")),
        (["Root::Zip[10]::A", "Root::Zip[2]::B"], ("B", "Zip")),
        (["Root::DirectedInterleave::Range", "Root::DirectedInterleave[1]::A"], ("A", "DirectedInterleave")),
    ],
)
def test_the_chain_is_told_from_source_to_sink(paths: list[str], expected: tuple[str, ...]) -> None:
    """Names as TensorFlow 2.3 to 2.21 writes them: passes are dropped, a cache's implementation is the cache.

    Of several inputs the first counts; a dataset that is made of each element only where no input was seen. The one
    element that from_generator makes its Generator of is asked for at the start of a pass, in the window or not.
    """
    pipeline = Pipeline()
    for path in paths:
        pipeline.node(f"Iterator::{path}").count += 1
    (sink,) = pipeline.root.children.values()
    assert tuple(node.operator for node in chain(sink)) == expected


def test_inputs_of_a_zip_stay_apart_while_files_of_an_interleave_are_added_up() -> None:
    pipeline = Pipeline()
    assert pipeline.node(f"{ROOT}::Zip[0]::Map") is not pipeline.node(f"{ROOT}::Zip[1]::Map")
    assert pipeline.node(f"{ROOT}::Interleave[0]::Map") is pipeline.node(f"{ROOT}::Interleave[7]::Map")
    assert pipeline.node(f"{ROOT}::Interleave::Map") is not pipeline.node(f"{ROOT}::Interleave[7]::Map")


@pytest.mark.parametrize("slow", [0, 1])
def test_the_chain_is_the_first_inputs_whichever_takes_most_time(drawing, steps, tmp_path, slow: int) -> None:
    """Maps of 1 and 8 ms below a Zip, the second under a Filter: both ways are told, and on which the slow one lies."""
    took = [8 if place == slow else 1 for place in (0, 1)]
    calls = [
        (f"{ROOT}::Zip", 0, 10),
        (f"{ROOT}::Zip[0]::Map", 0, took[0]),
        (f"{ROOT}::Zip[1]::Filter", took[0], took[0] + took[1]),
        (f"{ROOT}::Zip[1]::Filter::Map", took[0], took[0] + took[1]),
    ]
    drawing.thread("python", [*steps(1, 20, 10), *calls])
    profile = read_profile(drawing.save(tmp_path / "a.xplane.pb"))
    assert profile.executed_pipeline == ("Map", "Zip")
    assert profile.branches == (("Map", "Filter", "Zip"),)
    assert profile.slowest_stage == "Map"
    place = ("input 1 of Zip (Map)", "input 2 of Zip (Map > Filter)")[slow]
    assert f"The slowest stage, Map, lies in {place}." in profile.notes
    assert [stage.operator for stage in profile.stages] == ["Map", "Filter", "Map", "Zip"]
    assert [stage.blocking_ms.mean for stage in profile.stages] == [took[1], 0, took[0], 1]


def test_a_slow_stage_on_all_ways_needs_no_place(drawing, steps, tmp_path) -> None:
    """BatchV2 takes 8 of 10 ms, and all goes through it."""
    calls = [
        (f"{ROOT}::BatchV2", 0, 10),
        (f"{ROOT}::BatchV2::Zip", 0, 2),
        (f"{ROOT}::BatchV2::Zip[0]::Map", 0, 1),
        (f"{ROOT}::BatchV2::Zip[1]::Map", 1, 2),
    ]
    drawing.thread("python", [*steps(1, 20, 10), *calls])
    profile = read_profile(drawing.save(tmp_path / "a.xplane.pb"))
    assert profile.slowest_stage == "BatchV2"
    assert any("branches" in note for note in profile.notes)
    assert not any("lies in" in note for note in profile.notes)


def test_a_pipeline_without_branches_has_one_way_and_says_nothing_of_others(drawing, steps, tmp_path) -> None:
    drawing.thread("python", [*steps(1, 20, 10), (f"{ROOT}::BatchV2", 0, 10), (f"{ROOT}::BatchV2::Map", 0, 9)])
    profile = read_profile(drawing.save(tmp_path / "a.xplane.pb"))
    assert profile.branches == ()
    assert not any("branches" in note for note in profile.notes)


def test_self_time_is_duration_less_the_calls_below(drawing, steps, tmp_path) -> None:
    """BatchV2 10 ms around two Maps of 3 and 4 ms around sources of 1 ms each."""
    calls = [
        (f"{ROOT}::BatchV2", 0, 10),
        (f"{ROOT}::BatchV2::Map", 1, 4),
        (f"{ROOT}::BatchV2::Map::TensorSlice", 1, 2),
        (f"{ROOT}::BatchV2::Map", 5, 9),
        (f"{ROOT}::BatchV2::Map::TensorSlice", 5, 6),
    ]
    drawing.thread("python", [*steps(1, 20, 10), *calls])
    stages = by_operator(read_profile(drawing.save(tmp_path / "a.xplane.pb")))
    assert (stages["BatchV2"].count, stages["BatchV2"].total_ms, stages["BatchV2"].self_ms) == (1, 10, 3)
    assert (stages["Map"].count, stages["Map"].total_ms, stages["Map"].self_ms) == (2, 7, 5)
    assert stages["TensorSlice"].self_ms == 2


def test_a_parallel_maps_cost_is_its_function_on_pool_threads_not_its_wait(drawing, steps, tmp_path) -> None:
    """Two runs of 6 and 8 ms on two threads; the consumer's call waits 9 ms, the runner only starts the runs."""
    path = f"{ROOT}::ParallelMapV2"
    drawing.thread("python", [*steps(1, 20, 9), (path, 0, 9, {"parallelism": 2})])
    runner = [
        (f"{path}::TensorSlice", 0, 0.1),
        ("InstantiatedCapturedFunction::RunAsync", 0.2, 0.3, {"id": 41}),
        (f"{path}::TensorSlice", 0.4, 0.5),
        ("InstantiatedCapturedFunction::RunAsync", 0.6, 0.7, {"id": 42}),
    ]
    drawing.thread("tf_data_iterator_resource/1", runner)
    for thread, run, end in ((1, 41, 7), (2, 42, 9)):
        work = [("ExecutorState::Process", 1, end, {"id": run}), ("DecodeJpeg:DecodeJpeg", 1, end - 1)]
        drawing.thread(f"tf_data_private_threadpool/{thread}", work)
    stage = by_operator(read_profile(drawing.save(tmp_path / "a.xplane.pb")))["ParallelMapV2"]
    assert (stage.total_ms, stage.self_ms, stage.parallelism) == (9, 14, 2)
    assert [(op.type, op.count, op.self_ms) for op in stage.ops] == [("DecodeJpeg", 2, 12)]


def test_pool_threads_may_come_first_in_the_file(drawing, steps, tmp_path) -> None:
    """The same attribution where the pool's thread stands before the thread that asked for the run."""
    drawing.thread("tf_data_private_threadpool/1", [("ExecutorState::Process", 1, 3, {"id": 5}), ("Abs:Abs", 1, 2)])
    asks = ("InstantiatedCapturedFunction::Run", 1, 4, {"id": 5})
    drawing.thread("python", [*steps(1, 10, 5), (f"{ROOT}::Map", 0, 5), asks])
    stage = by_operator(read_profile(drawing.save(tmp_path / "a.xplane.pb")))["Map"]
    assert [(op.type, op.self_ms) for op in stage.ops] == [("Abs", 1)]


def test_a_prefetch_costs_what_the_work_below_does_not_cover(drawing, steps, tmp_path) -> None:
    """A wait of 10 ms of which the producer works from 2 to 9; before its first recorded call nothing is known."""
    drawing.thread("python", [*steps(1, 20, 10), (f"{ROOT}::Prefetch", 0, 10, {"buffer_limit": 4})])
    drawing.thread("tf_data_iterator_resource/1", [(f"{ROOT}::Prefetch::BatchV2", 2, 9)])
    stage = by_operator(read_profile(drawing.save(tmp_path / "a.xplane.pb")))["Prefetch"]
    assert (stage.self_ms, stage.buffer) == (1, 4)


def test_what_the_trace_does_not_say_is_unknown(drawing, steps, tmp_path) -> None:
    """`unavailable` parallelism, an open size, no buffer."""
    stats = {"parallelism": "unavailable", "shapes": "[?,8] []", "types": "float int32"}
    drawing.thread("python", [*steps(1, 20, 10), (f"{ROOT}::ParallelMapV2", 0, 10, stats)])
    stage = by_operator(read_profile(drawing.save(tmp_path / "a.xplane.pb")))["ParallelMapV2"]
    assert (stage.parallelism, stage.buffer, stage.element_bytes) == (None, None, None)


def test_a_known_parallelism_outlives_a_later_unavailable_one(drawing, steps, tmp_path) -> None:
    path = f"{ROOT}::ParallelMapV2"
    calls = [(path, 0, 2, {"parallelism": 3}), (path, 3, 4, {"parallelism": "unavailable"})]
    drawing.thread("python", [*steps(1, 20, 10), *calls])
    assert by_operator(read_profile(drawing.save(tmp_path / "a.xplane.pb")))["ParallelMapV2"].parallelism == 3


def test_element_bytes_follow_from_shapes_and_types(drawing, steps, tmp_path) -> None:
    """224 x 224 x 3 floats and one int32: 602,116 bytes."""
    stats = {"name": "MapDataset:1", "shapes": "[224,224,3] []", "types": "float int32"}
    drawing.thread("python", [*steps(1, 20, 10), (f"{ROOT}::Map", 0, 10, stats)])
    stage = by_operator(read_profile(drawing.save(tmp_path / "a.xplane.pb")))["Map"]
    assert (stage.name, stage.element_bytes) == ("MapDataset:1", 224 * 224 * 3 * 4 + 4)


def test_another_pipeline_in_the_window_is_left_out_and_named(drawing, steps, tmp_path) -> None:
    """The steps wait on BatchV2; a validation pipeline that fills itself meanwhile is longer, but not waited on."""
    drawing.thread("python", [*steps(2, 20, 8), *((f"{ROOT}::BatchV2", at, at + 8) for at in (0, 20))])
    drawing.thread("other", [(f"{ROOT}::Prefetch::Map", 8.5, 19), (f"{ROOT}::Prefetch", 9, 19)])
    profile = read_profile(drawing.save(tmp_path / "a.xplane.pb"))
    assert profile.executed_pipeline == ("BatchV2",)
    assert [stage.operator for stage in profile.stages] == ["BatchV2"]
    assert any("Map > Prefetch" in note for note in profile.notes)
