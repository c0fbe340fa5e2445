"""Evaluation methods: from the places of relevant cells to a score for every model.

A method sees cells (user, item), how much each counts, and each model's discounts there; nothing about models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Floats
from openloop.errors import UndefinedError
from openloop.kernels.ties import expected_discount

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """Relevant cells, sorted by user, and where each model ranks them."""

    user: Array  # (n,)
    item: Array  # (n,)
    places: Array  # (M, 5, n), see models.trial
    n_users: int

    def where(self, keep: Mask) -> Cells:
        """Some of the cells."""
        return Cells(user=self.user[keep], item=self.item[keep], places=self.places[:, :, keep], n_users=self.n_users)

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
class Scored:
    """A method's scores as sums over users: Σ_s share_s · (Σ_u top)/(Σ_u bottom), for any weighting of the users."""

    top: Floats  # (S, M, U)
    bottom: Floats  # (S, U)
    share: Floats  # (S,)

    def value(self, weights: Floats | None = None) -> Floats:
        """The score of each model, (M,); with weights (B, U) of the users, (B, M), NaN where none has a cell."""
        w = np.ones((1, self.bottom.shape[1])) if weights is None else weights
        top = np.einsum("smu,bu->bsm", self.top, w, optimize=True)  # (B, S, M)
        bottom = w @ self.bottom.T  # (B, S)
        # A stratum without a relevant cell leaves its share to the others.
        share = np.where(bottom > 0, self.share, 0.0)
        inside = top / np.where(bottom > 0, bottom, 1.0)[:, :, None]
        total = share.sum(axis=1, keepdims=True)
        if weights is None and not total.all():
            raise UndefinedError(
                "nDCG is undefined: no relevant cell is held out there; use more data or fewer strata."
            )
        sums = np.einsum("bs,bsm->bm", share, inside)
        found = np.divide(sums, total, out=np.full(sums.shape, np.nan), where=total > 0)
        return found[0] if weights is None else found


def stacked(outcomes: Sequence[dict[str, Array]], part: str, user: Array, item: Array, n_users: int) -> Cells:
    """The cells of the models' trials, "closed" or "open", in the trials' order."""
    return Cells(user=user, item=item, places=np.array([found[part] for found in outcomes]), n_users=n_users)


def user_sums(values: Floats, user: Array, n_users: int) -> Floats:
    """Σ of the cells of each user: (M, n) to (M, U)."""
    from scipy.sparse import csr_array

    n = len(user)
    owns = csr_array((np.ones(n), user.astype(np.int64), np.arange(n + 1)), shape=(n, n_users))
    return np.asarray(values @ owns)


def ideal(weight: Floats, user: Array, n_users: int, k: int | None) -> Floats:
    """Σ weight·discount with each user's cells in descending order of weight, cut at k, (U,)."""
    order = np.lexsort((-weight, user))
    place = np.arange(len(user)) - np.searchsorted(user, user)  # 0-based; user is sorted, so order keeps its runs
    discount = np.where(place < (k or len(user)), 1 / np.log2(place + 2.0), 0.0)
    return np.bincount(user, weight[order] * discount, minlength=n_users).astype(np.float64)


def user_ndcg(cells: Cells, among: str, k: int | None, weight: Floats | None = None, *, own: bool = True) -> Floats:
    """nDCG@k of each model and user, (M, U), NaN for users without a cell.

    With `weight` (n,) discounts are weighted, and so is the ideal; not so with `own` off, as in Eq. 3.
    """
    w = np.ones(len(cells.user)) if weight is None else weight
    top = user_sums(cells.discounts(among, k) * w, cells.user, cells.n_users)  # (M, U)
    bottom = ideal(w if own else np.ones(len(w)), cells.user, cells.n_users, k)  # (U,)
    return np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom > 0)


def mean_over_users(*values: Floats, share: Sequence[float] | Floats = (1.0,)) -> Scored:
    """The mean over users who have a value (Eq. 1), or over strata such means (Eq. 4); values (M, U) each."""
    held = [np.isfinite(v[0]) for v in values]
    top = np.array([np.where(h, v, 0.0) for h, v in zip(held, values, strict=True)])
    return Scored(top=top, bottom=np.array(held, np.float64), share=np.asarray(share, np.float64))


def holdout(cells: Cells, among: str, k: int | None) -> Scored:
    """R_holdout: the mean nDCG over users (Eq. 1)."""
    return mean_over_users(user_ndcg(cells, among, k))


def ips_eq3(cells: Cells, among: str, k: int | None, weight: Floats) -> Scored:
    """R_IPS as printed (Eq. 3): each discount over p, the ideal as if there were no p."""
    return mean_over_users(user_ndcg(cells, among, k, weight, own=False))


def snips(cells: Cells, among: str, k: int | None, weight: Floats) -> Scored:
    """Each user's weighted nDCG, its ideal in the order of the weights."""
    return mean_over_users(user_ndcg(cells, among, k, weight))


def pooled(cells: Cells, among: str, k: int | None, weight: Floats) -> Scored:
    """snips of adg: Σ_uΣ wc/Σ_uΣ w, c the discount down to rank k."""
    U = cells.n_users
    top = user_sums(cells.discounts(among, k) * weight, cells.user, U)
    bottom = np.bincount(cells.user, weight, minlength=U).astype(np.float64)
    return Scored(top=top[None], bottom=bottom[None], share=np.ones(1))


def stratified(cells: Cells, among: str, k: int | None, stratum: Ints, share: Floats) -> Scored:
    """E(Y) = Σ_x E(Y | X = x) P(X = x) (Eq. 4); `stratum` (n,) of each cell, `share` (S,) the P(X = x)."""
    inside = [user_ndcg(cells.where(stratum == s), among, k) for s in range(len(share))]
    return mean_over_users(*inside, share=share)
