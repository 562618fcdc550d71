"""One file over HTTP: resumed where it broke off, checked by size and digest, there whole or not at all.

<target>.part        the bytes so far
<target>.part.json   what the server called the version (ETag, Last-Modified) that they belong to
<target>             by rename, after the checks
"""

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import httpx
from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_exponential_jitter

from feedbench.errors import InputError
from feedbench.progress import BYTES, Progress, tracked
from feedbench.units import BYTES_PER_MB, mb

_WORTH_ANOTHER_TRY = frozenset({408, 425, 429, 500, 502, 503, 504})
_UNPACKED = {"Accept-Encoding": "identity"}
_VERSION_HEADERS = ("ETag", "Last-Modified")


@dataclass(frozen=True)
class Expected:
    """What is known of a file before it is there."""

    size: int | None = None
    digest: str | None = None
    """`sha256:<hex>` or `md5:<hex>`."""


@dataclass(frozen=True)
class Patience:
    """How long to wait for a server, and how often."""

    stall_s: float = 30
    """Without a single byte."""
    tries: int = 6
    """In a row without a byte more than before; a slow line that breaks off a hundred times still gets there."""
    first_wait_s: float = 1
    longest_wait_s: float = 30


class _Interrupted(Exception):
    """A try that failed in a way that another may not."""


def download(
    address: str,
    target: Path,
    progress: Progress,
    expected: Expected = Expected(),
    patience: Patience = Patience(),
) -> dict[str, str]:
    """Fetch `address` to `target`; returns the server's name of the version (ETag, Last-Modified), as far as given.

    Raises InputError naming address and cause; what has arrived is kept for the next call.
    """
    return _Download(address, target, progress, expected, patience).run()


def current_version(address: str, patience: Patience = Patience()) -> dict[str, str] | None:
    """What the server calls the version that it serves now; empty when it cannot be asked."""
    try:
        answer = httpx.head(address, headers=_UNPACKED, timeout=patience.stall_s, follow_redirects=True)
    except (httpx.HTTPError, httpx.InvalidURL):
        return {}
    return _version(answer) if answer.is_success else {}


def shown(address: str) -> str:
    """An address without what may be secret in it."""
    return str(httpx.URL(address).copy_with(username=None, password=None, query=None, fragment=None))


