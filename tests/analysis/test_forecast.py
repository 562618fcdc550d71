"""Forecasts from one baseline, checked against sums that can be done by hand."""

from dataclasses import replace

import pytest

from feedbench.analysis.advise import next_steps, what_if
from feedbench.analysis.forecast import Costs, Handling, costs, forecast_ms, rewritten
from feedbench.records import OperatorRates, Profile, Stage

BASE = Costs(
    model_ms=45, model_work_ms=0, order_ms=1, memory_cache_ms=0.1, file_cache_ms=8, to_float_ms=2, cores=2,
    ready_share=2 / 32,
    in_passes=Handling(map_ms=20, parallel_map_ms=12, batch_ms=4, uint8_batch_ms=1),
    alone=Handling(map_ms=18, parallel_map_ms=10, batch_ms=3, uint8_batch_ms=0.8),
)  # fmt: skip
NAIVE = ("TensorSlice", "Map", "Shuffle", "ForeverRepeat", "BatchV2")
PARALLEL = ("TensorSlice", "ParallelMapV2", "Shuffle", "ForeverRepeat", "BatchV2")
CACHED = ("MemoryCache", "Shuffle", "ForeverRepeat", "BatchV2")


@pytest.mark.parametrize(
    ("operators", "step_ms"),
    [
        (NAIVE, 45 + 20 + 1 + 4),
        ((*NAIVE, "Prefetch"), 45),  # 25 ms of input hide behind 45 ms of model
        (PARALLEL, 45 + 12 + 1 + 4 - 12 / 16),  # two of 32 photos are ready when the batch is asked for
        ((*PARALLEL, "Prefetch"), 45),
        (CACHED, 45 + 0.1 + 1 + 4),
        (("FileCache", *CACHED[1:]), 45 + 8 + 1 + 4),
        ((*CACHED, "ParallelMapV2", "Prefetch"), 45),
    ],
)
def test_a_step_is_the_model_plus_or_beside_the_input(operators, step_ms):
    assert forecast_ms(operators, BASE) == pytest.approx(step_ms)


def test_a_fast_accelerator_waits_for_the_slowest_segment():
    """A 5 ms model: naive + prefetch is bound by its 25 ms thread, parallel map by 12 + 1 + 4 less two photos."""
    fast = replace(BASE, model_ms=5)
    assert forecast_ms((*NAIVE, "Prefetch"), fast) == pytest.approx(25)
    assert forecast_ms((*PARALLEL, "Prefetch"), fast) == pytest.approx(16.25)


def test_a_model_on_the_same_cores_still_pays_for_the_work():
    """Prefetch on the CPU saves the wait, not the work: 45 + 25 / 2."""
    shared = replace(BASE, model_work_ms=2 * 45)
    assert forecast_ms((*NAIVE, "Prefetch"), shared) == pytest.approx(57.5)


def test_a_parallel_map_over_batches_runs_ahead_by_itself():
    """25 ms of input and a cast of 2 ms, three segments beside a 45 ms model; a prefetch behind it changes nothing."""
    cast = (*NAIVE, "ParallelMapV2")
    assert forecast_ms(cast, BASE) == forecast_ms((*cast, "Prefetch"), BASE) == pytest.approx(45)


@pytest.mark.parametrize(("cores", "ready_ms"), [(2, 12 / 16), (16, 5), (64, 5)])
def test_a_parallel_map_is_ahead_by_its_threads_and_no_longer_than_it_is_left_alone(cores, ready_ms):
    """One photo a core of 32, but no more than can be decoded in the 5 ms in which the batch is put together."""
    many = replace(BASE, model_ms=5, cores=cores, ready_share=min(cores / 32, 1))
    assert forecast_ms((*PARALLEL, "Prefetch"), many) == pytest.approx(12 + 1 + 4 - ready_ms)


def test_a_model_that_works_on_the_cores_takes_them_from_the_input():
    """An emulated 3 ms step that costs 30 ms of a core besides: (25 + 30) / 2, where one thread of input needs 25."""
    emulated = replace(BASE, model_ms=12, model_work_ms=30)
    assert forecast_ms((*NAIVE, "Prefetch"), emulated) == pytest.approx(27.5)


def test_a_parallel_map_waits_for_the_core_that_the_model_takes():
    """In order and two photos ahead, it stands still for 9 ms of the model's work: 16.25 + 9. One thread that decodes
    leaves the other core to the model, and a model on both cores is in the sum of all work: (25 + 24) / 2.
    """
    beside = replace(BASE, model_ms=12, model_work_ms=9)
    assert forecast_ms((*PARALLEL, "Prefetch"), beside) == pytest.approx(25.25)
    assert forecast_ms((*NAIVE, "Prefetch"), beside) == pytest.approx(25)
    on_cpu = replace(BASE, model_ms=12, model_work_ms=2 * 12)
    assert forecast_ms((*PARALLEL, "Prefetch"), on_cpu) == pytest.approx(24.5)


@pytest.mark.parametrize("cores", [1, 2, 8, 32, 64])
def test_a_prefetch_is_never_forecast_to_cost(cores):
    """Whatever a model takes of a map beside it, both together take no longer than both in turn."""
    for model_work_ms in (0, 3, 12, 12 * cores):
        costs = replace(BASE, model_ms=12, model_work_ms=model_work_ms).on(cores)
        for chain in (NAIVE, PARALLEL, CACHED):
            assert forecast_ms((*chain, "Prefetch"), costs) <= forecast_ms(chain, costs) + 1e-9


