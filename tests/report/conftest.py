"""Comparisons to draw: good, changed, without any result, and large."""

import pytest

from feedbench.records import Accelerator, Change, Changes, Comparison, Interval, NextStep
from planted.comparisons import (
    PREFETCH,
    comparison_of,
    healthy_variants,
    unmeasured,
    variant,
)
from planted.profiles import step_times


@pytest.fixture
def emulated() -> Comparison:
    """Five good variants, one failed, one invalid; the first night of its series."""
    return comparison_of(
        *healthy_variants(),
        next_steps=(
            NextStep(change="prefetch with the file's own variant", forecast_ms=46.0, gain=0.012, memory_mb=38.5),
            NextStep(change="parallel map over 2 cores", forecast_ms=45.6, gain=0.021, memory_mb=4.8),
            NextStep(change="cache as uint8 after decoding", forecast_ms=45.4, gain=0.025, memory_mb=45.2),
        ),
        noise_floor=0.011,
        smallest_detectable_effect=0.034,
        warnings=("Three rounds on a shared machine: round means differ by 1.0 %.",),
        history=Changes(compared_with=None, nights=0),
    )


@pytest.fixture
def changed_night() -> Comparison:
    """A run on a GPU with a slower variant, a faster one and an accepted one since the last good night."""
    variants = healthy_variants()[:4]
    since = {"since_run": "scheduled__2026-03-03T02:30:00+00:00", "since": "2026-03-03"}
    return comparison_of(
        *variants,
        accelerator=Accelerator(kind="gpu", name="Tesla V100-SXM2-16GB"),
        history=Changes(
            compared_with="scheduled__2026-03-02T02:30:00+00:00",
            nights=14,
            changes=(
                Change(
                    variant="naive",
                    size=Interval(value=0.18, ci_low=0.15, ci_high=0.21),
                    direction="slower",
                    confidence=0.998,
                    causes=("self time of Map +21 %", "cores 4 → 2"),
                    **since,
                ),
                Change(
                    variant="prefetch",
                    size=Interval(value=-0.06, ci_low=-0.08, ci_high=-0.041),
                    direction="faster",
                    confidence=0.97,
                    **since,
                ),
                Change(
                    variant="combined",
                    size=Interval(value=0.12, ci_low=0.1, ci_high=0.14),
                    direction="slower",
                    confidence=0.99,
                    accepted="cache moved to a slower disk on purpose",
                    **since,
                ),
            ),
            environment=("tensorflow 2.20.0 → 2.21.0", "cores 4 → 2"),
        ),
    )


@pytest.fixture
def all_failed() -> Comparison:
    reason = "TensorFlow cannot open the GPU: CUDA driver version is insufficient"
    return comparison_of(
        unmeasured("naive", "the baseline", "failed", reason),
        unmeasured("prefetch", "overlap", "failed", reason),
        verdict="No variant gave a result: TensorFlow cannot open the GPU.",
        fastest=(),
        accelerator=None,
        ceiling_ms=None,
        steps_per_pass=None,
    )


@pytest.fixture
def many_variants() -> Comparison:
    """Twenty variants with two thousand steps each, as a long run leaves them."""
    waits = [20.6, *(20.0 / (1 + n) for n in range(19))]
    names = ["naive", *(f"variant_{n:02d}" for n in range(19))]
    variants = [
        variant(
            name,
            "one of many",
            PREFETCH,
            wait,
            21.0,
            rounds=10,
            step_times_ms=step_times(wait, passes=300),
            round_means_ms=tuple(46.0 + n / 10 for n in range(10)),
        )
        for name, wait in zip(names, waits, strict=True)
    ]
    return comparison_of(*variants, fastest=("variant_18",))
