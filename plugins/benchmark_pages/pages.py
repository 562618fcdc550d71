"""Drawing: templates in, HTML out. Every value is escaped; the look is the report's own."""

from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PackageLoader, StrictUndefined

from feedbench.units import BYTES_PER_MB, count, mb

NAVIGATION = (("Runs", "/runs"), ("Trends", "/trends"))
"""Title and address below the plugin's prefix of each page that stands by itself; a further page is one entry more."""

_environment = Environment(
    loader=ChoiceLoader([FileSystemLoader(Path(__file__).parent / "templates"), PackageLoader("feedbench.report")]),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,  # a page belongs to the code that was loaded with it
)
_environment.filters["count"] = count
_environment.filters["size"] = lambda count: f"{count:,} bytes" if count < 10_000 else mb(count / BYTES_PER_MB)


def page(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    return HTMLResponse(_draw(request, template, **values), status)


def report_page(request: Request, run_id: str, html: bytes) -> HTMLResponse:
    """The report as it is in its file, with a line of links above it."""
    links = _draw(request, "report_links.html.j2", run_id=run_id).encode()
    return HTMLResponse(html.replace(b"<body>", b"<body>\n" + links, 1))


def notice(request: Request, status: int, title: str, text: str, **values: Any) -> HTMLResponse:
    """A page that says one thing."""
    defaults = {"sign_in": None, "refresh_s": None}
    return page(request, "notice.html.j2", status, title=title, text=text, **(defaults | values))


def _draw(request: Request, template: str, **values: Any) -> str:
    base = request.scope.get("root_path", "")
    return _environment.get_template(template).render(base=base, navigation=NAVIGATION, **values)
