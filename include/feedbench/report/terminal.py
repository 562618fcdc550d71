"""What the command line prints at the end of a run: verdict, variants, failures."""

import sys

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from feedbench.records import Comparison
from feedbench.report import layout, wording
from feedbench.report.tables import variants_table
from feedbench.report.view import fastest_note, ordered

_TITLES = ("step time, ms", "speed-up", "input wait", "AU", "memory", "verdict")
_STYLES = {"good": "green", "warn": "yellow", "bad": "red", "muted": "dim", "": ""}
_WIDTH_OF_A_LOG = 120


def summary(comparison: Comparison, console: Console | None = None) -> str:
    """The comparison as lines for `console` (default: standard output), coloured where that is a terminal."""
    console = console or Console(width=None if sys.stdout.isatty() else _WIDTH_OF_A_LOG)
    comparison = wording.visible(comparison)
    table = variants_table(comparison, ordered(comparison), anchors={})
    measured, failures = _lines(table)
    # Text, not str, everywhere: no name is read as console mark-up.
    parts = [Text(comparison.verdict, style="bold"), Text(""), *([measured] if measured.row_count else []), *failures]
    with console.capture() as captured:
        console.print(Group(*parts, Text(fastest_note(comparison), style="dim")))
    return captured.get().rstrip()


def _lines(variants: layout.Table) -> tuple[Table, list[Text]]:
    """A table of what was measured, and one line for each variant that was not."""
    titles = [column.title for column in variants.columns]
    measured = Table("", "variant", box=None, pad_edge=False)
    for title in _TITLES:
        measured.add_column(title, justify="left" if title == "verdict" else "right")
    failures = []
    for row in variants.rows:
        cells = dict(zip(titles, row.cells, strict=False))
        name = cells["variant"].text
        if len(row.cells) < len(titles):
            failures.append(Text(f"{name} {row.cells[-1].text}", style="red"))
            continue
        shown = [Text(cells[title].text, style=_STYLES[cells[title].tone]) for title in _TITLES]
        measured.add_row(Text(row.mark, style="green"), Text(name), *shown)
    return measured, failures
