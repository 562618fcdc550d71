"""What every answer of the pages tells the browser, errors included."""

from collections.abc import Callable
from typing import Any

from starlette.datastructures import MutableHeaders

SAFE = {
    # No script, no network, no form; pictures and styles that stand in the page; framed by Airflow's own UI only.
    "content-security-policy": (
        "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; "
        "form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
    ),
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class SafeHeaders:
    """An ASGI app with SAFE on all its answers. Around the whole app: a middleware would miss its own failures."""

    def __init__(self, app: Callable) -> None:
        self.app = app

    async def __call__(self, scope: dict[str, Any], receive: Callable, send: Callable) -> None:
        async def send_safely(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(SAFE)
            await send(message)

        await self.app(scope, receive, send_safely)
