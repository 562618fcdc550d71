"""The whole reading of drawn captures, of other people's real ones, and of real ones with a slow stage planted."""

import subprocess
import sys
from pathlib import Path

import pytest

from feedbench.records import Profile
from feedbench.trace import read_profile


def test_a_capture_becomes_the_record_and_survives_json(drawing, steps, tmp_path) -> None:
    drawing.thread("python", [*steps(4, 50, 10), ("Iterator::Root", 0, 9, {"cpu_budget": 2})])
    profile = read_profile(drawing.save(tmp_path / "a.xplane.pb"))
    assert (profile.status, profile.steps, profile.hosts, profile.cores) == ("ok", 4, ("drawn",), 2)
    assert (profile.step_time_ms.mean, profile.input_wait_ms.mean, profile.input_wait_share) == (50, 10, 0.2)
    assert [row.number for row in profile.step_table] == [0, 1, 2, 3]
    assert profile.device.kind == "cpu"
    assert profile.device_compute_ms is None
    assert Profile.model_validate_json(profile.model_dump_json()) == profile


def test_without_markers_nothing_about_steps_is_claimed(drawing, tmp_path) -> None:
    drawing.thread("python", [("IteratorGetNextOp::DoCompute", 0, 5), ("Abs:Abs", 6, 7)])
    profile = read_profile(drawing.save(tmp_path / "a.xplane.pb"))
    assert (profile.status, profile.steps, profile.step_time_ms, profile.input_wait_ms) == ("ok", 0, None, None)
    assert any("No step markers" in note for note in profile.notes)


def test_host_ops_are_ranked_by_self_time(drawing, tmp_path) -> None:
    """A call of 10 ms that holds an op of 7 has 3 of its own; shares are of all 10."""
    drawing.thread("python", [("call:PartitionedCall", 0, 10), ("dense/MatMul:MatMul", 1, 8), ("not an op", 0, 9)])
    ops = read_profile(drawing.save(tmp_path / "a.xplane.pb")).top_ops
    assert [(op.name, op.type, op.where, op.self_ms, op.share) for op in ops] == [
        ("dense/MatMul", "MatMul", "host", 7, 0.7),
        ("call", "PartitionedCall", "host", 3, 0.3),
    ]


def test_ops_of_the_pipeline_are_no_layers(drawing, steps, tmp_path) -> None:
    """`resize/ResizeBilinear` looks like a layer, and runs in a map's function."""
    run = ("InstantiatedCapturedFunction::Run", 0, 5, {"id": 9})
    drawing.thread("python", [*steps(1, 20, 5), ("Iterator::Root::Map", 0, 5), run])
    work = [("ExecutorState::Process", 0, 5, {"id": 9}), ("resize/ResizeBilinear:ResizeBilinear", 0, 5)]
    drawing.thread("tf_data_private_threadpool/1", work)
    drawing.thread("tf_Compute/1", [("model/dense/MatMul:MatMul", 6, 9)])
    assert [layer.name for layer in read_profile(drawing.save(tmp_path / "a.xplane.pb")).layers] == ["dense"]


def test_a_gpu_gives_ops_kernels_layers_and_busy_time(drawing, steps, tmp_path) -> None:
    """Two streams at once count once as busy; copies are no kernels."""
    gpu = "/device:GPU:0"
    drawing.thread("python", steps(2, 20, 2))
    drawing.plane(gpu, device_vendor="NVIDIA", compute_cap_major=8, compute_cap_minor=0, memory_size=40_000_000_000)
    op = {"tf_op": "model/conv/Conv2D:Conv2D"}
    drawing.thread("Stream #13(Compute)", [("sgemm", 5, 11, op), ("sgemm", 25, 29, op), ("MemcpyH2D", 30, 39)], gpu)
    drawing.thread("Stream #14(Compute)", [("sgemm", 10, 13, op)], gpu)
    profile = read_profile(drawing.save(tmp_path / "a.xplane.pb"))
    assert (profile.device.kind, profile.device.name) == ("gpu", "NVIDIA GPU, compute capability 8.0, 40.0 GB")
    assert profile.device_compute_ms == (8 + 4) / 2
    assert [(kernel.name, kernel.count, kernel.total_ms) for kernel in profile.kernels] == [("sgemm", 3, 13)]
    assert [(op.name, op.type, op.self_ms) for op in profile.top_ops] == [("model/conv/Conv2D", "Conv2D", 13)]
    assert [(layer.name, layer.where, layer.forward_ms) for layer in profile.layers] == [("conv", "device", 6.5)]


