"""What a person sees of work that takes long."""

import io
from contextlib import suppress

import pytest
from rich.console import Console

from feedbench.progress import BYTES, Bar, Lines, progress_for, tracked


class Clock:
    """A clock that stands still until it is told to go."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def screen():
    return io.StringIO()


def test_a_line_tells_amount_rate_and_time_left(clock, screen):
    """900 photos in the 9 s since the first 100 are 100 a second; 2,000 more take 20 s."""
    lines = Lines(screen, clock)
    lines.start("index", 3000, "photos")
    clock.now_s += 1
    lines.advance(100)
    clock.now_s += 9
    lines.advance(900)
    assert screen.getvalue().splitlines()[-1] == "index: 1,000 of 3,000 photos, 100 photos/s, 20 s left"


def test_a_first_step_that_compiles_the_model_says_nothing_about_the_others(clock, screen):
    """The first takes 60 s, so for a minute nothing is known; then 10 in 5 s are 2 a second, and 39 are left."""
    lines = Lines(screen, clock, every_s=0)
    lines.start("training", 50, "steps")
    clock.now_s += 60
    lines.advance(1)
    assert screen.getvalue().splitlines()[-1] == "training: 1 of 50 steps"
    clock.now_s += 5
    lines.advance(10)
    assert screen.getvalue().splitlines()[-1] == "training: 11 of 50 steps, 2.0 steps/s, 20 s left"


def test_slow_work_is_told_in_seconds_for_each(clock, screen):
    """A step of 7.7 s is no 0.1 steps a second."""
    lines = Lines(screen, clock, every_s=0)
    lines.start("training", 10, "steps")
    lines.advance(1)
    clock.now_s += 7.7
    lines.advance(1)
    assert screen.getvalue().splitlines()[-1] == "training: 2 of 10 steps, 7.7 s each, 1 min 02 s left"


def test_the_rate_of_a_resumed_download_does_not_count_what_was_there_before(clock, screen):
    """100 of 200 MB were there, and 10 come at once; 40 more in 8 s are 5 MB/s, not 18."""
    lines = Lines(screen, clock)
    lines.start("download", 200_000_000, BYTES, already=100_000_000)
    lines.advance(10_000_000)
    clock.now_s += 8
    lines.advance(40_000_000)
    assert screen.getvalue().splitlines()[-1] == "download: 150 MB of 200 MB, 5.00 MB/s, 10 s left"


def test_lines_are_no_flood(clock, screen):
    """40 photos in 10 s: the first line, one each 5 s, and the last."""
    lines = Lines(screen, clock, every_s=5)
    with tracked(lines, "index", 40, "photos") as advance:
        for _ in range(40):
            clock.now_s += 0.25
            advance(1)
    assert len(screen.getvalue().splitlines()) == 4
    assert screen.getvalue().splitlines()[-1] == "index: 40 of 40 photos in 10 s"


def test_an_unknown_total_promises_no_end(clock, screen):
    lines = Lines(screen, clock, every_s=0)
    lines.start("unpack", None, "files")
    lines.advance(1)
    clock.now_s += 2
    lines.advance(5)
    assert screen.getvalue().splitlines()[-1] == "unpack: 6 files, 2.5 files/s"


def test_work_that_fails_is_ended_all_the_same(clock, screen):
    lines = Lines(screen, clock)
    with suppress(OSError), tracked(lines, "index", 10, "photos") as advance:
        advance(3)
        raise OSError
    assert screen.getvalue().splitlines()[-1] == "index: 3 of 10 photos in 0 s"
    lines.advance(1)  # and later calls are harmless
    lines.done()


def test_the_bar_leaves_one_line_behind_and_takes_names_as_they_are(clock, screen):
    bar = Bar(Console(file=screen, force_terminal=True, width=120), clock)
    bar.start("download [red]flowers.tgz", 2_000_000, BYTES)
    clock.now_s += 4
    bar.advance(2_000_000)
    bar.note("trial [1] of 2")
    bar.done()
    assert "trial [1] of 2" in screen.getvalue()
    assert "download [red]flowers.tgz: 2.00 MB of 2.00 MB in 4 s" in screen.getvalue()


def test_a_pipe_gets_lines_and_a_terminal_a_bar(screen):
    assert isinstance(progress_for(screen), Lines)
    screen.isatty = lambda: True
    assert isinstance(progress_for(screen), Bar)
