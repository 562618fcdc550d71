"""Which differences of step time are real. Plain maths on plain sequences; imports nothing of ours.

The unit of replication is the trial (one process), not the step: steps of one process share its luck. So the
spread between trials of the same variant in different rounds, after taking out what all variants of a round have
in common, is the noise that a difference must beat.

    log m[v, r] = variant effect + round effect + e[v, r]

* Variance of e, for each variant, is squeezed towards the common one (empirical Bayes; G. Smyth, Stat. Appl. Genet.
  Mol. Biol. 3, 2004), since three rounds tell little about one variant and much about ten.
* All pairs of variants are one family: critical values come from the studentised range (Tukey), so that with 95 %
  probability no two equal variants of a run are told apart, whichever pair is looked at afterwards.
* Intervals of single step times are a hierarchical bootstrap: rounds first, then blocks of neighbouring steps.
"""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special, stats

CONFIDENCE = 0.95
POWER = 0.90
RESAMPLES = 2000
_WIDTH_SCATTER = 1.35
"""The next run's interval is as much wider than this one's in one run of ten (simulated, three rounds of ten)."""

_NORMAL = float(special.ndtri((1 + CONFIDENCE) / 2))

Samples = Mapping[str, Mapping[int, Sequence[float]]]
"""Step times in ms by variant and round."""


@dataclass(frozen=True)
class Estimate:
    """A value with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Family:
    """All pairwise comparisons of one run's variants, at one common error rate."""

    log_means: Mapping[str, Mapping[int, float]]
    deviations: Mapping[str, float]
    """Standard deviation of a trial's log mean, by variant."""
    critical: float
    """Standard errors that a difference must exceed."""
    degrees_of_freedom: float

    def ratio(self, over: str, under: str) -> Estimate | None:
        """Step time of `over` / step time of `under`, paired by round; None without a common round."""
        pairs = self._pairs(over, under)
        if not pairs:
            return None
        difference = float(np.mean([a - b for a, b in pairs]))
        half = self.critical * self._standard_error(over, under, len(pairs))
        return Estimate(*(math.exp(difference + sign * half) for sign in (0, -1, 1)))

    def is_slower(self, slow: str, fast: str, min_effect: float) -> bool:
        """Certain, and by more than `min_effect` (a share of the faster one's step time)."""
        ratio = self.ratio(slow, fast)
        return ratio is not None and ratio.low > 1 and ratio.value > 1 + min_effect

    def knows(self, over: str, width: float) -> bool:
        """Whether every ratio of `over` to another variant is known to within `width` (a share) to either side."""
        ratios = [self.ratio(over, name) for name in self.log_means if name != over]
        limit = math.log1p(width)
        return all(ratio is not None and math.log(ratio.high / ratio.low) / 2 <= limit for ratio in ratios)

    def smallest_detectable(self, a: str, b: str) -> float | None:
        """Relative slow-down of one over the other that would be found in POWER of all runs like this one."""
        pairs = self._pairs(a, b)
        if not pairs:
            return None
        margin = _WIDTH_SCATTER * self.critical + stats.norm.ppf(POWER)
        return math.expm1(margin * self._standard_error(a, b, len(pairs)))

    def noise(self, a: str, b: str) -> float | None:
        """Relative difference that two equal variants stay below in CONFIDENCE of all runs like this one."""
        pairs = self._pairs(a, b)
        if not pairs:
            return None
        margin = stats.t.ppf((1 + CONFIDENCE) / 2, self.degrees_of_freedom)
        return math.expm1(margin * self._standard_error(a, b, len(pairs)))

    def _pairs(self, a: str, b: str) -> list[tuple[float, float]]:
        first, second = self.log_means[a], self.log_means[b]
        return [(first[r], second[r]) for r in sorted(first.keys() & second.keys())]

    def _standard_error(self, a: str, b: str, pairs: int) -> float:
        return math.sqrt((self.deviations[a] ** 2 + self.deviations[b] ** 2) / pairs)