def test_a_shuffle_buffer_that_is_never_emptied_costs_what_its_operators_cost_alone():
    """TensorFlow fuses it with the repeat: 10 + 1 + 3 less two photos of 32 in 10 ms; the written one has 16.25."""
    fast = replace(BASE, model_ms=5)
    assert forecast_ms(rewritten(NAIVE), fast) == pytest.approx(10 + 1 + 3 - 10 / 16)


@pytest.mark.parametrize(
    "operators",
    [
        ("TensorSlice", "Filter", *NAIVE[1:]),
        ("TensorSlice", "Map", *NAIVE[1:]),  # one of the two decodes, the other does who knows what
        ("MemoryCache", "Map", *CACHED[1:]),
    ],
)
def test_an_operator_of_unknown_cost_gives_no_forecast(operators):
    assert forecast_ms(operators, BASE) is None


def test_what_tensorflow_makes_of_the_naive_chain():
    assert rewritten(NAIVE) == ("TensorSlice", "ParallelMapV2", "ShuffleAndRepeat", "BatchV2", "Prefetch")


def test_the_baselines_costs_add_up_to_what_was_measured():
    """Profile: 32 photos of 0.5 ms and a batch of 4 ms, 20 ms together; drained unprofiled in 25 ms: all x 1.25."""
    stages = (
        Stage(name="m", operator="Map", count=320, total_ms=160, self_ms=160),
        Stage(name="b", operator="BatchV2", count=10, total_ms=200, self_ms=40),
    )
    rates = OperatorRates(
        map_ms=0.6, parallel_map_ms=0.4, memory_cache_ms=0.01, file_cache_ms=0.2, batch_ms=4, uint8_batch_ms=1,
        to_float_ms=2,
    )  # fmt: skip
    measured = {"input_ms": 25.0, "model_ms": 45.0, "model_work_ms": 0.0, "batch_size": 32, "cores": 2}
    found = costs(Profile(file="x", status="ok", stages=stages), rates, **measured)
    assert found.model_ms == 45
    # By the rates a parallel map is 1.5 times as fast, and a batch of bytes a quarter of one of floats.
    assert vars(found.in_passes) == pytest.approx(vars(Handling(20, 20 / 1.5, 5, 1.25)))
    assert vars(found.alone) == pytest.approx(vars(Handling(19.2, 12.8, 4, 1)))
    assert forecast_ms(NAIVE, found) == pytest.approx(70)
    lost = costs(Profile(file="x", status="ok", stages=stages), rates.model_copy(update={"batch_ms": 0.0}), **measured)
    assert lost.alone.batch_ms == 5  # a rate that was lost in noise is none, and no batch is free


def test_next_steps_are_ranked_by_gain_and_leave_out_what_ran():
    steps = next_steps(BASE, NAIVE, 70.0, tried=[NAIVE], cached_photos_mb=2210, min_effect=0.02)
    gains = [step.gain for step in steps]
    assert gains == sorted(gains, reverse=True)
    assert steps[0].gain == pytest.approx(1 - 45 / 70)
    assert steps[0].forecast_ms == pytest.approx(45)
    assert steps[0].memory_mb is None  # of equal gains the one without a cache first; what buffers take is not known


def test_what_every_forecast_leaves_out_is_not_taken_for_a_gain():
    """Measured 50 ms where the forecast says 45: another pipeline that is forecast 45 gains nothing."""
    steps = next_steps(
        BASE, (*NAIVE, "Prefetch"), 50.0, tried=[(*NAIVE, "Prefetch")], cached_photos_mb=1, min_effect=0.02
    )
    told = "by the clock 10 % of the step is not the model's, but no change tried here would save it"
    assert [step.change for step in steps] == [f"nothing to gain from input: {told}"]
    assert steps[0].gain == 0


def test_more_cores_help_where_work_is_the_limit():
    """A 5 ms model; on twice the cores 12 ms of decoding are 6, and four photos of 32 are ready: 6 + 5 - 0.75.
    What TensorFlow rewrites gains as much: 10 ms are 5, and 5 + 4 - 0.625.
    """
    fast = replace(BASE, model_ms=5)
    best = (*PARALLEL, "Prefetch")
    steps = {s.change: s for s in next_steps(fast, best, 16.25, tried=[best], cached_photos_mb=1, min_effect=0.02)}
    assert steps["4 cores instead of 2"].forecast_ms == pytest.approx(10.25)
    assert forecast_ms(rewritten(NAIVE), fast.on(4)) == pytest.approx(8.375)


def test_what_if_keeps_up_where_the_accelerator_is_busy_nine_tenths_of_a_step():
    """Input 20 ms: ahead of the model, from 18 ms on (18 / 20); before it, from 180 ms on (180 / 200)."""
    ahead, before = what_if(20.0, True, 32), what_if(20.0, False, 32)
    assert (ahead.keeps_up_from_ms, before.keeps_up_from_ms) == pytest.approx((18, 180))
    assert ahead.photos_per_s[0] == pytest.approx(1600)  # 32 in 20 ms, however fast the accelerator
    assert ahead.photos_per_s[-1] == pytest.approx(32)  # one second a step
    assert before.photos_per_s[0] == pytest.approx(32 / 0.021)
