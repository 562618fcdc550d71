"""What the command line prints at the end of a run: verdict, variants, and where the report is."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from feedbench.report.view import View

_COLUMNS = ("step time, ms", "speed-up", "input wait", "AU", "memory", "verdict")
_STYLES = {"good": "green", "warn": "yellow", "bad": "red", "muted": "dim", "": ""}


def summary_table(view: View, report_path: str) -> RenderableType:
    """A rich renderable; all text is `Text`, so that no name is read as console mark-up."""
    titles = [column.title for column in view.variants.columns]
    table = Table("", "variant", box=None, pad_edge=False)
    for title in _COLUMNS:
        table.add_column(title, justify="left" if title == "verdict" else "right")
    failures = []
    for row in view.variants.rows:
        cells = dict(zip(titles, row.cells, strict=False))
        name = cells["variant"].text
        if len(row.cells) < len(titles):
            failures.append(Text(f"{name} {row.cells[-1].text}", style="red"))
            continue
        shown = [Text(cells[title].text, style=_STYLES[cells[title].tone]) for title in _COLUMNS]
        table.add_row(Text(row.mark, style="green"), Text(name), *shown)
    parts = (table if table.row_count else None, *failures, Text(view.fastest_note, style="dim"))
    body = [part for part in parts if part is not None]
    return Group(Text(view.verdict, style="bold"), Text(""), *body, Text(""), Text(f"Report: {report_path}"))
