"""Arithmetic of time intervals, in whole picoseconds. Knows nothing of profiles.

`Spans` are sorted, disjoint (start, end) pairs: a plain list where they are few, `Intervals` (16 bytes a pair) where
they may be millions.
"""

import heapq
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

Spans = list[tuple[int, int]]


class Intervals:
    """A union of intervals that arrive in order of their starts."""

    def __init__(self) -> None:
        self.starts = array("q")
        self.ends = array("q")

    def add(self, start: int, end: int) -> None:
        """Joins with the last one where they touch. `start` must not lie before the last start."""
        ends = self.ends
        if ends and start <= ends[-1]:
            if end > ends[-1]:
                ends[-1] = end
        else:
            self.starts.append(start)
            ends.append(end)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self.starts, self.ends, strict=True)

    def __len__(self) -> int:
        return len(self.starts)

    def within(self, start: int, end: int) -> Spans:
        """What lies in [start, end], cut at its borders."""
        first = bisect_right(self.ends, start)
        last = bisect_left(self.starts, end)
        return [(max(self.starts[i], start), min(self.ends[i], end)) for i in range(first, last)]


def union(parts: Iterable[Iterable[tuple[int, int]]]) -> Intervals:
    """The union of sorted sequences."""
    merged = Intervals()
    for start, end in heapq.merge(*parts):
        merged.add(start, end)
    return merged


def intersection(spans: Iterable[tuple[int, int]], other: Intervals) -> Spans:
    return [part for start, end in spans for part in other.within(start, end)]


def difference(spans: Spans, cut: Spans) -> Spans:
    """What of `spans` is not in `cut`; both sorted and disjoint."""
    left: Spans = []
    index = 0
    for start, end in spans:
        while index < len(cut) and cut[index][1] <= start:
            index += 1
        at = index
        while at < len(cut) and cut[at][0] < end:
            if cut[at][0] > start:
                left.append((start, cut[at][0]))
            start = max(start, cut[at][1])
            at += 1
        if start < end:
            left.append((start, end))
    return left


def length(spans: Iterable[tuple[int, int]]) -> int:
    return sum(end - start for start, end in spans)


def coalesced(spans: Iterable[tuple[int, int]], gap: int) -> Spans:
    """Sorted spans with those nearer than `gap` joined."""
    joined: Spans = []
    for start, end in spans:
        if joined and start - joined[-1][1] < gap:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined
