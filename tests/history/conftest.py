"""Nights to judge."""

import pytest

from feedbench.records import Night
from planted.nights import night


@pytest.fixture
def week() -> list[Night]:
    """Seven nights of two variants that differ by noise of half a per cent."""
    off = (0.0, 0.3, -0.2, 0.1, -0.3, 0.2, 0.0)
    return [night(n, {"naive": 60 + o, "prefetch": 50 - o}) for n, o in enumerate(off, 1)]
