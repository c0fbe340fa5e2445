"""How far the weights can be trusted: effective sample size, concentration, quantiles, and flags in words."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Floats
from openloop.support.wording import percent

BINS_PER_OCTAVE = 16  # a quantile is right to 2^(1/16), 4.4 %
OCTAVES = 64
N_BINS = BINS_PER_OCTAVE * OCTAVES
THIN_SAMPLE = 30  # below this many effective rows or users a normal interval is unreliable
HEAVY_SHARE = 0.1
MASS_RANGE = (0.8, 1.25)  # of Σw/(U·I), which is 1 when the propensities are right


def effective_size(w: Floats) -> float:
    """(Σw)²/Σw²: the number of equally weighted rows that these are worth (Kish 1965)."""
    w = w / w.max()  # squares stay finite
    return float(w.sum()) ** 2 / float(np.square(w).sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightSummary:
    """Sums over weights that merge: n, Σw, Σw², the extremes, and a fixed log-spaced histogram."""

    n: int
    total: float
    squares: float
    largest: float
    smallest_propensity: float
    histogram: npt.NDArray[np.int64] = field(repr=False)

    @classmethod
    def of(cls, weights: Floats) -> WeightSummary:
        """The summary of an array of weights, each at least 1."""
        return cls(
            n=len(weights),
            total=float(weights.sum()),
            squares=float(np.square(weights).sum()),
            largest=float(weights.max(initial=0.0)),
            smallest_propensity=float(1.0 / weights.max(initial=1.0)),
            histogram=np.bincount(weight_bin(weights), minlength=N_BINS),
        )

    @classmethod
    def counted(cls, weights: Floats, times: npt.NDArray[np.int64]) -> WeightSummary:
        """The summary of weights, each of which so many rows have."""
        there = weights[times > 0]
        return cls(
            n=int(times.sum()),
            total=float(weights @ times),
            squares=float(np.square(weights) @ times),
            largest=float(there.max(initial=0.0)),
            smallest_propensity=float(1.0 / there.max(initial=1.0)),
            histogram=np.bincount(weight_bin(weights), times, minlength=N_BINS).astype(np.int64),
        )

    def __add__(self, other: WeightSummary) -> WeightSummary:
        return WeightSummary(
            n=self.n + other.n,
            total=self.total + other.total,
            squares=self.squares + other.squares,
            largest=max(self.largest, other.largest),
            smallest_propensity=min(self.smallest_propensity, other.smallest_propensity),
            histogram=self.histogram + other.histogram,
        )

    def cut(self, cap: float, total: float) -> WeightSummary:
        """The summary of min(w, cap), whose sum is known; Σ of squares from the histogram, right to a few percent."""
        middles = np.minimum(2 ** ((np.arange(N_BINS) + 0.5) / BINS_PER_OCTAVE), cap)
        bins = np.minimum(np.arange(N_BINS), weight_bin(np.array([cap]))[0])
        return WeightSummary(
            n=self.n,
            total=total,
            squares=float((self.histogram * middles**2).sum()),
            largest=min(self.largest, cap),
            smallest_propensity=self.smallest_propensity,
            histogram=np.bincount(bins, self.histogram, minlength=N_BINS).astype(np.int64),
        )

    @property
    def effective_size(self) -> float:
        """(Σw)²/Σw² (Kish 1965)."""
        return self.total**2 / self.squares if self.squares else 0.0

    @property
    def largest_share(self) -> float:
        """The largest weight's share of Σw."""
        return self.largest / self.total if self.total else 0.0

    def quantile(self, q: float) -> float:
        """The q-quantile of the weights, from the histogram: the middle of its bin, never above the largest."""
        at = int(np.searchsorted(np.cumsum(self.histogram), q * self.n))
        return min(float(2 ** ((min(at, N_BINS - 1) + 0.5) / BINS_PER_OCTAVE)), self.largest)


def repeated_quantile(values: Floats, times: npt.NDArray[Any], q: float) -> float:
    """The q-quantile of values of which each is there so many times, as `numpy.quantile` has it."""
    order = np.argsort(values, kind="stable")
    ends, place = np.cumsum(times[order]), q * (float(times.sum()) - 1.0)
    low, high = (values[order][np.searchsorted(ends, at, side="right")] for at in (np.floor(place), np.ceil(place)))
    return float(low + (high - low) * (place - np.floor(place)))


