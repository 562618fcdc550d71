"""What ran is held against what was written: by name, count and order, on every way through the pipeline."""

from dataclasses import replace

import pytest

from feedbench.analysis.evidence import Check, check, home_class
from planted.trials import Planted

NAIVE = ("TensorSlice", "Map", "Shuffle", "ForeverRepeat", "BatchV2")


@pytest.fixture
def ran():
    """Judges the naive variant, declared as NAIVE, when these are the ways through what ran; round 3 may differ."""

    def judge(*ways: tuple[str, ...], in_round_3: tuple[tuple[str, ...], ...] | None = None) -> Check:
        run = Planted({"naive": 65.0})
        for rounds, shown in (((1, 2), ways), ((3,), in_round_3 or ways)):
            update = {"executed_pipeline": shown[0], "branches": shown[1:]}
            run = run.change(
                "naive", lambda e, u=update: replace(e, profile=e.profile.model_copy(update=u)), rounds=rounds
            )
        (spec,) = (variant for variant in run.run.variants if variant.name == "naive")
        trials = [e for e in run.evidence.values() if e.planned.variant == "naive"]
        return check(spec, trials, home_class(trials), None)

    return judge


CONCATENATED = (
    ("TensorSlice", "FiniteTake", "Map", "Concatenate", "BatchV2"),
    ("TensorSlice", "FiniteSkip", "Map", "Concatenate", "BatchV2"),
)


def test_what_runs_as_declared_is_ok(ran):
    judged = ran(NAIVE)
    assert (judged.status, judged.reason, judged.pipeline.matches) == ("ok", None, True)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_declared_chain_may_be_any_way_through_the_inputs(ran, place):
    ways = list(CONCATENATED)
    ways.insert(place, NAIVE)
    judged = ran(*ways)
    assert (judged.status, judged.pipeline.matches, judged.pipeline.executed) == ("ok", True, NAIVE)


def test_no_way_as_declared_is_invalid_and_shows_the_first(ran):
    judged = ran(*CONCATENATED)
    assert (judged.status, judged.pipeline.matches) == ("invalid", False)
    assert judged.pipeline.executed == CONCATENATED[0]


def test_a_round_in_which_no_way_is_as_declared_is_the_one_that_is_shown(ran):
    judged = ran(CONCATENATED[0], NAIVE, in_round_3=CONCATENATED)
    assert judged.status == "invalid"
    assert judged.pipeline.executed == CONCATENATED[0]


@pytest.mark.parametrize(
    ("executed", "reason"),
    [
        (
            ("TensorSlice", "Map", "Map", "Shuffle", "ForeverRepeat", "BatchV2"),
            "declared Map once, executed Map twice",
        ),
        (
            ("TensorSlice", "Map", "Map", "Map", "Shuffle", "Prefetch", "ForeverRepeat", "BatchV2"),
            "executed Prefetch; not declared; declared Map once, executed Map 3 times",
        ),
        (
            ("TensorSlice", "ParallelMapV2", "Shuffle", "ForeverRepeat", "BatchV2"),
            "executed ParallelMapV2; not declared; declared Map; not executed in the profiled steps",
        ),
        (
            ("TensorSlice", "Shuffle", "Map", "ForeverRepeat", "BatchV2"),
            "executed in another order: TensorSlice > Shuffle > Map > ForeverRepeat > BatchV2",
        ),
    ],
)
def test_the_reason_says_what_differs(ran, executed, reason):
    """Names first, then how often, and the order only where that is all."""
    assert ran(executed).reason == reason
