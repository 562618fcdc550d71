"""Twenty nights: twelve of 50 ms, then eight of 60 ms."""

import pytest

from feedbench.report.nights import night_by_night

DATES = [f"2026-03-{day:02d}" for day in range(1, 21)]
STEP_MS = [50.0] * 12 + [60.0] * 8


def drawn(starts):
    return night_by_night(DATES, STEP_MS, STEP_MS, STEP_MS, starts, [])


def test_each_level_has_its_nights_their_median_and_how_it_differs_from_the_one_before():
    first, second = drawn([12]).levels
    assert (first.first, first.last, first.median_ms, first.label) == (0, 11, 50, "50.0 ms")
    assert (second.first, second.last, second.median_ms, second.label) == (12, 19, 60, "+20 %: 60.0 ms")


@pytest.mark.parametrize(
    ("starts", "words"),
    [
        ([12], "20 nights, at first 50.0 ms; from 2026-03-13 +20 %: 60.0 ms."),
        ([], "20 nights, at first 50.0 ms; one level throughout."),
    ],
)
def test_the_same_in_words(starts, words):
    assert drawn(starts).in_words() == words