def test_an_empty_gpu_plane_names_the_remedy_and_keeps_the_host(drawing, steps, tmp_path) -> None:
    """As CUPTI without privilege leaves it: the plane is there, without a line."""
    drawing.thread("python", steps(3, 20, 5))
    drawing.plane("/device:GPU:0", device_vendor="NVIDIA")
    drawing.space.errors.append("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES")
    profile = read_profile(drawing.save(tmp_path / "a.xplane.pb"))
    notes = " ".join(profile.notes)
    assert "NVreg_RestrictProfilingToAdminUsers=0" in notes
    assert "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" in notes
    assert (profile.status, profile.device.kind, profile.device_compute_ms) == ("ok", "gpu", None)
    assert profile.step_time_ms.mean == 20


def test_memory_is_the_highest_peak_of_each_allocator(drawing, tmp_path) -> None:
    def use(at: int, peak: int) -> tuple:
        stats = {"allocator_name": "GPU_0_bfc", "peak_bytes_in_use": peak, "bytes_available": 6, "bytes_allocated": 4}
        return ("MemoryAllocation", at, at, {**stats, "bytes_reserved": 0})

    drawing.thread("python", [use(0, 5_000_000), use(1, 9_000_000), use(2, 9_000_000)])
    (memory,) = read_profile(drawing.save(tmp_path / "a.xplane.pb")).memory
    assert (memory.allocator, memory.peak_mb, memory.limit_mb) == ("GPU_0_bfc", 9, 1e-05)


def test_importing_needs_neither_tensorflow_nor_pandas() -> None:
    check = "import sys, feedbench.trace; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert {"tensorflow", "keras", "pandas", "numpy", "xprof"}.isdisjoint(done.stdout.split())


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "kind", "steps", "step_ms"),
    [
        ("v100x8_multi_worker", "gpu", 1, 21.3),
        ("laptop_gpu_keras_fit", "gpu", 1, 992.2),
        ("mi300x_jax_no_steps", "gpu", 0, None),
        ("tpu_v6_inference_no_steps", "tpu", 0, None),
    ],
)
def test_real_captures_give_what_xprof_gives(real_data: Path, name: str, kind: str, steps: int, step_ms) -> None:
    """Device, steps and step time as the data's README lists them, from xprof 2.24."""
    profile = read_profile(real_data / "profiles" / f"{name}.xplane.pb")
    assert (profile.status, profile.device.kind, profile.steps) == ("ok", kind, steps)
    if step_ms is None:
        assert profile.step_time_ms is None
        assert any("No step markers" in note for note in profile.notes)
    else:
        assert profile.step_time_ms.mean == pytest.approx(step_ms, rel=0.01)
    assert any(op.where == "device" for op in profile.top_ops)


