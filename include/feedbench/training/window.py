"""The clock and the profiler of a trial: one callback, one plan. Child side.

Keras 3's own profiling marks its steps so that no tool finds them (xprof issues 578 and 571), restarts their
numbers every epoch, and says nothing when its window lies past the last step. This callback marks steps with
`_r=1`, numbers them through, and keeps the profiled steps apart from the measured ones.
"""

import itertools
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from feedbench.config import Settings
from feedbench.errors import TrialFailed
from feedbench.records import Window


@dataclass(frozen=True)
class StepPlan:
    """How many steps of each kind, in this order."""

    warmup: int
    measured: int
    skipped: int
    """Between the measured and the profiled ones: they bring the window to where there is something to see."""
    profiled: int
    per_pass: int

    @classmethod
    def of(cls, settings: Settings, train_photos: int) -> "StepPlan":
        """Measured steps are rounded up to whole passes: a part of one hides how the shuffle buffer drains and fills.

        `train_photos` is a multiple of the batch size (the index trims it).
        """
        per_pass = train_photos // settings.batch_size
        passes = -(-settings.steps // per_pass)
        start, drained = settings.warmup_steps % per_pass, settings.shuffle_buffer // settings.batch_size
        skipped = 0
        if _all_from_buffer(start, settings.profile_steps, per_pass, drained):
            skipped = (per_pass - settings.profile_steps // 2 - start) % per_pass
        return cls(settings.warmup_steps, passes * per_pass, skipped, settings.profile_steps, per_pass)

    @property
    def measured_end(self) -> int:
        return self.warmup + self.measured

    @property
    def first_profiled(self) -> int:
        return self.measured_end + self.skipped

    @property
    def total(self) -> int:
        return self.first_profiled + self.profiled

    @property
    def window(self) -> Window:
        return Window(
            first_step=self.first_profiled,
            steps=self.profiled,
            first_step_in_pass=self.first_profiled % self.per_pass,
        )


def _all_from_buffer(start: int, steps: int, per_pass: int, drained: int) -> bool:
    """Whether a window would show a pipeline of which only the end runs.

    The last `drained` steps of a pass come out of the shuffle buffer, which is filled again at the first step of the
    next one; with a buffer as large as the data all other steps do, and nothing is read or decoded in them.
    """
    return all(step % per_pass >= max(per_pass - drained, 1) for step in range(start, start + steps))


class StepClock(keras.callbacks.Callback):
    """Takes the time of every step, end to end, and profiles the last ones into `logdir`."""

    def __init__(self, plan: StepPlan, logdir: Path, on_step: Any) -> None:
        super().__init__()
        self._plan = plan
        self._logdir = logdir
        self._on_step = on_step
        self._ends_s: list[float] = []
        self._marker: Any = None
        self._profiling = False
        self.started_s = time.perf_counter()

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if batch == self._plan.first_profiled:
            tf.profiler.experimental.start(str(self._logdir))
            self._profiling = True
        if self._profiling:
            self._marker = tf.profiler.experimental.Trace("train", step_num=batch, _r=1)
            self._marker.__enter__()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        float(logs["loss"])  # a GPU runs behind the host: the step is over when its result is here
        self._close_marker()
        self._ends_s.append(time.perf_counter())
        if batch == self._plan.total - 1:
            self.stop_profiler()
        self._on_step()

    def stop_profiler(self) -> None:
        """Stop the profiler if it runs, also after an error: a running one would fail the next start."""
        self._close_marker()
        if self._profiling:
            self._profiling = False
            tf.profiler.experimental.stop()

    @property
    def step_times_ms(self) -> list[float]:
        """The measured steps, each from the end of the step before to its own end."""
        ends = self._ends_s[self._plan.warmup - 1 : self._plan.measured_end]
        return [(end - before) * 1000 for before, end in itertools.pairwise(ends)]

    def phases_s(self) -> dict[str, float]:
        """Wall time of warm-up, measured and profiled steps."""
        plan = self._plan
        marks = [self.started_s, *(self._ends_s[end - 1] for end in (plan.warmup, plan.measured_end, plan.total))]
        return dict(zip(("warmup", "measure", "profile"), (b - a for a, b in itertools.pairwise(marks)), strict=True))

    def check_complete(self) -> None:
        """Raise TrialFailed unless every planned step ran and left exactly one profile that is not empty."""
        if len(self._ends_s) != self._plan.total:
            raise TrialFailed(f"ran {len(self._ends_s)} of {self._plan.total} steps: the pipeline ran out of data")
        files = list(self._logdir.glob("plugins/profile/*/*.xplane.pb"))
        if len(files) != 1 or files[0].stat().st_size == 0:
            raise TrialFailed(f"the profiler left {len(files)} profiles in {self._logdir}, not one with content")

    def _close_marker(self) -> None:
        if self._marker is not None:
            self._marker.__exit__(None, None, None)
            self._marker = None
