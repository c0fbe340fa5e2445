"""`Popularity`: items rated often were shown often; p of an item is a power of its count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import narwhals as nw
import numpy as np

from openloop.core.feedback import LEAST, Array, Feedback, Floats, frozen
from openloop.errors import InputError, did_you_mean
from openloop.propensity.base import CellModel, check_codes, item_counts
from openloop.propensity.frames.lookups import ITEM, Lookup
from openloop.propensity.solvers.power_law import ALPHA_RANGE, PowerLaw, check_x_min, fit_power_law

VARIANTS = ("paper", "as_coded")
LARGE_GAMMA = 3.0  # beyond it p grows faster than the square of the count
ROUNDING = 1e-9


class Popularity(CellModel):
    """p by the item's popularity, p_i ∝ n_i^((γ+1)/2), for every user (Jadidinejad et al. 2021, Eq. 7).

    γ is the exponent of a power law on the items' counts (Clauset, Shalizi & Newman 2009). Items without a row count as
    1. p is capped at 1 and scaled to U·Σp = |O|.

    With `gamma=1`, p_i is n_i/U, which converges to the truth where p depends on the item alone. A larger γ says that
    items differ more in exposure than in rows. A log has only rows, so it cannot confirm that.

    Args:
        gamma: γ; None estimates it.
        x_min: The count from which the power law holds; None estimates it.
        variant: "paper" is Eq. 7. "as_coded" is the published code: n^γ above x_min, n up to it, no cap. Only the
            ratios are the code's: one factor brings U·Σp to |O|, or the largest p to 1 where a p would otherwise exceed
            1.

    Attributes:
        gamma_: The γ that was used.
        x_min_: The given or estimated `x_min`; None where there is neither.
        power_law_: The estimated power law; None where nothing was estimated.
        item_propensities_: p_i (I,). After a fit on a frame: by count of rows.
        log_scores_: log p_i before scale and cap (I,).
        users_: The users of the log, a `Vocabulary`.
        items_: The items of the log, a `Vocabulary`.
        notes_: What the fit reports, a tuple of sentences.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.movie_lovers().observe(rng=0)
        >>> seen = ol.propensity.Popularity(gamma=1).fit(log)
        >>> round(float(seen.predict(log).values.max()), 2)
        0.41
    """

    assumes = "being observed depends on the item's popularity alone"
    fits_items = True

    def __init__(
        self, gamma: float | None = None, x_min: int | None = None, variant: Literal["paper", "as_coded"] = "paper"
    ) -> None:
        self.gamma = gamma
        self.x_min = x_min
        self.variant: Literal["paper", "as_coded"] = variant

    def fit(self, feedback: Feedback | Any, **columns: Any) -> Popularity:
        """Count the rows of each item, estimate γ unless it is given, and scale p.

        Args:
            feedback: A log, or a frame, whose rows are counted in its engine.
            **columns: Only for a frame: `user`, `item` and `rating` name its columns, `population` is (users, items)
                where the log does not show everyone, `distinct=True` says that no pair is repeated.

        Returns:
            The fitted model itself.
        """
        _check(self)
        log = self._opened(feedback, columns)
        n, size = item_counts(self, log)
        return self._remember(log, *self.fit_counts(n, log.n_users, size))

    def fit_counts(self, n: Floats, n_users: int, size: Floats | None = None) -> Iterator[str]:
        """Find `item_propensities_` from the items' counts alone.

        Args:
            n: The count of each item (I,).
            n_users: The number of users.
            size: How many items have each count; None for one each.

        Returns:
            Notes about the fit.
        """
        times = np.ones(len(n), np.int64) if size is None else size.astype(np.int64)
        expected = min(float(np.repeat(n, times).sum()) / n_users, float(times.sum()))  # |O|/U, of at most every cell
        self._set_exponent(np.repeat(n, times))
        if self.variant == "paper":
            # Eq. 7: p_i ∝ n_i^((γ+1)/2)
            log_scores = (self.gamma_ + 1) / 2 * _log_counts(n)
            log_p = log_scores + log_level(np.repeat(log_scores, times), expected)
        else:
            above = n > self.x_min_  # pyright: ignore[reportOperatorIssue], as_coded never leaves it None
            log_scores = np.where(above, self.gamma_, 1.0) * _log_counts(n)
            total = np.logaddexp.reduce(np.repeat(log_scores, times))
            log_p = log_scores + min(np.log(expected) - total, -log_scores.max())
        self.log_scores_ = frozen(log_scores)
        self.item_propensities_ = frozen(_capped(log_p))
        return _notes(self, np.repeat(n, times), np.repeat(log_p, times), expected)

    def _set_exponent(self, n: Floats) -> None:
        self.power_law_: PowerLaw | None = None
        if self.gamma is None or (self.variant == "as_coded" and self.x_min is None):
            law = self.power_law_ = fit_power_law(n, self.x_min)
            self.gamma_, self.x_min_ = float(law.alpha if self.gamma is None else self.gamma), law.x_min
        else:
            self.gamma_, self.x_min_ = float(self.gamma), self.x_min

    def _at(self, user: Array, item: Array) -> Floats:
        return np.broadcast_to(self.item_propensities_[item], np.broadcast(user, item).shape)

    def frame_parts(self) -> tuple[Sequence[Lookup], Any]:
        """What is looked up for each row of a frame, and p as an expression of it.

        Returns:
            Lookups to join, and a narwhals expression of their columns.
        """
        return [Lookup(key=ITEM, of=self.items_, columns={"openloop_p_item": self.item_propensities_})], nw.col(
            "openloop_p_item"
        )

    def matrix(self) -> Floats:
        """The p of each item for every user; takes the memory of one row.

        Returns:
            A read-only array (U, I).
        """
        check_codes(self)
        return np.broadcast_to(self.item_propensities_, (len(self.users_), len(self.items_)))

    def margins(self) -> tuple[Floats, Floats]:
        """The sums of p by user and by item.

        Returns:
            Σ_i p_i for each user (U,) and U·p_i for each item (I,).
        """
        check_codes(self)
        U, p = len(self.users_), self.item_propensities_
        return np.full(U, p.sum()), U * p


def log_level(log_scores: Floats, total: float) -> float:
    """log c with Σ_i min(c·score_i, 1) = total, which is at most the number of scores: exact, by water-filling."""
    a = np.sort(log_scores)[::-1]
    rest = np.logaddexp.accumulate(a[::-1])[::-1]  # log of the sum of this score and all smaller ones
    # With the m largest at 1, the others share total − m; m is the smallest that leaves none of them above 1.
    m = np.arange(int(np.ceil(total)))
    log_c = np.log(total - m) - rest[m]
    return float(log_c[np.argmax(a[m] + log_c <= 0)])


def _capped(log_p: Floats) -> Floats:
    return np.maximum(np.exp(np.minimum(log_p, 0.0)), LEAST)


def _log_counts(n: Floats) -> Floats:
    return np.log(np.maximum(n, 1.0))


def _check(model: Any) -> None:
    if model.variant not in VARIANTS:
        raise InputError(
            f"Popularity: variant {model.variant!r} is unknown.{did_you_mean(str(model.variant), VARIANTS)}"
        )
    gamma = model.gamma
    if gamma is not None and (not isinstance(gamma, int | float | np.number) or not 0 < gamma < np.inf):
        raise InputError(f"Popularity: gamma must be positive, got {gamma!r}; leave it out to estimate it.")
    if model.x_min is not None:
        check_x_min("Popularity", model.x_min)


def _notes(model: Popularity, n: Floats, log_p: Floats, expected: float) -> Iterator[str]:
    p, gamma, I = _capped(log_p), model.gamma_, len(n)
    if empty := int(np.sum(n == 0)):
        yield f"{empty:,} of {I:,} items have no row; each counts as 1"
    if capped := int(np.sum(log_p > ROUNDING)):
        yield f"{capped:,} of {I:,} items are capped at 1, the others raised until U·Σp is the size of the log"
    if lifted := int(np.sum(log_p < np.log(LEAST))):
        yield f"{lifted:,} of {I:,} items have a p below {LEAST:g}, and are given that instead"
    if model.gamma is None and min(gamma - ALPHA_RANGE[0], ALPHA_RANGE[1] - gamma) < ROUNDING:
        yield f"γ stopped at {gamma:.4g}, the end of its range: the counts do not follow a power law"
    if gamma > LARGE_GAMMA:
        power = f"{(gamma + 1) / 2:.2f}" if model.variant == "paper" else f"{gamma:.2f} above x_min"
        yield (
            f"γ = {gamma:.2f} is large: p grows as n^{power}, and the weights 1/p of two items differ by up to a "
            f"factor of {p.max() / p.min():.2g}, so few rows decide an estimate"
        )
    if p.sum() < expected * (1 - ROUNDING):
        yield (
            f"U·Σp is {p.sum() / expected:.2g} of the log: the published scores are too uneven to add up to it with "
            "every p at most 1, so only their ratios mean something"
        )
