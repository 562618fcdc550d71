"""For which tf.data stage did a step stand still?

While a step waits, the deepest operator that is at work, and whose callers up to the step are all at work, is the one
that it stands still for. So the blocking times of all stages add up to the wait, but for tf.data's own overhead and
for what was under way before the capture began. Three refinements:

- Behind a Prefetch or a parallel operator the callers run on another thread, on their own account; they count only
  while the one above them waits.
- A parallel map works through its function, on pool threads, while its runner fetches the next input. Which of the
  two holds it up is told by which is nearer to its capacity during the wait: the share of its slots that are busy
  (work / (wait x slots), slots = parallelism, or cores where fewer) against the share of time the input is at work.
- A shuffle buffer that fills asks for many elements to deliver one. What is below is then at work, but the fill is
  why the step waits. Over the whole window the elements asked for in excess of those delivered are counted, and that
  share of the blocking below, within such bursts, is the Shuffle's. A buffer that drains and fills again within the
  window (a pass ends) has no excess: there it is the operators below that cost.
"""

import statistics
from collections.abc import Sequence

from feedbench.records import Blocking
from feedbench.trace.intervals import Intervals, Spans, difference, intersection, length
from feedbench.trace.stages import PREFETCH, Node
from feedbench.trace.steps import Step, percentile
from feedbench.units import PS_PER_MS

NOTEWORTHY_WAIT = 0.01
"""Below this share of the step time no stage is called slow."""


def blocking(root: Node, steps: Sequence[Step], cores: int | None) -> dict[Node, Blocking]:
    """Blocking time a step of every stage below `root`; empty where no step has a known wait."""
    waited = [step for step in steps if step.waits is not None]
    if not waited:
        return {}
    charges = []
    for step in waited:
        charge: dict[Node, float] = {}
        _charge(root, step.waits or [], 1.0, cores or 1, charge)
        charges.append(charge)
    return {node: _summary([charge.get(node, 0.0) / PS_PER_MS for charge in charges]) for node in root.walk()}


def slowest(blocked: dict[Node, Blocking], below: Node, wait_ms: float | None, step_ms: float | None) -> Node | None:
    """The stage with the largest mean blocking time, where the wait is worth a word."""
    if not blocked or not wait_ms or not step_ms or wait_ms < NOTEWORTHY_WAIT * step_ms:
        return None
    return max(below.walk(), key=lambda node: blocked[node].mean)


def _charge(node: Node, spans: Spans, weight: float, cores: int, charge: dict[Node, float]) -> None:
    """Hands the waits `spans`, in which `node` and its callers are at work, to the stages below and to itself."""
    left = spans
    if not _own_work_is_the_limit(node, spans, cores):
        bursts, share = _fill(node)
        for child in sorted(node.children.values(), key=lambda child: -child.total_ps):
            part = intersection(left, child.active)
            if not part:
                continue
            left = difference(left, part)
            in_burst = intersection(part, bursts)
            if in_burst:
                part = difference(part, in_burst)
                charge[node] = charge.get(node, 0.0) + weight * share * length(in_burst)
                _charge(child, in_burst, weight * (1 - share), cores, charge)
            _charge(child, part, weight, cores, charge)
    if node.operator == PREFETCH:
        left = node.after_start_below(left)
    charge[node] = charge.get(node, 0.0) + weight * length(left)


def _own_work_is_the_limit(node: Node, spans: Spans, cores: int) -> bool:
    waited = length(spans)
    if not node.lets_others_work or not node.work or not waited:
        return False
    worked = sum(length(intersection(spans, thread)) for thread in node.work)
    below = max((length(intersection(spans, child.active)) for child in node.children.values()), default=0)
    return worked / _slots(node, cores) >= below


def _slots(node: Node, cores: int) -> int:
    parallelism = node.stats.get("parallelism")
    return max(1, min(parallelism, cores) if isinstance(parallelism, int) else cores)


def _fill(node: Node) -> tuple[Intervals, float]:
    """When a shuffle buffer filled, and which share of the calls below was for that."""
    bursts = Intervals()
    if not node.operator.startswith("Shuffle") or not node.bursts:
        return bursts, 0.0
    for start, end in sorted(node.bursts):
        bursts.add(start, end)
    asked = sum(child.count for child in node.children.values())
    return bursts, max(0.0, min(1.0, (asked - node.count) / node.burst_calls))


def _summary(values_ms: Sequence[float]) -> Blocking:
    return Blocking(
        mean=statistics.fmean(values_ms), median=statistics.median(values_ms), p95=percentile(values_ms, 0.95)
    )
