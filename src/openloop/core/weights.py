"""How far the weights can be trusted: effective sample size, concentration, quantiles, and flags in words."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Floats
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
    def of(cls, weights: Floats, times: npt.ArrayLike = 1) -> WeightSummary:
        """The summary of an array of weights, each at least 1; each is there so many times."""
        times = np.broadcast_to(np.asarray(times, np.int64), weights.shape)
        present = weights if times.all() else weights[times > 0]
        return cls(
            n=int(times.sum()),
            total=float((weights * times).sum()),
            squares=float((np.square(weights) * times).sum()),
            largest=float(present.max(initial=0.0)),
            smallest_propensity=float(1.0 / present.max(initial=1.0)),
            histogram=np.bincount(weight_bin(weights), times, minlength=N_BINS).astype(np.int64),
        )

    def cut(self, cap: float, total: float) -> WeightSummary:
        """The summary of min(w, cap), whose sum is known; Σ of squares from the histogram, right to a few percent."""
        middles = np.minimum(2 ** ((np.arange(N_BINS) + 0.5) / BINS_PER_OCTAVE), cap)
        bins = np.minimum(np.arange(N_BINS), weight_bin(np.array([cap]))[0])
        return replace(
            self, total=total, squares=float((self.histogram * middles**2).sum()), largest=min(self.largest, cap),
            histogram=np.bincount(bins, self.histogram, minlength=N_BINS).astype(np.int64),
        )  # fmt: skip

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
        step = min(int(np.searchsorted(np.cumsum(self.histogram), q * self.n)), N_BINS - 1)
        return min(float(2 ** ((step + 0.5) / BINS_PER_OCTAVE)), self.largest)


def repeated_quantile(values: Floats, times: Array, q: float) -> float:
    """The q-quantile of values of which each is there so many times, as `numpy.quantile` has it."""
    order = np.argsort(values, kind="stable")
    ends, place = np.cumsum(times[order]), q * (float(times.sum()) - 1.0)
    low, high = values[order][np.searchsorted(ends, [np.floor(place), np.ceil(place)], side="right")]
    return float(low + (high - low) * (place % 1))


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
    kept_weight: float | None = None
    coarse_share: float | None = None
    typical_relevant: float | None = None
    cap: float | None = None
    smallest_propensity: float | None = None
    mass: float | None = None
    shares: tuple[float, ...] | None = None
    inverse_squares: float | None = None
    population: float | None = None
    loss_variance: float | None = None
    effective_users: float | None = None
    largest_user_share: float | None = None
    reach: float | None = None
    matches: tuple[int, ...] | None = None
    effective_clicks: float | None = None
    effective_rows: float | None = None
    flags: tuple[str, ...] = ()

    def resting_on(self, effective_users: float, largest_user_share: float) -> Diagnostics:
        """The same with these `effective_users` and `largest_user_share`, and the flag that follows from them."""
        changed = replace(self, effective_users=effective_users, largest_user_share=largest_user_share)
        flags = (flag for flag in self.flags if flag not in _uneven_users(self))
        return replace(changed, flags=(*flags, *_uneven_users(changed)))

    def flagged(self, *flags: str) -> Diagnostics:
        """The same with more `flags`."""
        return replace(self, flags=(*self.flags, *flags))


def diagnose(summary: WeightSummary, users: int, population: float, clipped: float | None) -> Diagnostics:
    """Diagnostics of a weighted estimate over `population` cells."""
    return Diagnostics(
        n=summary.n, users=users, effective_size=summary.effective_size, largest_share=summary.largest_share,
        quantiles={q: summary.quantile(q) for q in (0.5, 0.9, 0.99)} | {1.0: summary.largest},
        clipped_share=clipped, smallest_propensity=summary.smallest_propensity, mass=summary.total / population,
        population=population,
        flags=tuple(support_flags(summary.n, users, summary.effective_size, summary.largest_share)),
    )  # fmt: skip


def mass_flag(mass: float) -> tuple[str, ...]:
    """The flag for weights that do not add up to the population."""
    if MASS_RANGE[0] <= mass <= MASS_RANGE[1]:
        return ()
    says = f"the weights add up to {mass:.2f} of the population, not to 1"
    return (f"{says}: the scale of propensities or population is wrong",)


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
    says = f"only {users} users have scored rows, so the interval over users is unreliable"
    return [says] if users < THIN_SAMPLE else []


def _uneven_users(d: Diagnostics) -> tuple[str, ...]:
    """The flag for few users among many who carry an estimate."""
    effective, largest = d.effective_users, d.largest_user_share
    if effective is None or largest is None or effective >= THIN_SAMPLE or d.users < THIN_SAMPLE:
        return ()
    users = f"{effective:.1f} effective users, and one user has {percent(largest)} of its variance over users"
    return (f"few users carry this estimate: it rests on {users}",)
