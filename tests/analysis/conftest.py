"""Runs to compare."""

import pytest

from planted.trials import Planted


@pytest.fixture
def planted() -> type[Planted]:
    return Planted