@pytest.mark.real_data
def test_chains_of_real_captures_of_other_people(real_data: Path) -> None:
    """`Iterator::Prefetch::Generator`, and a Keras fit of arrays under `Iterator::Model`."""
    chains = {
        name: read_profile(real_data / "profiles" / f"{name}.xplane.pb").executed_pipeline
        for name in ("v100x8_multi_worker", "laptop_gpu_keras_fit", "mi300x_jax_no_steps")
    }
    assert chains["v100x8_multi_worker"] == ("Generator", "Prefetch")
    assert chains["laptop_gpu_keras_fit"][-2:] == ("Zip", "ParallelMapV2")
    assert chains["mi300x_jax_no_steps"] is None


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("name", "slow"),
    [
        ("slow_map", "Map"),
        ("slow_parallel_map", "ParallelMapV2"),
        ("slow_filter", "Filter"),
        ("slow_generator", "Generator"),
        ("shuffle_fill", "Shuffle"),
        ("slow_zip", "Map"),
        ("flat_map", "Map"),
        ("interleave", "Map"),
        ("concatenate", "Filter"),
        ("choose", "Filter"),
        ("decoding", "Map"),
        ("parallel_decoding", "ParallelMapV2"),
    ],
)
def test_the_planted_slow_stage_is_named(tensorflow_profiles: dict[str, Path], name: str, slow: str) -> None:
    profile = read_profile(tensorflow_profiles[name])
    assert profile.slowest_stage == slow
    assert (profile.status, profile.steps) == ("ok", 10)
    total = sum(stage.blocking_ms.mean for stage in profile.stages)
    assert total == pytest.approx(profile.input_wait_ms.mean, rel=0.1)


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("name", "chain"),
    [
        ("decoding", ("TensorSlice", "Map", "Shuffle", "ForeverRepeat", "BatchV2")),
        ("parallel_decoding", ("TensorSlice", "ParallelMapV2", "Shuffle", "ForeverRepeat", "BatchV2")),
        ("slow_generator", ("Generator", "FlatMap", "ParallelMapV2", "BatchV2", "Prefetch")),
        ("fed", ("MemoryCache", "Shuffle", "ForeverRepeat", "BatchV2", "Prefetch")),
        ("flat_map", ("TensorSlice", "Map", "FlatMap", "ForeverRepeat", "BatchV2")),
        ("interleave", ("TensorSlice", "Interleave", "ForeverRepeat", "BatchV2")),
        ("concatenate", ("TensorSlice", "Map", "Concatenate", "ForeverRepeat", "BatchV2")),
        ("choose", ("TensorSlice", "Map", "DirectedInterleave", "ForeverRepeat", "BatchV2")),
        ("slow_zip", ("TensorSlice", "Map", "ForeverRepeat", "Zip", "BatchV2")),
    ],
)
def test_the_executed_chain_is_the_written_one(tensorflow_profiles: dict[str, Path], name: str, chain) -> None:
    """From the source, or from the cache on where it is warm; by the first input, not by the one with most time."""
    assert read_profile(tensorflow_profiles[name]).executed_pipeline == chain


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("name", "branches", "slow_lies_in"),
    [
        ("decoding", [], None),
        ("flat_map", ["FromTensor > Map > FlatMap"], "what FlatMap makes of each element (FromTensor > Map)"),
        ("interleave", ["FromTensor > Map > Interleave"], "what Interleave makes of each element (FromTensor > Map)"),
        (
            "concatenate",
            ["TensorSlice > Filter > Map > Concatenate"],
            "input 2 of Concatenate (TensorSlice > Filter > Map)",
        ),
        (
            "choose",
            ["TensorSlice > Filter > DirectedInterleave", "Range > ForeverRepeat > DirectedInterleave"],
            "input 2 of DirectedInterleave (TensorSlice > Filter)",
        ),
        ("slow_zip", [], "input 1 of Zip (TensorSlice > Map > ForeverRepeat)"),
    ],
)
def test_other_ways_through_a_pipeline_are_told_and_on_which_the_slow_stage_lies(
    tensorflow_profiles: dict[str, Path], name: str, branches: list[str], slow_lies_in: str | None
) -> None:
    """Both inputs of the zip are Map > ForeverRepeat: by name one way."""
    profile = read_profile(tensorflow_profiles[name])
    end = () if name == "slow_zip" else ("ForeverRepeat", "BatchV2")
    assert profile.branches == tuple((*way.split(" > "), *end) for way in branches)
    notes = [note for note in profile.notes if note.startswith("The slowest stage")]
    expected = f"The slowest stage, {profile.slowest_stage}, lies in {slow_lies_in}."
    assert notes == ([expected] if slow_lies_in else [])


@pytest.mark.tensorflow
def test_a_map_before_a_flat_map_is_told_from_the_one_within(tensorflow_profiles: dict[str, Path]) -> None:
    """Both are called Map and stand below FlatMap; only the one on each element sleeps, 10 ms for each of 20."""
    stages = [stage for stage in read_profile(tensorflow_profiles["flat_map"]).stages if stage.operator == "Map"]
    within, before = stages
    assert within.self_ms >= 190
    assert before.self_ms < within.self_ms / 4
    assert before.blocking_ms.mean < within.blocking_ms.mean / 4


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", ["decoding", "parallel_decoding"])
def test_work_inside_a_map_is_its_cost_whether_parallel_or_not(tensorflow_profiles: dict[str, Path], name: str) -> None:
    """80 photos decoded and resized: both ops are attributed to the stage, and make most of its self time."""
    profile = read_profile(tensorflow_profiles[name])
    stage = next(stage for stage in profile.stages if "Map" in stage.operator)
    ops = {op.type: op for op in stage.ops}
    # A run that began before the capture, or ended after it, is not in it.
    assert abs(ops["DecodeJpeg"].count - 80) <= 4
    inside = ops["DecodeJpeg"].self_ms + ops["ResizeBilinear"].self_ms
    assert 0.4 * stage.self_ms < inside <= 1.01 * stage.self_ms


@pytest.mark.tensorflow
def test_training_shows_its_heavy_layer_forward_and_backward(tensorflow_profiles: dict[str, Path]) -> None:
    layers = read_profile(tensorflow_profiles["training"]).layers
    assert layers[0].name.startswith("heavy_convolution")
    assert layers[0].forward_ms > 0
    assert layers[0].backward_ms > 0
    assert any(layer.name.startswith("light_dense") for layer in layers)


@pytest.mark.tensorflow
def test_keras_own_markers_are_used_with_a_note(tensorflow_profiles: dict[str, Path]) -> None:
    profile = read_profile(tensorflow_profiles["keras_markers"])
    assert profile.steps == 3
    assert any("_r=1" in note for note in profile.notes)