def weight_bin(weights: Floats) -> npt.NDArray[np.int64]:
    """The histogram bin of each weight: ⌊16 · log2 w⌋."""
    bins = np.floor(np.log2(np.maximum(weights, 1.0)) * BINS_PER_OCTAVE).astype(np.int64)
    return np.minimum(bins, N_BINS - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostics:
    """What an estimate rests on; `estimate.diagnostics` has it.

    Attributes:
        n: The number of rows that count.
        users: The number of users with such rows.
        effective_size: (Σw)²/Σw² (Kish 1965); None without weights.
        largest_share: The largest weight's share of Σw.
        quantiles: Quantiles of the weights: 0.5, 0.9, 0.99 and the largest.
        clipped_share: The share of rows whose weight was cut, or whose propensity a floor raised.
        kept_weight: The sum of the weights over Σ1/p, where a cap or a floor cut them.
        coarse_share: The share of the population in strata whose propensities differ much.
        typical_relevant: The median |S_u|, for an average of users' own ratios.
        cap: The cap of the weights.
        smallest_propensity: The smallest propensity that was used.
        mass: Σw divided by the population, about 1 when the propensities are right.
        shares: The shares of the strata.
        inverse_squares: Σ1/p² over the grid where p < 1, for `ol.bounds.hoeffding`.
        population: |C|, the number of candidate cells.
        loss_variance: S², the variance of δ over the population's cells.
        effective_users: (Σψ²)²/Σψ⁴, the effective number of users.
        largest_user_share: max ψ²/Σψ².
        reach: Σwθ/ΣΘ, the part of a ranker's exposure that impressions support.
        matches: The number of rows with a weight at each position.
        effective_clicks: (Σwc)²/Σ(wc)².
        effective_rows: (Σw)²/Σw² at the position where it is smallest.
        flags: Why the estimate may be unreliable, in words.

    Examples:
        >>> world = ol.simulate.movie_lovers()
        >>> result = ol.evaluate(world.predictions, world.observe(0), metrics=["mae"], estimators=["snips"])
        >>> seen = result["Y1", "mae", "snips"].diagnostics
        >>> seen.n, round(seen.effective_size), round(seen.mass, 2)
        (2186, 904, 0.98)
    """

    n: int
    users: int
    effective_size: float | None = None
    largest_share: float | None = None
    quantiles: dict[float, float] = field(default_factory=dict[float, float])
    clipped_share: float | None = None
    kept_weight: float | None = None  # Σ of the weights over Σ1/p, where a cap or a floor cut them
    coarse_share: float | None = None  # of the population, in strata inside which p differs much
    typical_relevant: float | None = None  # median |S_u|, of an average of users' own ratios
    cap: float | None = None
    smallest_propensity: float | None = None
    mass: float | None = None
    shares: tuple[float, ...] | None = None
    inverse_squares: float | None = None
    population: float | None = None
    loss_variance: float | None = None  # S², of δ over the population's cells
    effective_users: float | None = None  # (Σψ²)²/Σψ⁴
    largest_user_share: float | None = None  # of Σψ²
    reach: float | None = None  # Σwθ/ΣΘ: the part of the model's exposure that impressions support
    matches: tuple[int, ...] | None = None  # rows with a weight at each position
    effective_clicks: float | None = None  # (Σwc)²/Σ(wc)²
    effective_rows: float | None = None  # (Σw)²/Σw² at the position where it is least
    flags: tuple[str, ...] = ()

    def resting_on(self, effective_users: float, largest_user_share: float) -> Diagnostics:
        """The same with these `effective_users` and `largest_user_share`, and the flag that follows from them."""
        old, new = (_uneven_users(self.users, *found) for found in (
            (self.effective_users, self.largest_user_share), (effective_users, largest_user_share)
        ))  # fmt: skip
        kept = tuple(flag for flag in self.flags if flag not in old)
        return replace(
            self, effective_users=effective_users, largest_user_share=largest_user_share, flags=(*kept, *new)
        )

    def flagged(self, *flags: str) -> Diagnostics:
        """The same with more `flags`."""
        return replace(self, flags=(*self.flags, *flags))


def diagnose(summary: WeightSummary, users: int, population: float, clipped: float | None) -> Diagnostics:
    """Diagnostics of a weighted estimate over `population` cells."""
    mass = summary.total / population
    return Diagnostics(
        n=summary.n,
        users=users,
        effective_size=summary.effective_size,
        largest_share=summary.largest_share,
        quantiles={q: summary.quantile(q) for q in (0.5, 0.9, 0.99)} | {1.0: summary.largest},
        clipped_share=clipped,
        smallest_propensity=summary.smallest_propensity,
        mass=mass,
        population=population,
        flags=tuple(support_flags(summary.n, users, summary.effective_size, summary.largest_share)),
    )


def mass_flag(mass: float) -> tuple[str, ...]:
    """The flag for weights that do not add up to the population."""
    low, high = MASS_RANGE
    if low <= mass <= high:
        return ()
    return (
        (
            f"the weights add up to {mass:.2f} of the population, not to 1: the scale of propensities or population is "
            "wrong"
        ),
    )


def support_flags(n: int, users: int, effective_size: float | None, largest_share: float | None) -> list[str]:
    """The flags for too few users, too few rows after weighting, and a row with too much of the weight."""
    flags = few_users(users)
    if effective_size is not None and effective_size < THIN_SAMPLE:
        flags.append(f"support too thin: {n:,} rows count as {effective_size:.1f} after weighting")
    if largest_share is not None and largest_share > HEAVY_SHARE:
        flags.append(f"one row carries {largest_share:.0%} of all weight")
    return flags


def few_users(users: int) -> list[str]:
    """The flag for too few users."""
    if users >= THIN_SAMPLE:
        return []
    return [f"only {users} users have scored rows, so the interval over users is unreliable"]


def _uneven_users(users: int, effective: float | None, largest: float | None) -> tuple[str, ...]:
    """The flag for few users among many who carry an estimate."""
    if effective is None or largest is None or effective >= THIN_SAMPLE or users < THIN_SAMPLE:
        return ()
    found = (
        f"it rests on {effective:.1f} effective users, and one user has {percent(largest)} of its variance over users"
    )
    return (f"few users carry this estimate: {found}",)
