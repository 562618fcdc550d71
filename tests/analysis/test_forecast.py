"""Forecasts from one baseline, checked against sums that can be done by hand."""

import pytest

from feedbench.analysis.advise import next_steps, what_if
from feedbench.analysis.forecast import Costs, costs, forecast_ms, rewritten
from feedbench.records import OperatorRates, Profile, Stage

BASE = Costs(
    model_ms=45, map_ms=20, parallel_map_ms=12, order_ms=1, batch_ms=4, memory_cache_ms=0.1, file_cache_ms=8,
    uint8_batch_ms=1, to_float_ms=2, cores=2, model_work_ms=0, ready_share=2 / 32,
    alone=(18, 10, 3),
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
    fast = Costs(**{**vars(BASE), "model_ms": 5})
    assert forecast_ms((*NAIVE, "Prefetch"), fast) == pytest.approx(25)
    assert forecast_ms((*PARALLEL, "Prefetch"), fast) == pytest.approx(16.25)


def test_a_model_on_the_same_cores_still_pays_for_the_work():
    """Prefetch on the CPU saves the wait, not the work: 45 + 25 / 2."""
    shared = Costs(**{**vars(BASE), "model_work_ms": 2 * 45})
    assert forecast_ms((*NAIVE, "Prefetch"), shared) == pytest.approx(57.5)


def test_a_parallel_map_over_batches_runs_ahead_by_itself():
    """25 ms of input and a cast of 2 ms, three segments beside a 45 ms model; a prefetch behind it changes nothing."""
    cast = (*NAIVE, "ParallelMapV2")
    assert forecast_ms(cast, BASE) == forecast_ms((*cast, "Prefetch"), BASE) == pytest.approx(45)


@pytest.mark.parametrize(("cores", "ready_ms"), [(2, 12 / 16), (16, 5), (64, 5)])
def test_a_parallel_map_is_ahead_by_its_threads_and_no_longer_than_it_is_left_alone(cores, ready_ms):
    """One photo a core of 32, but no more than can be decoded in the 5 ms in which the batch is put together."""
    many = Costs(**{**vars(BASE), "model_ms": 5, "cores": cores, "ready_share": min(cores / 32, 1)})
    assert forecast_ms((*PARALLEL, "Prefetch"), many) == pytest.approx(12 + 1 + 4 - ready_ms)


def test_a_model_that_works_on_the_cores_takes_them_from_the_input():
    """An emulated 3 ms step that costs 30 ms of a core besides: (25 + 30) / 2, where one thread of input needs 25."""
    emulated = Costs(**{**vars(BASE), "model_ms": 12, "model_work_ms": 30})
    assert forecast_ms((*NAIVE, "Prefetch"), emulated) == pytest.approx(27.5)


def test_a_parallel_map_waits_for_the_core_that_the_model_takes():
    """In order and two photos ahead, it stands still for 9 ms of the model's work: 16.25 + 9; never longer than both in
    turn; and not at all where the model works elsewhere or one thread decodes, the other core being free.
    """
    beside = Costs(**{**vars(BASE), "model_ms": 12, "model_work_ms": 9})
    assert forecast_ms((*PARALLEL, "Prefetch"), beside) == pytest.approx(25.25)
    assert forecast_ms((*NAIVE, "Prefetch"), beside) == pytest.approx(25)
    on_cpu = Costs(**{**vars(BASE), "model_ms": 12, "model_work_ms": 2 * 12})
    assert forecast_ms((*PARALLEL, "Prefetch"), on_cpu) == pytest.approx(16.25 + 12)


def test_a_shuffle_buffer_that_is_never_emptied_costs_what_its_operators_cost_alone():
    """TensorFlow fuses it with the repeat: 10 + 1 + 3 less two photos of 32 in 10 ms; the written one has 16.25."""
    fast = Costs(**{**vars(BASE), "model_ms": 5})
    assert forecast_ms(rewritten(NAIVE), fast) == pytest.approx(10 + 1 + 3 - 10 / 16)


def test_an_operator_of_unknown_cost_gives_no_forecast():
    assert forecast_ms(("TensorSlice", "Filter", *NAIVE[1:]), BASE) is None


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
    found = costs(Profile(file="x", status="ok", stages=stages), rates, 25.0, 45.0, 0.0, 32, 2)
    assert (found.model_ms, found.map_ms, found.batch_ms) == pytest.approx((45, 20, 5))
    assert found.parallel_map_ms == pytest.approx(20 / 1.5)  # as much faster as the rates say
    assert found.alone == pytest.approx((0.6 * 32, 0.4 * 32, 4))  # 32 photos and a batch, as the rates say
    assert forecast_ms(NAIVE, found) == pytest.approx(70)


def test_next_steps_are_ranked_by_gain_and_leave_out_what_ran():
    steps = next_steps(BASE, NAIVE, 70.0, tried=[NAIVE], cached_photos_mb=2210, min_effect=0.02)
    gains = [step.gain for step in steps]
    assert gains == sorted(gains, reverse=True)
    assert steps[0].gain == pytest.approx(1 - 45 / 70)
    assert steps[0].forecast_ms == pytest.approx(45)
    assert steps[0].memory_mb == 0  # of equal gains the one without memory first


def test_what_every_forecast_leaves_out_is_not_taken_for_a_gain():
    """Measured 50 ms where the forecast says 45: another pipeline that is forecast 45 gains nothing."""
    steps = next_steps(
        BASE, (*NAIVE, "Prefetch"), 50.0, tried=[(*NAIVE, "Prefetch")], cached_photos_mb=1, min_effect=0.02
    )
    assert [step.change for step in steps] == ["nothing to gain from input: the step takes as long as the model alone"]
    assert steps[0].gain == 0


def test_more_cores_help_where_work_is_the_limit():
    """A 5 ms model; on twice the cores 12 ms of decoding are 6, and four photos of 32 are ready: 6 + 5 - 0.75."""
    fast = Costs(**{**vars(BASE), "model_ms": 5})
    best = (*PARALLEL, "Prefetch")
    steps = {s.change: s for s in next_steps(fast, best, 16.25, tried=[best], cached_photos_mb=1, min_effect=0.02)}
    assert steps["4 cores instead of 2"].forecast_ms == pytest.approx(10.25)


def test_what_if_keeps_up_where_the_accelerator_is_busy_nine_tenths_of_a_step():
    """Input 20 ms: ahead of the model, from 18 ms on (18 / 20); before it, from 180 ms on (180 / 200)."""
    ahead, before = what_if(20.0, True, 32), what_if(20.0, False, 32)
    assert (ahead.keeps_up_from_ms, before.keeps_up_from_ms) == pytest.approx((18, 180))
    assert ahead.photos_per_s[0] == pytest.approx(1600)  # 32 in 20 ms, however fast the accelerator
    assert ahead.photos_per_s[-1] == pytest.approx(32)  # one second a step
    assert before.photos_per_s[0] == pytest.approx(32 / 0.021)
