"""Photos made on the spot, folders of them, and an HTTP server that behaves as badly as it is told to."""

import io
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from feedbench.progress import Silent
from feedbench.store import Store


def photo(seed: int = 0, size: tuple[int, int] = (32, 24), kind: str = "JPEG", mode: str = "RGB", **options) -> bytes:
    """A small picture of noise, different for each seed."""
    pixels = np.random.default_rng(seed).integers(0, 255, (size[1], size[0], 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(out, kind, **options)
    return out.getvalue()


@pytest.fixture
def make_photo() -> Callable[..., bytes]:
    return photo


@pytest.fixture
def make_folder(tmp_path) -> Callable[..., Path]:
    """`make_folder(a=10, b=10)`: a folder with two classes of ten photos."""

    def make(name: str = "photos", **classes: int) -> Path:
        root = tmp_path / name
        for number, (label, count) in enumerate(classes.items()):
            (root / label).mkdir(parents=True)
            for each in range(count):
                (root / label / f"{each:03d}.jpg").write_bytes(photo(1000 * number + each))
        return root

    return make


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "artifacts")


@pytest.fixture
def silent() -> Silent:
    return Silent()


class Site:
    """A server of one file at /flowers.tgz. `misbehave` holds one word for each coming request, in order."""

    def __init__(self) -> None:
        self.content = b""
        self.tag: str | None = '"v1"'
        self.piece_bytes, self.pause_s = 64 * 1024, 0.0
        self.misbehave: list[str] = []
        self.ranges: list[str | None] = []
        self.released = threading.Event()
        handler = type("Handler", (_Handler,), {"site": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/flowers.tgz"

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    site: Site

    def do_HEAD(self) -> None:
        self._head(200, len(self.site.content))

    def do_GET(self) -> None:
        site = self.site
        site.ranges.append(self.headers.get("Range"))
        word = site.misbehave.pop(0) if site.misbehave else "behave"
        if word.isdigit():
            self.send_error(int(word))
            return
        content, start, status = site.content, 0, 200
        asked, condition = self.headers.get("Range"), self.headers.get("If-Range")
        if asked and word != "ignore range" and condition in (None, site.tag):
            start, status = int(asked.removeprefix("bytes=").removesuffix("-")), 206
        if start > len(content):
            self.send_error(416)
            return
        if word == "wrong part":
            start += 1
        self._head(status, len(content), start, claimed=1000 if word == "claim more" else 0)
        self._body(content[start:], word)

    def _head(self, status: int, total: int, start: int = 0, claimed: int = 0) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(total - start + claimed))
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{total - 1}/{total}")
        if self.site.tag:
            self.send_header("ETag", self.site.tag)
        self.end_headers()

    def _body(self, body: bytes, word: str) -> None:
        if word in ("truncate", "stall"):
            body = body[: max(1, len(body) // 2)]
        try:
            for at in range(0, len(body), self.site.piece_bytes):
                self.wfile.write(body[at : at + self.site.piece_bytes])
                if self.site.pause_s:
                    time.sleep(self.site.pause_s)
            if word == "stall":
                self.wfile.flush()
                self.site.released.wait(20)
        except OSError:  # the client has gone, or was killed
            pass

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site() -> Site:
    site = Site()
    yield site
    site.close()
