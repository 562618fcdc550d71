"""Two runs side by side, whoever's series they belong to."""

import math
from typing import Any

from feedbench.history import causes
from feedbench.records import Night
from feedbench.records.nights import HALF_WIDTH


def side_by_side(a: Night, b: Night) -> dict[str, Any]:
    """Changes from run `a` to run `b`: relative, with intervals that know the noise within the two runs only."""
    both = [name for name in a.results if name in b.results]
    return {
        "variants": [_row(name, a, b) for name in both],
        "only_in_one": sorted(a.results.keys() ^ b.results.keys()),
        "conditions": causes.conditions(a, b),
        "around": list(causes.environment(a, b)),
    }


def _row(name: str, a: Night, b: Night) -> dict[str, Any]:
    before, after = a.results[name], b.results[name]
    ratio = math.log(after.step_time_ms / before.step_time_ms)
    half = HALF_WIDTH * math.hypot(before.error, after.error)
    change_ms = after.step_time_ms - before.step_time_ms
    return {
        "variant": name,
        "a_ms": before.step_time_ms,
        "b_ms": after.step_time_ms,
        "change": math.expm1(ratio),
        "ci_low": math.expm1(ratio - half),
        "ci_high": math.expm1(ratio + half),
        "stages": causes.stages([before.stages], after.stages, change_ms),
    }
