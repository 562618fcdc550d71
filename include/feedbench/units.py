"""The units that cross module borders, and how each is written for a person.

Names carry their unit (`_ms`, `_s`, `_mb`, `_share`); a megabyte is 10**6 bytes.
What was not measured is None and is written as a dash, never as a number.
"""

import re

DASH = "–"
_INVISIBLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
PS_PER_MS = 1_000_000_000
BYTES_PER_MB = 1_000_000


def ms(value: float | None) -> str:
    """Milliseconds with three significant digits, at most one decimal below 1000: `0.42`, `19.9`, `351`."""
    return DASH if value is None else _significant(value)


def share(value: float | None) -> str:
    """A share of one as per cent: `31 %`, and one decimal below ten: `4.8 %`."""
    if value is None:
        return DASH
    percent = value * 100
    return f"{percent:.1f} %" if abs(percent) < 9.95 else f"{percent:.0f} %"


def signed_share(value: float) -> str:
    """A relative difference with its sign: `+18 %`, `−4.8 %`."""
    return f"{'−' if value < 0 else '+'}{share(abs(value))}"


def times(value: float | None) -> str:
    """A ratio: `1.31×`."""
    return DASH if value is None else f"{value:.2f}×"


def mb(value: float | None) -> str:
    """Megabytes, as gigabytes from one thousand on: `181 MB`, `2.2 GB`."""
    if value is None:
        return DASH
    return f"{value / 1000:.1f} GB" if value >= 1000 else f"{_significant(value)} MB"


def rate(value: float | None) -> str:
    """Examples a second: `1,530`."""
    return DASH if value is None else f"{value:,.0f}"


def seconds(value: float | None) -> str:
    """A duration for progress lines: `8 s`, `2 min 05 s`, `1 h 03 min`."""
    if value is None:
        return DASH
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def count(number: int, singular: str, plural: str = "") -> str:
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def printable(text: str) -> str:
    """Text with the characters written out as `\\u202e` that can make a line say something else than what it says.

    Control characters and those that turn the direction of the text round them; names of files hold anything.
    """
    return _INVISIBLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _significant(value: float) -> str:
    if abs(value) >= 1e15:  # no measurement; its digits would fill the page
        return f"{value:.0e}"
    if abs(value) >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 9.995 else f"{value:.2f}"
