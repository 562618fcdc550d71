"""What limits a variant: two witnesses, and what each says.

* The trace: share of a profiled step spent waiting for the next batch. XProf's lines: 20 % and more is highly
  input-bound, 5 % and more moderately (xprof, input_pipeline_analysis).
* The clock: accelerator utilisation, the ceiling's step time over this one's, unprofiled. MLPerf Storage calls a
  pipeline good from 90 % on.
"""

from dataclasses import dataclass

from feedbench.records import Verdict
from feedbench.units import share

INPUT_BOUND_WAIT = 0.20
COMPUTE_BOUND_WAIT = 0.05
GOOD_UTILISATION = 0.90
INPUT_BOUND_UTILISATION = 1 - INPUT_BOUND_WAIT

_RANK: dict[Verdict, int] = {"input-bound": 0, "balanced": 1, "compute-bound": 2}


@dataclass(frozen=True)
class Diagnosis:
    verdict: Verdict
    reason: str | None = None
    """Why it was not measured, or how the witnesses disagree."""


def diagnose(wait_share: float | None, utilisation: float | None, no_trace: str | None = None) -> Diagnosis:
    """One word for a variant. `no_trace`: why the trace cannot testify, if so."""
    trace, clock = by_trace(wait_share), by_clock(utilisation)
    if trace is None and clock is None:
        return Diagnosis("not measured", no_trace or "neither a profile nor a ceiling")
    if trace is None:
        return Diagnosis(clock, f"by the clock alone: {no_trace or 'no profile'}")
    if clock is None:
        return Diagnosis(trace, "by the trace alone: no ceiling was measured")
    if abs(_RANK[trace] - _RANK[clock]) < 2:
        return Diagnosis(clock)  # neighbours agree within the width of the lines; the clock was not disturbed
    # Nothing waits, yet the step is longer than with no input work at all: both share the same cores.
    cause = (
        "input work takes cores from the train step" if trace == "compute-bound" else "the profiler slowed the input"
    )
    return Diagnosis(
        "balanced",
        f"the witnesses disagree: it waits {share(wait_share)} of a profiled step, but reaches {share(utilisation)} of "
        f"the ceiling; {cause}, or the profiled steps were not typical",
    )


def by_trace(wait_share: float | None) -> Verdict | None:
    if wait_share is None:
        return None
    if wait_share >= INPUT_BOUND_WAIT:
        return "input-bound"
    return "balanced" if wait_share >= COMPUTE_BOUND_WAIT else "compute-bound"


def by_clock(utilisation: float | None) -> Verdict | None:
    if utilisation is None:
        return None
    if utilisation >= GOOD_UTILISATION:
        return "compute-bound"
    return "balanced" if utilisation >= INPUT_BOUND_UTILISATION else "input-bound"
