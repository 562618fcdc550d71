"""How long work tells a person that it goes on: a bar with ETA on a terminal, plain lines elsewhere, both on stderr.

with tracked(progress, "index", len(files), "photos") as advance:
    for file in files: ...; advance(1)
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as RichProgress

from feedbench.units import BYTES_PER_MB, mb, rate, seconds

BYTES = "B"
"""The unit of downloads and archives; written as MB."""
_LINE_EVERY_S = 5.0


class Progress(Protocol):
    """One piece of work at a time. `total` is None where it cannot be known; a new start ends the one before."""

    def start(self, what: str, total: int | None, unit: str, already: int = 0) -> None:
        """`already` of the total is done before the clock starts, as in a resumed download."""

    def advance(self, n: int = 1) -> None: ...

    def note(self, text: str) -> None:
        """A line of its own, between or amid pieces of work."""

    def done(self) -> None:
        """The work has ended, well or not. May be called twice."""


class Silent:
    """Says nothing."""

    def start(self, what: str, total: int | None, unit: str, already: int = 0) -> None:
        pass

    def advance(self, n: int = 1) -> None:
        pass

    def note(self, text: str) -> None:
        pass

    def done(self) -> None:
        pass


class _Work:
    """What is being done, how far it is, and the words for it."""

    def __init__(self, what: str, total: int | None, unit: str, already: int, now: float) -> None:
        self.what, self.total, self.unit = what, total, unit
        self.count = already
        self.started_s = now
        self._first: tuple[int, float] | None = None
        """Count and time at the first advance. Rate and time left are of what came after: a first training step
        compiles the model, and says nothing about the others."""

    def advance(self, n: int, now: float) -> None:
        self.count += n
        self._first = self._first or (self.count, now)

    def state(self, now: float) -> str:
        """`1,200 of 3,670 photos, 1,530 photos/s, 2 s left`, as much of it as is known."""
        parts = [self._amount()]
        count, since_s = self._first or (self.count, now)
        fresh, elapsed_s = self.count - count, now - since_s
        if fresh and elapsed_s > 0:
            parts.append(self._speed(fresh / elapsed_s))
            if self.total is not None and self.count < self.total:
                parts.append(f"{seconds((self.total - self.count) * elapsed_s / fresh)} left")
        return ", ".join(parts)

    def summary(self, now: float) -> str:
        return f"{self._amount()} in {seconds(now - self.started_s)}"

    def _amount(self) -> str:
        if self.unit == BYTES:
            of = "" if self.total is None else f" of {mb(self.total / BYTES_PER_MB)}"
            return f"{mb(self.count / BYTES_PER_MB)}{of}"
        of = "" if self.total is None else f" of {self.total:,}"
        return f"{self.count:,}{of} {self.unit}"

    def _speed(self, per_s: float) -> str:
        if self.unit == BYTES:
            return f"{mb(per_s / BYTES_PER_MB)}/s"
        if per_s < 1:
            return f"{1 / per_s:.1f} s each"
        return f"{rate(per_s) if per_s >= 10 else f'{per_s:.1f}'} {self.unit}/s"


class Lines:
    """A line at the start, one at most every few seconds, one at the end."""

    def __init__(
        self,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        every_s: float = _LINE_EVERY_S,
    ) -> None:
        self._stream, self._clock, self._every_s = stream or sys.stderr, clock, every_s
        self._work: _Work | None = None
        self._said_s = 0.0

    def start(self, what: str, total: int | None, unit: str, already: int = 0) -> None:
        self.done()
        self._work = _Work(what, total, unit, already, self._clock())
        self._say(self._work.state(self._clock()))

    def advance(self, n: int = 1) -> None:
        if self._work is None:
            return
        self._work.advance(n, self._clock())
        if self._clock() - self._said_s >= self._every_s:
            self._say(self._work.state(self._clock()))

    def note(self, text: str) -> None:
        print(text, file=self._stream, flush=True)

    def done(self) -> None:
        if self._work is not None:
            self._say(self._work.summary(self._clock()))
            self._work = None

    def _say(self, words: str) -> None:
        self._said_s = self._clock()
        print(f"{self._work.what}: {words}", file=self._stream, flush=True)


class Bar:
    """A bar that fills, with rate and ETA; what is finished stays on the screen as one line."""

    def __init__(self, console: Console | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._console, self._clock = console or Console(stderr=True), clock
        self._work: _Work | None = None
        self._bar: RichProgress | None = None

    def start(self, what: str, total: int | None, unit: str, already: int = 0) -> None:
        self.done()
        self._work = _Work(what, total, unit, already, self._clock())
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.fields[state]}"))
        self._bar = RichProgress(*columns, console=self._console, transient=True)
        self._task = self._bar.add_task(what, total=total, completed=already, state=self._work.state(self._clock()))
        self._bar.start()

    def advance(self, n: int = 1) -> None:
        if self._work is None:
            return
        self._work.advance(n, self._clock())
        self._bar.update(self._task, advance=n, state=self._work.state(self._clock()))

    def note(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False)

    def done(self) -> None:
        if self._work is not None:
            self._bar.stop()
            self.note(f"{self._work.what}: {self._work.summary(self._clock())}")
            self._work = None


def progress_for(stream: TextIO | None = None) -> Progress:
    """A bar where `stream` (stderr) is a terminal, plain lines elsewhere."""
    stream = stream or sys.stderr
    return Bar(Console(file=stream)) if stream.isatty() else Lines(stream)


@contextmanager
def tracked(
    progress: Progress, what: str, total: int | None, unit: str, already: int = 0
) -> Iterator[Callable[[int], None]]:
    """`progress.advance` for one piece of work, which is ended even where it fails."""
    progress.start(what, total, unit, already)
    try:
        yield progress.advance
    finally:
        progress.done()
