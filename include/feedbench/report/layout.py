"""The pieces of a page. All text in them is final: renderers only place it."""

from dataclasses import dataclass
from typing import Literal

Tone = Literal["", "good", "warn", "bad", "muted"]


@dataclass(frozen=True)
class Cell:
    text: str
    detail: str = ""
    """A second line in small type."""
    tone: Tone = ""
    href: str = ""
    """Anchor in the same page, without the hash."""
    meter_percent: float | None = None
    """Drawn as a bar from 0 to 100 with the 90 % line marked."""


@dataclass(frozen=True)
class Column:
    title: str
    term: str = ""
    """Anchor of the glossary's entry, without the hash."""
    kind: Literal["words", "word", "number"] = "words"
    """How its cells are set: numbers to the right, a word never broken."""


@dataclass(frozen=True)
class Row:
    """The last cell spans the columns that are left over; `header` is the position of the row's header cell."""

    cells: tuple[Cell, ...]
    mark: str = ""
    """Stands before the header cell; what it means is said near the table."""
    tone: Tone = ""
    header: int = 0


@dataclass(frozen=True)
class Table:
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Fact:
    label: str
    value: str
    term: str = ""


@dataclass(frozen=True)
class FactList:
    title: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True)
class Chain:
    """Operators from the source to the last one; the odd ones carry a tone and say in `detail` what is wrong."""

    label: str
    links: tuple[Cell, ...]
    verdict: Cell | None = None
