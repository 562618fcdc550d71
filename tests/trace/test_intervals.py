"""Interval arithmetic, against the same on sets of whole numbers."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from feedbench.trace.intervals import Intervals, coalesced, difference, intersection, length, union

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)).map(lambda p: (p[0], p[0] + p[1])), max_size=12).map(
    sorted
)


def points(spans) -> set[int]:
    return {point for start, end in spans for point in range(start, end)}


def disjoint(spans) -> list[tuple[int, int]]:
    return [span for span in union([spans]) if span[1] > span[0]]


@given(SPANS, SPANS)
def test_union_covers_what_either_covers(a, b) -> None:
    merged = list(union([a, b]))
    assert points(merged) == points(a) | points(b)
    assert all(left[1] < right[0] for left, right in pairwise(merged))


@given(SPANS, SPANS)
def test_intersection_and_difference_part_the_first(a, b) -> None:
    a, b = disjoint(a), disjoint(b)
    common = intersection(a, union([b]))
    rest = difference(a, b)
    assert points(common) == points(a) & points(b)
    assert points(rest) == points(a) - points(b)
    assert length(common) + length(rest) == length(a)


@given(SPANS, st.integers(0, 60), st.integers(0, 60))
def test_within_cuts_at_the_borders(a, start, width) -> None:
    assert points(union([a]).within(start, start + width)) == points(a) & set(range(start, start + width))


@given(SPANS, st.integers(1, 9))
def test_coalesced_spans_lie_at_least_the_gap_apart(a, gap) -> None:
    joined = coalesced(disjoint(a), gap)
    assert points(a) <= points(joined)
    assert all(right[0] - left[1] >= gap for left, right in pairwise(joined))


def test_touching_intervals_become_one() -> None:
    intervals = Intervals()
    for span in ((0, 5), (5, 7), (6, 7), (9, 10)):
        intervals.add(*span)
    assert list(intervals) == [(0, 7), (9, 10)]
