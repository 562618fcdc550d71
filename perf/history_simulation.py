"""How often the nightly judgement cries wolf, and how soon it sees a real change: counted on made-up series.

    python perf/history_simulation.py [SERIES] [SEED]

A series is a variant on a shared machine: night-to-night noise, drift, bad nights (mostly slow, some twice in a row),
missing nights, a swap of the machine now and then (which begins a new series). Half of them carry one lasting 5 %
change. The second kind of noise is real: times of one and the same work on a busy machine (real_noise.json), in random
order, so that they hold no change. Prints the figures; exits 1 when they are not met.
"""

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from feedbench.analysis.changes import judge, levels

NIGHTS = 150
SIZE = math.log(1.05)
MAX_FALSE_ALARMS = 0.01
MIN_FOUND = 0.95
MAX_NIGHTS_TO_FIND = 3


def noise(generator: np.random.Generator, nights: int = NIGHTS) -> np.ndarray:
    """Log step times of nights on which nothing changed."""
    deviation = math.exp(generator.uniform(math.log(0.003), math.log(0.012)))
    drift, pull = np.zeros(nights), 1 / 20
    for night in range(1, nights):
        drift[night] = drift[night - 1] * (1 - pull) + generator.normal(0, deviation * math.sqrt(2 * pull))
    trend = np.arange(nights) * generator.uniform(-2e-4, 2e-4)
    return math.log(60) + generator.normal(0, deviation, nights) + drift + trend + outliers(generator, nights)


def outliers(generator: np.random.Generator, nights: int) -> np.ndarray:
    """Three nights of a hundred are bad, by 8 % on average, one in five of them for two nights."""
    bad = generator.random(nights) < 0.03
    bad[1:] |= bad[:-1] & (generator.random(nights - 1) < 0.2)
    sign = np.where(generator.random(nights) < 0.85, 1, -1)
    return bad * sign * generator.exponential(0.08, nights)


def series(generator: np.random.Generator, size: float) -> tuple[list[np.ndarray], int]:
    """The parts of a series (a machine swap ends one), the last of which changes by `size`, and at which night."""
    values = noise(generator)
    change = int(generator.integers(NIGHTS // 3, NIGHTS - 20))
    values[change:] += size
    there = generator.random(NIGHTS) > 0.04
    swap = int(generator.integers(10, change - 20)) if generator.random() < 0.3 else 0
    return [values[:swap][there[:swap]], values[swap:][there[swap:]]], int(there[swap:change].sum())


def count(generator: np.random.Generator, number: int) -> tuple[int, int, list[int]]:
    """Alarms and nights where nothing changed; nights until each planted change was found."""
    alarms, nights, delays = 0, 0, []
    for n in range(number):
        size = 0.0 if n % 2 else SIZE * (1 if n % 4 else -1)
        parts, change = series(generator, size)
        for part in parts:
            quiet = part if not size or part is not parts[-1] else part[:change]
            alarms += sum(night.state == "changed" for night in judge(quiet))
            nights += len(quiet)
        if size:
            delays.append(delay(parts[-1], change, size))
    return alarms, nights, delays


def delay(values: Sequence[float], change: int, size: float) -> int:
    """Nights from a change to the first one that tells it, in the right direction; 99 if none of ten does."""
    judged = list(judge(values[: change + 10]))[change:]
    found = (n for n, night in enumerate(judged, 1) if night.state == "changed" and night.shift.size * size > 0)
    return next(found, 99)


def real_alarms(generator: np.random.Generator, number: int, scale: float) -> float:
    """Alarms a night on real noise, drawn wild or tame by `scale`."""
    times = np.log(json.loads((Path(__file__).parent / "real_noise.json").read_text())["times_ms"])
    drawn = [generator.choice(times, NIGHTS) * scale for _ in range(number)]
    return float(np.mean([night.state == "changed" for values in drawn for night in judge(values)]))


def steps(generator: np.random.Generator, number: int) -> tuple[float, float]:
    """Of levels seen from a series' end: false steps a night, and planted ones that are placed to within two nights."""
    false, nights, placed = 0, 0, []
    for n in range(number):
        values = noise(generator)
        change = int(generator.integers(NIGHTS // 3, NIGHTS - 20))
        values[change:] += SIZE * (n % 2)
        found = levels(list(values))
        near = [start for start in found if abs(start - change) <= 2]
        false, nights = false + len(found) - (len(near) if n % 2 else 0), nights + NIGHTS
        if n % 2:
            placed.append(bool(near))
    return false / nights, float(np.mean(placed))


def main(number: int = 2000, seed: int = 0) -> int:
    alarms, nights, delays = count(np.random.default_rng(seed), number)
    found = np.mean(np.array(delays) <= MAX_NIGHTS_TO_FIND)
    print(f"{number} series, {nights:,} nights on which nothing changed, {len(delays)} lasting changes of 5 %")
    print(f"false alarms: {100 * alarms / nights:.2f} of 100 variant-nights (at most {100 * MAX_FALSE_ALARMS:g})")
    print(f"found within {MAX_NIGHTS_TO_FIND} nights: {100 * found:.1f} % (at least {100 * MIN_FOUND:g})")
    false, placed = steps(np.random.default_rng(seed + 2), number)
    print(f"levels: {100 * false:.2f} false steps in 100 nights, {100 * placed:.0f} % of 5 % steps placed within two")
    tame, wild = (real_alarms(np.random.default_rng(seed + 1), number // 20, scale) for scale in (0.1, 1))
    print(f"false alarms on real noise of 5 % a night: {100 * tame:.2f} of 100 (at most {100 * MAX_FALSE_ALARMS:g})")
    print(f"  of 50 % a night: {100 * wild:.2f}, most in a series' first nights, before it is known to be so wild")
    for n in range(1, 6):
        print(f"  within {n}: {100 * np.mean(np.array(delays) <= n):.1f} %")
    return 0 if max(alarms / nights, tame) <= MAX_FALSE_ALARMS and found >= MIN_FOUND else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