class _Download:
    def __init__(self, address: str, target: Path, progress: Progress, expected: Expected, patience: Patience) -> None:
        self.address, self.target, self.progress = address, target, progress
        self.expected, self.patience = expected, patience
        self.part = target.with_name(f"{target.name}.part")
        self.version_file = target.with_name(f"{target.name}.part.json")
        self.furthest = self._size()
        self.fruitless = 0

    def run(self) -> dict[str, str]:
        if not self.target.exists():
            self.target.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._retrying()(self._attempt)
            except _Interrupted as cause:
                kept = (
                    f"; the {mb(self._size() / BYTES_PER_MB)} so far are kept for the next try" if self._size() else ""
                )
                raise InputError(f"{shown(self.address)}: {cause} ({self.patience.tries} tries){kept}") from None
        return self._part_version()

    def _retrying(self) -> Retrying:
        wait = wait_exponential_jitter(self.patience.first_wait_s, self.patience.longest_wait_s, jitter=0.1)
        return Retrying(retry=retry_if_exception_type(_Interrupted), stop=self._is_hopeless, wait=wait, reraise=True)

    def _is_hopeless(self, _: RetryCallState) -> bool:
        """Too many tries in a row that got no further."""
        self.fruitless = 0 if self._size() > self.furthest else self.fruitless + 1
        self.furthest = max(self.furthest, self._size())
        return self.fruitless >= self.patience.tries

    def _attempt(self) -> None:
        if self._size() != self.expected.size:
            self._receive()
        self._check_digest()
        with self.part.open("rb") as file:
            os.fsync(file.fileno())
        self.part.replace(self.target)

    def _receive(self) -> None:
        have = self._resumable()
        headers = dict(_UNPACKED)
        if have:
            headers["Range"] = f"bytes={have}-"
            if condition := _if_range(self._part_version()):
                headers["If-Range"] = condition
        try:
            with (
                httpx.Client(timeout=self.patience.stall_s, follow_redirects=True) as client,
                client.stream("GET", self.address, headers=headers) as answer,
            ):
                self._write(answer, have)
        except httpx.TimeoutException:
            raise _Interrupted(f"nothing came for {self.patience.stall_s:g} s") from None
        except httpx.TransportError as error:
            raise _Interrupted(str(error) or type(error).__name__) from None
        except (httpx.InvalidURL, httpx.HTTPError) as error:
            raise InputError(f"{shown(self.address)}: {error}") from None

    def _write(self, answer: httpx.Response, have: int) -> None:
        start, total = self._accepted(answer, have)
        self._check_room(total, start)
        self.version_file.write_text(json.dumps(_version(answer)))
        with (
            self.part.open("r+b" if start else "wb") as file,
            tracked(self.progress, f"download {self.target.name}", total, BYTES, already=start) as advance,
        ):
            file.seek(start)
            for chunk in answer.iter_raw():
                file.write(chunk)
                file.flush()  # what has come survives a kill
                advance(len(chunk))
        if total is not None and self._size() != total:
            raise _Interrupted(f"broke off after {self._size():,} of {total:,} bytes")

    def _accepted(self, answer: httpx.Response, have: int) -> tuple[int, int | None]:
        """From which byte on the answer goes, and how many the whole file has."""
        if answer.status_code == 206:
            start, total = _content_range(answer)
            if start != have or not same_version(self._part_version(), _version(answer)):
                self._forget()
                raise _Interrupted("the server went on with another part or version than was asked for")
        elif answer.status_code == 200:
            start, total = 0, _whole(answer)
        elif answer.status_code == 416:
            self._forget()
            raise _Interrupted("the file on the server is shorter than what had arrived")
        elif answer.status_code in _WORTH_ANOTHER_TRY:
            raise _Interrupted(f"the server answers {answer.status_code} {answer.reason_phrase}")
        else:
            raise InputError(f"{shown(self.address)}: the server answers {answer.status_code} {answer.reason_phrase}")
        if None not in (total, self.expected.size) and total != self.expected.size:
            raise InputError(
                f"{shown(self.address)}: the server has {total:,} bytes, not the {self.expected.size:,} that are "
                "published; the file has changed, or a proxy answers in the server's place"
            )
        return start, total

    def _check_room(self, total: int | None, start: int) -> None:
        free = shutil.disk_usage(self.target.parent).free
        if total is not None and total - start > free:
            raise InputError(
                f"{self.target.parent}: {mb(free / BYTES_PER_MB)} free, "
                f"{mb((total - start) / BYTES_PER_MB)} needed for {self.target.name}"
            )

    def _check_digest(self) -> None:
        if self.expected.digest is None:
            return
        algorithm, _, wanted = self.expected.digest.partition(":")
        with self.part.open("rb") as file:
            found = hashlib.file_digest(file, algorithm).hexdigest()
        if found != wanted:
            self._forget()
            raise _Interrupted(f"{algorithm} is {found}, not {wanted} as published")

    def _resumable(self) -> int:
        """Bytes to go on from: none when nothing could tell that the rest belongs to them."""
        provable = self.expected.digest or _if_range(self._part_version())
        return self._size() if provable else 0

    def _size(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def _part_version(self) -> dict[str, str]:
        try:
            return json.loads(self.version_file.read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return {}

    def _forget(self) -> None:
        self.part.unlink(missing_ok=True)
        self.version_file.unlink(missing_ok=True)


def _version(answer: httpx.Response) -> dict[str, str]:
    return {name: answer.headers[name] for name in _VERSION_HEADERS if name in answer.headers}


def _if_range(version: dict[str, str]) -> str | None:
    """What If-Range may carry: a strong ETag, else the date (RFC 9110, 13.1.5)."""
    tag = version.get("ETag", "")
    return tag if tag.startswith('"') else version.get("Last-Modified")


def same_version(one: dict[str, str], other: dict[str, str]) -> bool:
    """As far as both say."""
    return all(one[name] == other[name] for name in one.keys() & other.keys())


def _content_range(answer: httpx.Response) -> tuple[int, int | None]:
    """`bytes 100-199/200` as (100, 200)."""
    unit, _, rest = answer.headers.get("Content-Range", "").partition(" ")
    span, _, total = rest.partition("/")
    start = span.partition("-")[0]
    if unit != "bytes" or not start.isdigit():
        raise _Interrupted("the server sent a part without saying which")
    return int(start), int(total) if total.isdigit() else None


def _whole(answer: httpx.Response) -> int | None:
    length = answer.headers.get("Content-Length", "")
    return int(length) if length.isdigit() else None