def family(samples: Samples, block: int = 1) -> Family:
    """The comparisons of these variants. `block`: neighbouring steps that are alike, for a run of one round.

    With one round only, the noise is that of the steps, and nothing is known of differences between processes.
    """
    log_means = {v: {r: math.log(np.mean(x)) for r, x in rounds.items()} for v, rounds in samples.items() if rounds}
    if not log_means:
        return Family({}, {}, math.nan, math.nan)
    residuals = additive_residuals(log_means)
    freedom = sum(len(rounds) for rounds in log_means.values()) - len(log_means) - _rounds(log_means) + 1
    if freedom > 0:
        deviations, degrees = _between_trials(residuals, freedom)
    else:
        deviations, degrees = _within_trials(samples, block)
    critical = (
        _studentised_range(len(log_means), max(math.floor(2 * degrees) / 2, 1.0)) / math.sqrt(2)
        if len(log_means) > 1
        else math.nan
    )
    return Family(log_means, deviations, critical, degrees)


def additive_residuals(log_means: Mapping[str, Mapping[int, float]]) -> dict[str, dict[int, float]]:
    """What is left of log means after variant and round effects (least squares; trials may be missing)."""
    cells = [(v, r) for v, rounds in log_means.items() for r in rounds]
    variants, rounds = sorted({v for v, _ in cells}), sorted({r for _, r in cells})
    design = np.zeros((len(cells), len(variants) + len(rounds)))
    for row, (v, r) in enumerate(cells):
        design[row, variants.index(v)] = design[row, len(variants) + rounds.index(r)] = 1
    observed = np.array([log_means[v][r] for v, r in cells])
    fitted = design @ np.linalg.lstsq(design, observed, rcond=None)[0]
    left: dict[str, dict[int, float]] = {v: {} for v in variants}
    for (v, r), residual in zip(cells, observed - fitted, strict=True):
        left[v][r] = float(residual)
    return left


def squeeze(variances: Sequence[float], freedoms: Sequence[float]) -> tuple[np.ndarray, float]:
    """Variances drawn towards a common one as far as their own scatter allows, and the prior's degrees of freedom.

    Smyth 2004, section 6.2: log variances scatter by trigamma(d/2) if all are equal; what is more is real.
    """
    s2, d = np.asarray(variances, float), np.asarray(freedoms, float)
    usable = (d > 0) & (s2 > 0)
    if not usable.any():
        return s2, math.inf
    e = np.log(s2[usable]) - special.digamma(d[usable] / 2) + np.log(d[usable] / 2)
    pooled = float(np.sum(d[usable] * s2[usable]) / np.sum(d[usable]))
    excess = float(np.var(e, ddof=1) - np.mean(special.polygamma(1, d[usable] / 2))) if len(e) > 1 else 0.0
    if excess <= 0:
        return np.full_like(s2, pooled), math.inf
    prior_d = 2 * _inverse_trigamma(excess)
    prior_s2 = math.exp(float(np.mean(e)) + special.digamma(prior_d / 2) - math.log(prior_d / 2))
    drawn = (prior_d * prior_s2 + d * s2) / (prior_d + d)
    # Three rounds tell more of a variant's noise than of its quiet: never below the pooled variance, and half of what
    # its own has beyond the drawn one stays. Equal variants are then told apart in 2.5 % of simulated runs, and in
    # 8 % where every second one is three times as noisy; without this, in 4 % and 10 %.
    return np.maximum.reduce([drawn, np.full_like(s2, pooled), (drawn + s2) / 2]), prior_d


