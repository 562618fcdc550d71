"""What the numbers mean, one line each: column headings link here, as the report is one file without a network.

The anchors are those of docs/method.md, where each has its limits and sources.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    anchor: str
    title: str
    meaning: str
    formula: str = ""


GLOSSARY = (
    Term(
        "m-step-time",
        "Step time",
        "Mean wall time of the measured steps: after warm-up and cache fill, profiler off, whole passes over the "
        "photos. The 95 % interval is a bootstrap that resamples rounds, then blocks of neighbouring steps.",
        "step time = mean over rounds of (sum of its measured steps / their number)",
    ),
    Term("m-examples", "Examples/s", "Photos trained on in a second.", "examples/s = batch size / step time"),
    Term(
        "m-speedup",
        "Speed-up",
        "How many times faster than the baseline, round by round; the interval holds for all variants together.",
        "speed-up = step time of the baseline / step time of the variant",
    ),
    Term(
        "m-fastest",
        "★ Fastest",
        "All variants that this run cannot tell apart from the best one, the simplest first. Where the baseline "
        "is none of them, those that are certainly faster than it come first.",
    ),
    Term(
        "m-input-wait",
        "Input wait",
        "Time in a step in which the training loop waits for the next batch, seen in the profile window.",
        "input wait = sum of waits / sum of step durations, over the profiled steps",
    ),
    Term(
        "m-input-only",
        "Input only",
        "Time for a batch when nothing consumes it: one whole pass with no model behind the pipeline.",
        "input only = duration of the pass / number of batches",
    ),
    Term(
        "m-ceiling",
        "Ceiling",
        "Step time of the same model fed one constant batch: no pipeline can be faster.",
    ),
    Term(
        "m-au",
        "AU, accelerator utilisation",
        "Share of the step that the accelerator needs by itself; MLPerf Storage calls a pipeline good from 90 % on.",
        "AU = ceiling / step time",
    ),
    Term(
        "m-verdict",
        "Verdict",
        "From two witnesses. The trace: an input wait of 20 % or more is input-bound, under 5 % compute-bound (XProf's "
        "lines). The clock: an AU under 80 % is input-bound, of 90 % or more compute-bound. Between: balanced. "
        "Where the two contradict each other the verdict is balanced, and the note quotes both.",
    ),
    Term("m-memory", "Memory", "Largest resident memory of the trial's process (peak RSS), model included."),
    Term("m-cache", "Cache", "Size of the filled cache, in memory or on the worker's disk."),
    Term(
        "m-change",
        "Change",
        "Lasting difference of the step time from the recent nights of the same series: same machine class, data, "
        "settings, method and variant.",
        "change = step time tonight / step time of the recent nights − 1",
    ),
    Term(
        "m-forecast",
        "Forecast",
        "Step time predicted from the baseline's trials alone, by the operational model of Plumber (MLSys 2022). A "
        "segment is what works by itself, divided from the next where an operator runs ahead. The model's own work "
        "on the cores is all of it on a CPU and none on a GPU.",
        "input = max(segments, work / cores); "
        "step = model + input, or max(model, input, (work + the model's own work) / cores) where the last operator "
        "runs ahead; "
        "model = step time of the baseline − its input only (at least the ceiling)",
    ),
    Term(
        "m-gain",
        "Gain",
        "Step time that a change is predicted to save against the fastest variant measured.",
        "gain = 1 − forecast of the change / forecast of the fastest; "
        "beside it stands the fastest's measured step time less that gain",
    ),
    Term(
        "m-error",
        "Error",
        "How far a forecast was off.",
        "error = forecast / measured − 1",
    ),
    Term(
        "m-self",
        "Self time",
        "Duration of a stage less the overlap with the tf.data stages below it; operators in its function included.",
    ),
    Term(
        "m-blocking",
        "Blocking time",
        "Time a step stands still for one stage: while that stage and every stage between it and the waiting step "
        "are at work.",
        "share = mean blocking time / mean step time, over the profiled steps",
    ),
    Term(
        "m-parallelism",
        "Parallelism and buffer",
        "Really used ones, as the trace has them: workers of the stage, elements it held / may hold. "
        "A dash is unknown.",
    ),
    Term(
        "m-what-if",
        "What if",
        "Photos a second with a faster or slower accelerator behind the same pipeline; the dot is the shortest step "
        "at which it still reaches 90 % utilisation.",
    ),
    Term(
        "m-noise-floor",
        "Noise floor",
        "Difference of step times that two runs of the same thing show in 95 of 100 cases.",
    ),
    Term(
        "m-detectable",
        "Smallest detectable effect",
        "Smallest slow-down that a run like this one finds nine times in ten.",
    ),
)
