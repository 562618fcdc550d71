"""What a profile of a training with an emulated accelerator tells, built by hand: no clock, no chance."""

import math

from feedbench.records import (
    Blocking,
    InputWait,
    Kernel,
    Layer,
    MemoryUse,
    Op,
    Profile,
    ProfiledStep,
    Span,
    Stage,
    StageOp,
    StepTime,
    Timeline,
    TimelineStep,
)

MODEL_MS = 45.2
STEPS_PER_PASS = 7
BATCH = 32
WAITS_IN_A_PASS = (1.45, 0.97, 1.0, 1.25, 0.95, 0.1, 1.28)
"""How a wait is spread over a pass, times its mean: the shuffle buffer drains at the end and refills after."""


def step_times(wait_ms: float, passes: int = 3) -> tuple[float, ...]:
    """Step by step: the model's time and a wait that follows the pass over the photos."""
    return tuple(
        round(MODEL_MS + 0.8 + wait_ms * WAITS_IN_A_PASS[n % STEPS_PER_PASS] + 0.3 * math.sin(n * 1.7), 3)
        for n in range(passes * STEPS_PER_PASS)
    )


def timeline(wait_ms: float, input_ms: float, lanes: tuple[str, ...]) -> Timeline:
    """Six steps; without a prefetch (wait = input time) input work lies in the waits, else beside the model."""
    steps, work, start = [], [], 100.0
    overlaps = wait_ms < 2
    for number in range(40, 46):
        wait = wait_ms * WAITS_IN_A_PASS[number % STEPS_PER_PASS]
        end = start + wait + MODEL_MS + 0.8
        steps.append(
            TimelineStep(number=number, start_ms=start, end_ms=end, wait=Span(start_ms=start, end_ms=start + wait))
        )
        began = start + wait if overlaps else start
        work.append(Span(start_ms=began, end_ms=began + (input_ms if overlaps else wait)))
        start = end
    return Timeline(steps=tuple(steps), lanes={lane: tuple(work) for lane in lanes})


def profile(chain: tuple[str, ...], wait_ms: float, input_ms: float) -> Profile:
    """What the reader would say of twelve steps: the map stage reads, decodes and resizes, and blocks the wait."""
    mean = MODEL_MS + 0.8 + wait_ms
    stages = tuple(_stage(operator, place, wait_ms, input_ms, mean) for place, operator in enumerate(chain))
    mapping = next((operator for operator in chain if "Map" in operator), None)
    return Profile(
        file="host.xplane.pb",
        status="ok",
        device={"kind": "cpu", "name": "Intel Xeon"},
        hosts=("worker-1",),
        steps=12,
        step_time_ms=StepTime(mean=mean, median=mean - 0.4, min=mean - 3, max=mean + 7),
        input_wait_ms=InputWait(mean=wait_ms),
        input_wait_share=wait_ms / mean,
        executed_pipeline=chain,
        stages=stages,
        slowest_stage=mapping or chain[0],
        cores=2,
        top_ops=(
            Op(name="sequential/conv2d", type="Conv2D", where="host", count=12, self_ms=310.4, share=0.42),
            Op(name="map/DecodeJpeg", type="DecodeJpeg", where="host", count=384, self_ms=12 * input_ms, share=0.31),
        ),
        layers=(
            Layer(name="block6d_expand_conv", where="host", forward_ms=3.4, backward_ms=0.0),
            Layer(name="top_conv", where="host", forward_ms=5.1, backward_ms=0.0),
        ),
        kernels=(Kernel(name="volta_scudnn_128x64", count=120, total_ms=61.2, share=0.23),),
        memory=(MemoryUse(allocator="cpu", peak_mb=412.5),),
        step_table=tuple(ProfiledStep(number=38 + n, duration_ms=mean, input_wait_ms=wait_ms) for n in range(12)),
        timeline=timeline(wait_ms, input_ms, ("input pipeline", mapping or chain[0])),
    )


def _stage(operator: str, place: int, wait_ms: float, input_ms: float, step_ms: float) -> Stage:
    works, is_photo = "Map" in operator, operator not in ("BatchV2", "Prefetch")
    blocking = wait_ms * (0.93 if works else 0.01)
    return Stage(
        name=f"{operator}Dataset:{place}",
        operator=operator,
        count=384 if is_photo else 12,
        total_ms=12 * input_ms,
        self_ms=12 * input_ms * (0.93 if works else 0.01),
        blocking_ms=Blocking(mean=blocking, median=blocking * 0.98, p95=blocking * 1.6),
        share=blocking / step_ms,
        parallelism=2 if operator == "ParallelMapV2" else None,
        buffer={"Shuffle": 100, "ShuffleAndRepeat": 100, "Prefetch": 2}.get(operator),
        buffered=100 if "Shuffle" in operator else None,
        element_bytes=602_112 if is_photo else 602_112 * BATCH,
        ops=(
            StageOp(type="DecodeJpeg", count=384, self_ms=8.2 * input_ms),
            StageOp(type="ResizeBilinear", count=384, self_ms=2.9 * input_ms),
        )
        if works
        else (),
    )