def mean_interval(rounds: Sequence[Sequence[float]], block: int = 1, seed: int = 0) -> Estimate:
    """Mean of rounds of step times with its CONFIDENCE interval: rounds are resampled, then blocks of steps.

    Resampling R rounds understates their variance by (R-1)/R; deviations are widened to make up for it. One round knows
    the spread of its steps alone.
    """
    generator = np.random.default_rng(seed)
    series = [np.asarray(r, float) for r in rounds]
    means = np.array([s.mean() for s in series])
    drawn = np.stack([_block_means(s, block, len(series), generator) for s in series])  # rounds x resamples
    picks = generator.integers(len(series), size=(len(series), RESAMPLES))
    within = (drawn - means[:, None])[picks, np.arange(RESAMPLES)].mean(axis=0)
    widen = math.sqrt(len(series) / (len(series) - 1)) if len(series) > 1 else 0.0
    between = widen * (means[picks].mean(axis=0) - means.mean())
    spread = np.quantile(within + between, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Estimate(float(means.mean()), *(float(means.mean() + s) for s in spread))


def drift(log_means: Mapping[str, Mapping[int, float]]) -> tuple[float, float]:
    """Relative range of the round effects, and the probability of such a range if rounds differed by noise only."""
    complete = [v for v in log_means if len(log_means[v]) == _rounds(log_means)]
    if _rounds(log_means) < 2 or len(complete) < 2:
        return 0.0, 1.0
    table = np.array([[log_means[v][r] for r in sorted(log_means[v])] for v in complete])
    effects = table.mean(axis=0) - table.mean()
    residual = table - table.mean(axis=1, keepdims=True) - effects
    v, r = table.shape
    noise = np.sum(residual**2) / ((v - 1) * (r - 1))
    chance = stats.f.sf(v * np.sum(effects**2) / (r - 1) / noise, r - 1, (v - 1) * (r - 1)) if noise > 0 else 0.0
    return float(np.ptp(effects)), float(chance)


def _between_trials(residuals: Mapping[str, Mapping[int, float]], freedom: int) -> tuple[dict[str, float], float]:
    """Deviation of a trial by variant, squeezed; degrees of freedom of a comparison, at most those of the pool."""
    trials = sum(len(r) for r in residuals.values())
    own = {v: len(r) * freedom / trials for v, r in residuals.items()}  # the fit's loss, spread evenly
    raw = [sum(e * e for e in r.values()) / own[v] for v, r in residuals.items()]
    squeezed, prior = squeeze(raw, list(own.values()))
    degrees = min(float(freedom), prior + float(np.mean(list(own.values()))))
    return {v: math.sqrt(s2) for v, s2 in zip(residuals, squeezed, strict=True)}, degrees


def _within_trials(samples: Samples, block: int) -> tuple[dict[str, float], float]:
    deviations, degrees = {}, []
    for variant, rounds in samples.items():
        variances = []
        for times in rounds.values():
            blocks = _blocks(np.asarray(times, float), block, least=8).mean(axis=1)
            degrees.append(max(len(blocks) - 1, 1))
            variances.append(np.var(blocks, ddof=1) / len(blocks) / np.mean(times) ** 2 if len(blocks) > 1 else 0.0)
        deviations[variant] = math.sqrt(np.mean(variances))
    return deviations, float(min(degrees)) if degrees else math.nan


def _blocks(times: np.ndarray, block: int, least: int) -> np.ndarray:
    """Whole blocks of neighbours, blocks x steps; the remainder at the end is left out.

    Where fewer than `least` fit in, eight shorter ones: an interval from two has no end.
    """
    size = block if len(times) // block >= least else max(1, min(block, len(times) // 8))
    return times[: len(times) // size * size].reshape(-1, size)


def _without_pattern(times: np.ndarray, block: int, least: int) -> np.ndarray:
    """Of two passes or more, but fewer than `least`: what differs between them; what they have in common is no noise.

    Where the buffer drains and fills again, the steps of one pass differ by more than passes do.
    """
    passes = len(times) // block
    if not 1 < passes < least:
        return times
    table = times[: passes * block].reshape(passes, block)
    return ((table - table.mean(axis=0)) * math.sqrt(passes / (passes - 1)) + times.mean()).ravel()


def _block_means(times: np.ndarray, block: int, rounds: int, generator: np.random.Generator) -> np.ndarray:
    """RESAMPLES means of blocks drawn with replacement, their spread widened by what so few blocks understate it."""
    means = _blocks(_without_pattern(times, block, least=4), block, least=4).mean(axis=1)
    n = len(means)
    if n == 1:
        return np.full(RESAMPLES, times.mean())
    widen = math.sqrt(n / (n - 1)) * special.stdtrit(rounds * (n - 1), (1 + CONFIDENCE) / 2) / _NORMAL
    centred = (means - means.mean()) * widen + times.mean()
    return centred[generator.integers(len(means), size=(RESAMPLES, len(means)))].mean(axis=1)


def _rounds(log_means: Mapping[str, Mapping[int, float]]) -> int:
    return len({r for rounds in log_means.values() for r in rounds})


def _inverse_trigamma(value: float) -> float:
    return float(optimize.brentq(lambda x: special.polygamma(1, x) - value, 1e-8, 1e8))


@functools.lru_cache(maxsize=256)
def _studentised_range(groups: int, degrees: float) -> float:
    return float(stats.studentized_range.ppf(CONFIDENCE, groups, degrees))
