"""The picture of overlap: what runs when, on one axis."""

import pytest

from feedbench.trace.profile import read_profile

ROOT = "Iterator::Root"


def overlap(spans, others) -> float:
    return sum(max(0.0, min(a.end_ms, b.end_ms) - max(a.start_ms, b.start_ms)) for a in spans for b in others)


def naive(drawing, steps, count: int = 10) -> None:
    """10 ms of map at the start of each step of 30, all of it waited for; its function on a pool thread."""
    calls, work = [], []
    for number in range(count):
        at = number * 30
        calls += [(f"{ROOT}::BatchV2", at, at + 10), (f"{ROOT}::BatchV2::Map", at, at + 9)]
        calls.append(("InstantiatedCapturedFunction::Run", at, at + 9, {"id": number + 50}))
        work.append(("ExecutorState::Process", at, at + 9, {"id": number + 50}))
        work += [("ReadFile:ReadFile", at, at + 3), ("DecodeJpeg:DecodeJpeg", at + 3, at + 9)]
    drawing.thread("python", [*steps(count, 30, 10), *calls])
    drawing.thread("tf_data_private_threadpool/1", work)


def test_naive_alternates(drawing, steps, tmp_path) -> None:
    """All input work lies in the waits."""
    naive(drawing, steps)
    timeline = read_profile(drawing.save(tmp_path / "a.xplane.pb")).timeline
    work = timeline.lanes["read, decode"]
    waits = [step.wait for step in timeline.steps]
    assert sum(span.end_ms - span.start_ms for span in work) == pytest.approx(8 * 9)
    assert overlap(work, waits) == pytest.approx(8 * 9)


def test_prefetch_overlaps(drawing, steps, tmp_path) -> None:
    """The producer works behind the model: all input work but what is waited for lies outside the waits."""
    calls = [(f"{ROOT}::Prefetch", number * 30, number * 30 + 1) for number in range(10)]
    drawing.thread("python", [*steps(10, 30, 1), *calls])
    work = [(f"{ROOT}::Prefetch::Generator", number * 30 + 5, number * 30 + 25) for number in range(10)]
    drawing.thread("producer", work)
    timeline = read_profile(drawing.save(tmp_path / "a.xplane.pb")).timeline
    (lane,) = timeline.lanes.values()
    assert overlap(lane, [step.wait for step in timeline.steps]) == 0
    assert sum(span.end_ms - span.start_ms for span in lane) == pytest.approx(8 * 20)


def test_the_steps_shown_are_consecutive_and_usual(drawing, tmp_path) -> None:
    """Twelve steps of which the first four wait 9 ms, the others 1: eight with a mean near 3.67 start at the second or
    third (4.0 or 3.0)."""
    events = []
    for number in range(12):
        at = number * 20
        events.append(("train", at, at + 20, {"step_num": number, "_r": 1}))
        events.append(("IteratorGetNextOp::DoCompute", at, at + (9 if number < 4 else 1)))
    drawing.thread("python", events)
    timeline = read_profile(drawing.save(tmp_path / "a.xplane.pb")).timeline
    assert [step.number for step in timeline.steps] == list(range(1, 9))
    assert timeline.steps[0].start_ms == 0


def test_spans_nearer_than_a_pixel_are_joined(drawing, steps, tmp_path) -> None:
    """10,000 calls of 10 us, 1 us apart, on an axis of 120 ms: one bar, not 10,000."""
    calls = [(f"{ROOT}::Generator", number * 0.011, number * 0.011 + 0.010) for number in range(10_000)]
    drawing.thread("python", [*steps(1, 120, 115), *calls])
    (lane,) = read_profile(drawing.save(tmp_path / "a.xplane.pb")).timeline.lanes.values()
    assert len(lane) == 1


def test_no_steps_no_timeline(drawing, tmp_path) -> None:
    drawing.thread("python", [(f"{ROOT}::Generator", 0, 1)])
    assert read_profile(drawing.save(tmp_path / "a.xplane.pb")).timeline is None
