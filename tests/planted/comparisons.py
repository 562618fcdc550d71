"""Records as a run on 300 photos with an emulated accelerator leaves them, built by hand: no clock, no chance."""

import re

from feedbench.analysis.forecast import rewritten
from feedbench.config import Settings
from feedbench.pipelines.variants import available
from feedbench.records import (
    Accelerator,
    Comparison,
    DataSet,
    Interval,
    PipelineCheck,
    PlannedTrial,
    Run,
    StepTimeSummary,
    VariantResult,
    VariantSpec,
    WhatIf,
    Window,
    XprofStatement,
)
from planted.machines import machine
from planted.profiles import BATCH, MODEL_MS, STEPS_PER_PASS, profile, step_times

BUILT_IN = available()
NAIVE, PREFETCH = BUILT_IN["naive"].written, BUILT_IN["prefetch"].written


def variant(name: str, why: str, chain: tuple[str, ...], wait_ms: float, input_ms: float, **changes) -> VariantResult:
    """A healthy result whose speed-up is over a baseline that waits 20.6 ms."""
    times = step_times(wait_ms)
    mean = sum(times) / len(times)
    speedup = (MODEL_MS + 0.8 + 20.6) / mean
    gain = Interval(value=speedup, ci_low=speedup * 0.975, ci_high=speedup * 1.024)
    seen = profile(chain, wait_ms, input_ms)
    share = wait_ms / mean
    fields = {
        "name": name, "why": why, "status": "ok", "rounds": 3,
        "step_time_ms": StepTimeSummary(
            mean=mean, ci_low=mean * 0.988, ci_high=mean * 1.013, median=sorted(times)[len(times) // 2], p95=max(times)
        ),
        "examples_per_s": BATCH / mean * 1000, "first_batch_s": 0.42, "speedup": None if name == "naive" else gain,
        "input_wait_share": share, "input_only_ms": input_ms, "accelerator_utilisation": MODEL_MS / mean,
        "verdict": "input-bound" if share >= 0.2 else "compute-bound", "slowest_stage": seen.slowest_stage,
        "forecast_ms": MODEL_MS + max(input_ms if wait_ms > 2 else 0, 1.5),
        "pipeline": PipelineCheck(written=chain, declared=chain, executed=chain, matches=True),
        "peak_rss_mb": 1480 + 12 * len(chain), "loss": 1.402, "accuracy": 0.418, "val_accuracy": 0.36,
        "profile": f"trials/{name}/1/train", "round_means_ms": (mean * 0.996, mean, mean * 1.006),
        "step_times_ms": times, "first_measured_step": 12,
        "window": Window(first_step=33, steps=12, first_step_in_pass=5), "summary": seen,
        "xprof": XprofStatement(
            available=True, step_time_ms=mean + 0.9, input_share=share,
            statement=f"Your program is {'HIGHLY' if share >= 0.2 else 'NOT'} input-bound.",
        ),
        "what_if": what_if(input_ms, overlaps=wait_ms < 2),
    }  # fmt: skip
    return VariantResult(**(fields | changes))


def built_in(name: str, why: str, wait_ms: float, input_ms: float, **changes) -> VariantResult:
    """A healthy result of one of our own variants, with the chain that TensorFlow runs."""
    it = BUILT_IN[name]
    chain = rewritten(it.written) if it.rewritten else it.declared
    check = PipelineCheck(written=it.written, declared=it.declared, executed=chain, matches=chain == it.declared)
    return variant(name, why, chain, wait_ms, input_ms, **{"pipeline": check} | changes)


def what_if(input_ms: float, overlaps: bool) -> WhatIf:
    steps = tuple(round(10 ** (n / 20), 4) for n in range(61))
    times = [max(step, input_ms) if overlaps else step + input_ms for step in steps]
    return WhatIf(
        accelerator_step_ms=steps,
        photos_per_s=tuple(BATCH * 1000 / time for time in times),
        keeps_up_from_ms=0.9 * input_ms if overlaps else 9 * input_ms,
    )


def unmeasured(name: str, why: str, status: str, reason: str, **changes) -> VariantResult:
    it = BUILT_IN.get(name, BUILT_IN["naive"])
    check = PipelineCheck(written=it.written, declared=it.declared, executed=None, matches=None)
    fields = {"name": name, "why": why, "status": status, "reason": reason, "rounds": 0, "pipeline": check}
    return VariantResult(**(fields | changes))


def run_of(comparison: Comparison, rounds: int = 3, **settings) -> Run:
    given = {
        "source": "flower_photos", "accelerator": "emulated", "emulated_step_ms": 45.0, "image_size": 224,
        "batch_size": BATCH, "rounds": rounds,
    }  # fmt: skip
    names = [re.sub(r"\W", "_", result.name) for result in comparison.variants]  # no run has hostile ones
    return Run(
        run_id=re.sub(r"[^A-Za-z0-9_.:+-]", "_", comparison.run_id)[:250],
        created_at="2026-03-04T02:30:11+00:00",
        settings=Settings(**(given | settings)),
        method_version=1,
        data=DataSet(
            source="flower_photos", fingerprint="9f2c31a07b6e", path="datasets/9f2c31a07b6e",
            classes=("daisy", "dandelion", "roses", "sunflowers", "tulips"), photos=300, rejects=4, train_photos=224,
            validation_photos=60,
        ),
        variants=tuple(_spec(name, result) for name, result in zip(names, comparison.variants, strict=True)),
        trials=tuple(PlannedTrial(variant=name, round=n) for n in range(1, rounds + 1) for name in names),
        machine=machine(
            machine_class="c4e1", cpu_model="Intel Xeon Platinum 8370C", cores=2, memory_mb=8200,
            packages={"tensorflow": "2.21.0", "keras": "3.15.0", "xprof": "2.24.2"},
        ),
        git_revision="54bddd3",
    )  # fmt: skip


def _spec(name: str, result: VariantResult) -> VariantSpec:
    check = result.pipeline
    return VariantSpec(
        name=name,
        why=result.why,
        written=check.written,
        declared=check.declared,
        rewritten=result.name == "tf_default",
        spec=" | ".join(check.written),
    )


def comparison_of(*variants: VariantResult, **changes) -> Comparison:
    fields = {
        "run_id": "scheduled__2026-03-04T02:30:00+00:00",
        "verdict": "Ship prefetch: 1.43× as fast as naive (95 % interval 1.39 to 1.46). The accelerator is 97 % busy; "
        "no input change can gain more than 2.9 %.",
        "baseline": "naive",
        "fastest": ("prefetch", "tf_default", "parallel_map_prefetch", "combined"),
        "accelerator": Accelerator(kind="emulated", name="emulated accelerator", step_ms=45.0),
        "ceiling_ms": MODEL_MS,
        "variants": variants,
        "steps_per_pass": STEPS_PER_PASS,
        "batch_size": BATCH,
    }
    return Comparison(**(fields | changes))


def healthy_variants() -> tuple[VariantResult, ...]:
    """Five good ones, one failed, one invalid."""
    fused = ("TensorSlice", "MapAndBatch", "ForeverRepeat", "Prefetch")
    return (
        built_in("prefetch", "overlap preprocessing with the train step", 0.6, 21.0),
        built_in("naive", "one photo after the other, one batch after the other", 20.6, 20.8),
        built_in(
            "parallel_map_prefetch", "decode on all cores, overlapped", 0.4, 12.9,
            notes=("accuracy differs from the baseline's by chance only",),
        ),
        built_in(
            "combined", "parallel map, memory cache, prefetch", 0.2, 0.8, cache_mb=181.0, fill_s=1.9,
            peak_rss_mb=2210.0, xprof=XprofStatement(available=False, reason="no step markers found"),
        ),
        built_in(
            "tf_default", "the naive code with TensorFlow's own rewriting on", 0.3, 13.1, verdict="balanced",
            verdict_reason="trace and clock disagree: 0.6 % waiting, but AU of 88 %", accelerator_utilisation=0.88,
        ),
        unmeasured(
            "cache_file", "decode once, to a file", "failed",
            "signal 9, probably out of memory; peak RSS 7.9 GB in round 1 of 3 (phase: fill)",
        ),
        unmeasured(
            "my_pipeline", "a user's own", "invalid", "executed MapAndBatch, Prefetch; not declared",
            pipeline=PipelineCheck(written=NAIVE, declared=NAIVE, executed=fused, matches=False),
            summary=profile(NAIVE, 20.6, 20.8),
        ),
    )  # fmt: skip
