"""From where models rank relevant cells to an estimate for each model, by openloop's own estimators.

Scores know cells (user, item), how much each counts, and each model's discounts there; nothing about models.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from openloop.core.estimate import Estimate
from openloop.core.feedback import Array, Floats
from openloop.core.metric import Metric
from openloop.core.moments import Moments
from openloop.estimators import stratified as strata
from openloop.estimators import weighted
from openloop.kernels.ties import expected_discount
from openloop.metrics.ranking import average_discounted_gain, normalised_gain

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankedCells:
    """Relevant cells, sorted by user, and where each model ranks them."""

    user: Array  # (n,)
    item: Array  # (n,)
    places: Array  # (M, 5, n), see models.trial
    n_users: int

    def where(self, keep: Mask) -> RankedCells:
        """Some of the cells."""
        return RankedCells(
            user=self.user[keep], item=self.item[keep], places=self.places[:, :, keep], n_users=self.n_users
        )

    def discounts(self, among: str, k: int | None) -> Floats:
        """1/log2(1 + rank) down to rank k, (M, n), ranked `among` items "outside" training, "all", or as "coded"."""
        if among == "coded":
            rank = self.places[:, 4]
            counts = (rank > 0) & (rank <= (k or rank.max(initial=0)))
            return np.where(counts, 1 / np.log2(1 + np.maximum(rank, 1)), 0.0)
        first = 0 if among == "outside" else 2
        h, e = self.places[:, first], self.places[:, first + 1]
        return expected_discount(h.ravel(), e.ravel(), k).reshape(h.shape)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scores:
    """What one method says of every model, M estimates over the same users."""

    estimates: tuple[Estimate, ...]

    @property
    def value(self) -> Floats:
        """The score of each model, (M,)."""
        return np.array([estimate.value for estimate in self.estimates])

    def reweighted(self, users: Floats) -> Floats:
        """The scores under weightings (W, U) of the users, (W, M); NaN where no weighted user has a cell."""
        first = self.estimates[0]
        columns = np.stack([estimate.columns for estimate in self.estimates])  # (M, U, m)
        with np.errstate(invalid="ignore"):
            return first.function(np.einsum("muc,wu->wmc", columns, users, optimize=True))


def stacked(outcomes: Sequence[dict[str, Array]], part: str, user: Array, item: Array, n_users: int) -> RankedCells:
    """The cells of the models' trials, "closed" or "open", in the trials' order."""
    return RankedCells(user=user, item=item, places=np.array([found[part] for found in outcomes]), n_users=n_users)


# -- methods -------------------------------------------------------------------------------------------------


def holdout(cells: RankedCells, among: str, k: int | None) -> Scores:
    """R_holdout: the mean nDCG over users (Eq. 1)."""
    return _scores(weighted.naive, moments(cells, normalised_gain(k), cells.discounts(among, k)))


def ips_eq3(cells: RankedCells, among: str, k: int | None, weight: Floats) -> Scores:
    """R_IPS as printed (Eq. 3): each discount over p, the ideal as if there were no p."""
    return _scores(weighted.ips_eq3, weighted_moments(cells, normalised_gain(k), cells.discounts(among, k), weight))


def snips(cells: RankedCells, among: str, k: int | None, weight: Floats) -> Scores:
    """Each user's weighted nDCG, its ideal in the order of the weights."""
    return _scores(weighted.snips, weighted_moments(cells, normalised_gain(k), cells.discounts(among, k), weight))


def snips_of_adg(cells: RankedCells, among: str, k: int | None, weight: Floats) -> Scores:
    """Σ_uΣ wc/Σ_uΣ w, c the discount down to rank k."""
    return _scores(
        weighted.snips, weighted_moments(cells, average_discounted_gain(), cells.discounts(among, k), weight)
    )


def stratified(cells: RankedCells, among: str, k: int | None, stratum: Ints, share: Floats) -> Scores:
    """E(Y) = Σ_x E(Y | X = x) P(X = x) (Eq. 4); `stratum` (n,) of each cell, `share` (S,) the P(X = x)."""
    found = moments(cells, normalised_gain(k), cells.discounts(among, k), stratum, len(share))
    return _scores(partial(strata.stratified, share=share), found)


def _scores(estimator: weighted.Estimator, found: Iterable[Moments]) -> Scores:
    return Scores(estimates=tuple(estimator(m) for m in found))


# -- moments -------------------------------------------------------------------------------------------------


def moments(
    cells: RankedCells, metric: Metric, gain: Floats, stratum: Ints | None = None, n_strata: int = 1
) -> Iterator[Moments]:
    """The sums of each model's gains, (M, n), by user and stratum."""
    shape = cells.n_users, n_strata
    group = cells.user.astype(np.int64) * n_strata + (0 if stratum is None else stratum)
    n = np.bincount(group, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
    for total in group_sums(gain, group, n.size):
        yield Moments(metric=metric, sums={"n": n, "gain": total.reshape(shape)}, cells=_no_candidates(cells))


def weighted_moments(cells: RankedCells, metric: Metric, gain: Floats, weight: Floats) -> Iterator[Moments]:
    """The sums of each model's weighted gains, (M, n), by user; `weight` (n,)."""
    user, U = cells.user, cells.n_users
    known = {
        "n": np.bincount(user, minlength=U), "weight": np.bincount(user, weight, minlength=U),
        "ideal": ideal(weight, user, U, metric.k),
    }  # fmt: skip
    shared = {name: np.asarray(sums, np.float64)[:, None] for name, sums in known.items()}
    for total in group_sums(gain * weight, user.astype(np.int64), U):
        yield Moments(metric=metric, sums={**shared, "wgain": total[:, None]}, cells=_no_candidates(cells))


def _no_candidates(cells: RankedCells) -> Floats:
    """|C_u|, of which neither nDCG nor adg makes use."""
    return np.zeros(cells.n_users)


def group_sums(values: Floats, group: Ints, n_groups: int) -> Floats:
    """Σ of the cells of each group: (M, n) to (M, groups)."""
    from scipy.sparse import csr_array

    n = len(group)
    owns = csr_array((np.ones(n), group, np.arange(n + 1)), shape=(n, n_groups))
    return np.asarray(values @ owns)


def ideal(weight: Floats, user: Array, n_users: int, k: int | None) -> Floats:
    """Σ weight·discount with each user's cells in descending order of weight, cut at k, (U,)."""
    order = np.lexsort((-weight, user))
    place = np.arange(len(user)) - np.searchsorted(user, user)  # from 0; user is sorted, so order keeps its runs
    discount = expected_discount(place, np.ones_like(place), k)
    return np.bincount(user, weight[order] * discount, minlength=n_users).astype(np.float64)
