"""The report's two files: one HTML page that needs neither network nor script, and the same in Markdown."""

import re
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from feedbench.records import Comparison, Run
from feedbench.report.charts import draw
from feedbench.report.view import build_view


@dataclass(frozen=True)
class Report:
    html: str
    markdown: str


def render(comparison: Comparison, run: Run) -> Report:
    """report.html and report.md of a comparison."""
    view = build_view(comparison, run)
    drawings = {picture.anchor: Markup(draw(picture)) for picture in view.pictures}
    html = _environment().get_template("report.html.j2").render(view=view, drawings=drawings)
    # The Markdown template escapes by finalising every value; what is already Markup is left alone.
    markdown = _environment(finalize=_markdown).get_template("report.md.j2").render(view=view)
    return Report(html, re.sub(r"\n{3,}", "\n\n", markdown))


def _environment(**options: Any) -> Environment:
    environment = Environment(
        loader=PackageLoader("feedbench.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **options,
    )
    environment.filters["breakable"] = _breakable
    return environment


def _breakable(name: str) -> Markup:
    """A name that does not fit on a line is broken after an underscore, not within a word."""
    return escape(name).replace("_", Markup("_<wbr>"))


_SPECIAL = re.compile(r"[\\`*<|~#]|^>|^[-+](?= )|^\[(?=[ xX]\])|\](?=[(\[:])|&(?=#?\w+;)|(?<!\w)_+|_+(?!\w)|!(?=\[)")
"""Characters that mean something in Markdown where they stand: a bracket is one of a link only before another, and
intervals are full of them."""
_ENTITIES = {"<": "&lt;", "&": "&amp;"}


def _markdown(value: object) -> object:
    """Text as Markdown that reads as just that text: on one line, with nothing that is mark-up or HTML.

    Underscores inside a word (`parallel_map`) mean nothing in Markdown and stay legible.
    """
    if isinstance(value, Markup | int):
        return value
    line = " ".join(str(value).split())
    return Markup(_SPECIAL.sub(lambda match: "".join(_ENTITIES.get(sign, f"\\{sign}") for sign in match[0]), line))
