"""Training steps and the time in them that the loop waits for the next batch.

A step is a `Trace(name, step_num=n, _r=1)` marker on a host thread; in captures of older TensorFlow versions, which
carry no step number, it is an event of a device's `Steps` line. The wait is the op that asks tf.data for the next
element (`IteratorGetNextOp::DoCompute`), clipped to its step.
"""

import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from feedbench.trace.intervals import Spans, length, union

WAIT = re.compile(r"(MultiDevice)?Iterator\w*GetNext\w*::DoCompute")
STEPS_LINE = "Steps"


@dataclass
class Markers:
    """Step markers as they are found: (start, end, number) by the marker's name."""

    recognised: dict[str, list[tuple[int, int, int | None]]] = field(default_factory=dict)
    """With `_r=1`, as XProf wants them."""
    unrecognised: dict[str, list[tuple[int, int, int | None]]] = field(default_factory=dict)
    """With a step number only, as Keras 3's TensorBoard callback writes them."""
    device: dict[str, tuple[int, int, int | None]] = field(default_factory=dict)
    """By the step's name on the device."""


@dataclass(frozen=True)
class Step:
    """A step in ps, with the parts of it that were waits for input (None where no wait op was recorded)."""

    number: int | None
    start: int
    end: int
    waits: Spans | None

    @property
    def duration(self) -> int:
        return self.end - self.start

    @property
    def waited(self) -> int | None:
        return None if self.waits is None else length(self.waits)


def find_steps(markers: Markers, waits: Sequence[Sequence[tuple[int, int]]]) -> tuple[list[Step], list[str]]:
    """Steps in order, with notes on where they come from. `waits` are the wait ops of each thread, sorted."""
    found, notes = _choose(markers)
    waited = union(waits)
    # A marker inside another (a step within a traced epoch) would count its time twice: the outer one stays.
    outer: list[tuple[int, int, int | None]] = []
    for start, end, number in sorted(found, key=lambda step: (step[0], -step[1])):
        if end > start and (not outer or start >= outer[-1][1]):
            outer.append((start, end, number))
    steps = [Step(number, start, end, waited.within(start, end)) for start, end, number in outer]
    if any(step.waits for step in steps):
        return steps, notes
    # Not one wait in any step: the pipeline was not asked, or, where steps are a device's, it was asked ahead of time.
    return [replace(step, waits=None) for step in steps], notes


def _choose(markers: Markers) -> tuple[list[tuple[int, int, int | None]], list[str]]:
    if markers.recognised:
        name = _longest(markers.recognised)
        return markers.recognised[name], []
    if markers.device:
        return list(markers.device.values()), [
            "Steps are those of the device's Steps line: the capture has no numbered markers."
        ]
    if markers.unrecognised:
        name = _longest(markers.unrecognised)
        note = f"The step markers ({name!r}) lack _r=1: XProf shows no step time for them; here they are used."
        return markers.unrecognised[name], [note]
    return [], ["No step markers: step time and input wait cannot be told. Wrap each step in Trace(..., _r=1)."]


def _longest(by_name: dict[str, list[tuple[int, int, int | None]]]) -> str:
    return max(by_name, key=lambda name: sum(end - start for start, end, _ in by_name[name]))


def percentile(values: Sequence[float], share: float) -> float:
    """Linear interpolation between the nearest two (numpy's default)."""
    if len(values) == 1:
        return values[0]
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    return cuts[round(share * 100) - 1]
