"""`Exposure`: who saw what, as a score of cells and as columns of a stack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.linalg import qr
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from openloop.core.feedback import Array, Feedback, Floats
from openloop.errors import InputError
from openloop.learners.base import FactorLearner, Weights, check_whole, unseen_notes, weights
from openloop.learners.crossing import LatinFolds, latin_folds
from openloop.learners.factor_columns import FactorColumn, combined
from openloop.support.arguments import generator

SPARE = 6  # singular values beyond the rank: the last of them is what chance alone gives
NOTHING = 1e-4  # of the largest singular value
ROUNDS = 5  # of products with NNᵀ: on 20 M rows the last singular value comes out 1 % too small

Single = npt.NDArray[np.float32]


class Exposure(FactorLearner):
    """A low-rank model of who saw what, beyond activity and popularity; it ignores ratings.

    Cells are dealt into Latin folds. For each fold, with O the rows outside it and n_u, n_i, n their counts, the matrix

        N = (O − n_u n_i/n)/√((n_u + 1)(n_i + 1)/n), 0 at the fold's own cells,

    gives its `rank` largest singular values by a randomised SVD (Musco & Musco 2015), each reduced by the (rank + 6)th.
    The score is the mean over folds, each divided by its standard deviation over all cells. In a `Stack` there are
    three columns: the score, log(n_u + 1) and log(n_i + 1). For a training row, they come from the model without that
    row's fold; the folds are those of the stack. The scores rank items and are not ratings.

    Args:
        rank: The number of singular values.
        folds: The number of folds.
        rng: A seed or generator.

    Attributes:
        user_factors_: Factors of users.
        item_factors_: Factors of items.
        users_: The users of the log, a `Vocabulary`.
        items_: The items of the log, a `Vocabulary`.
        notes_: What the fit reports, a tuple of sentences.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.movie_lovers().observe(rng=0)
        >>> seen = ol.learners.Exposure(rank=2, rng=0).fit(log)
        >>> scores = seen.scores([0])[0]
        >>> bool(scores[:30].mean() > scores[30:60].mean())  # user 0 rates horror, items 0 to 29
        True
    """

    rates = False

    def __init__(self, rank: int = 8, folds: int = 4, rng: int | np.random.Generator = 0) -> None:
        self.rank = rank
        self.folds = folds
        self.rng = rng

    def fit(self, feedback: Feedback, sample_weight: Weights = None, propensities: Any = None) -> Self:
        """Find who saw what; weights are checked and have no effect.

        Args:
            feedback: The training rows.
            sample_weight: One positive weight per row in Feedback order, or the rows' `Propensities` (weights 1/p).
                None gives all rows the same weight.
            propensities: p instead of weights: `Propensities`, a fitted propensity model, or an array with p of each
                row (n,) or of each cell (U, I). Pass `sample_weight` or `propensities`, not both.

        Returns:
            The fitted learner itself.
        """
        weights(self, feedback, sample_weight, propensities)
        folds = latin_folds("Exposure", feedback, self.folds, self.rng)
        found = combined(
            [self.fold_columns(feedback, folds, k)[0] for k in range(folds.count)], [1 / folds.count] * folds.count
        )
        self.user_factors_, self.item_factors_ = found.V, found.W
        self.user_bias_, self.item_bias_, self.intercept_ = found.a, found.b, found.c
        return self._remember(feedback, *unseen_notes(feedback, "0 everywhere", "row"))

    def fold_columns(self, feedback: Feedback, folds: LatinFolds, k: int) -> list[FactorColumn]:
        """The score, activity and popularity, by the rows outside a fold.

        Args:
            feedback: All training rows.
            folds: The folds of the stack.
            k: The fold that is left out.

        Returns:
            Three columns.
        """
        seen = _Seen.of(feedback, folds, k)
        V, W = _low_rank(seen, self._checked_rank(feedback), _rng(self.rng, k))
        unit = _deviation(V, W) or 1.0
        U, I = feedback.n_users, feedback.n_items
        none, blank = (
            (np.zeros((U, 0), np.float32), np.zeros((I, 0), np.float32)),
            (np.zeros(U, np.float32), np.zeros(I, np.float32)),
        )
        return [
            FactorColumn(name="exposure", V=V / np.float32(unit), W=W, a=blank[0], b=blank[1]),
            FactorColumn(name="log n_u", V=none[0], W=none[1], a=np.log1p(seen.n_u).astype(np.float32), b=blank[1]),
            FactorColumn(name="log n_i", V=none[0], W=none[1], a=blank[0], b=np.log1p(seen.n_i).astype(np.float32)),
        ]

    def _checked_rank(self, feedback: Feedback) -> int:
        rank, least = check_whole(self, "rank"), min(feedback.n_users, feedback.n_items)
        if rank + SPARE > least:
            remedy = "leave it out" if least <= SPARE else f"pass rank={least - SPARE} or less"
            raise InputError(
                f"Exposure: rank={rank} needs a grid of at least {rank + SPARE} users and items, because {SPARE} more "
                f"singular values measure chance; this one is {feedback.n_users:,} × {feedback.n_items:,}; {remedy}."
            )
        return rank


def _rng(given: Any, k: int) -> np.random.Generator:
    """A stream for each fold, so that a fold's numbers do not depend on the others."""
    own = generator("Exposure", given)  # which refuses what is not a seed
    return own if isinstance(given, np.random.Generator) else np.random.default_rng([given, k])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Seen:
    """N of one fold, as products with it: sparse rows less a product of counts, both without the fold's cells."""

    O: csr_array  # (U, I), 1 at rows outside the fold
    n_u: Floats  # (U,)
    n_i: Floats  # (I,)
    folds: LatinFolds
    k: int

    @classmethod
    def of(cls, feedback: Feedback, folds: LatinFolds, k: int) -> _Seen:
        keep, shape = folds.of(feedback.user, feedback.item) != k, (feedback.n_users, feedback.n_items)
        item, n_u = feedback.item[keep], np.bincount(feedback.user[keep], minlength=shape[0])
        ptr = np.append(0, np.cumsum(n_u)).astype(np.int32 if len(item) < 2**31 else np.int64)  # as the items' type
        O = csr_array((np.ones(len(item), np.float32), item, ptr), shape)
        n_i = np.bincount(item, minlength=shape[1])
        return cls(O=O, n_u=n_u.astype(np.float64), n_i=n_i.astype(np.float64), folds=folds, k=k)

    @property
    def n(self) -> float:
        """How many rows are outside the fold."""
        return float(self.n_u.sum())

    @property
    def scales(self) -> tuple[Single, Single]:
        """√(n_u + 1) and √((n_i + 1)/n): N is divided by their product."""
        return np.sqrt(self.n_u + 1).astype(np.float32), np.sqrt((self.n_i + 1) / self.n).astype(np.float32)

    def times(self, X: Array) -> Single:
        """N X, (U, r)."""
        s_u, s_i = self.scales
        scaled = X / s_i[:, None]
        pull = _blocked(self.n_u, self.n_i / self.n, scaled, self.folds.of_user, self.folds.of_item, self.folds, self.k)
        return ((self.O @ scaled) - pull) / s_u[:, None]

    def transposed_times(self, X: Array) -> Single:
        """Nᵀ X, (I, r)."""
        s_u, s_i = self.scales
        scaled = X / s_u[:, None]
        pull = _blocked(self.n_i / self.n, self.n_u, scaled, self.folds.of_item, self.folds.of_user, self.folds, self.k)
        return ((self.O.T @ scaled) - pull) / s_i[:, None]


def _blocked(
    left: Floats, right: Floats, X: Array, of_left: Array, of_right: Array, folds: LatinFolds, k: int
) -> Single:
    """left_u Σ_i right_i X_i over the cells outside fold k: all items, less those of the group that is the fold's."""
    masked = (np.where(of_right == group, right, 0).astype(np.float32) for group in range(folds.count))
    sums = np.stack([one @ X for one in masked])  # (K, r)
    outside = sums.sum(axis=0) - sums[[folds.item_group(k, group) for group in range(folds.count)]]  # (K, r)
    return left.astype(np.float32)[:, None] * outside.astype(np.float32)[of_left]


def _low_rank(seen: _Seen, rank: int, rng: np.random.Generator) -> tuple[Single, Single]:
    """V and W of the score v_uᵀw_i, by randomised block Krylov (Musco & Musco 2015)."""
    with threadpool_limits(1, "blas"):  # a sum in parts would round by the number of threads
        block = _orthonormal(seen.times(rng.standard_normal((len(seen.n_i), rank + SPARE), np.float32)))  # (U, r + 6)
        blocks = [block]
        for _ in range(ROUNDS):
            block = _orthonormal(seen.times(_orthonormal(seen.transposed_times(block))))
            blocks.append(block)
        basis = _orthonormal(np.hstack(blocks))  # (U, B)
        left, sigma, Rt = np.linalg.svd(seen.transposed_times(basis).T, full_matrices=False)  # of QᵀN, (B, I)
    excess = np.maximum(sigma[:rank] - sigma[rank + SPARE - 1], 0)
    excess[excess < NOTHING * sigma[0]] = 0  # what rounding leaves of a flat spectrum
    V, W = (basis @ left[:, :rank]) * excess, Rt[:rank].T
    return np.ascontiguousarray(V, np.float32), np.ascontiguousarray(W, np.float32)


def _orthonormal(X: Single) -> Single:
    """An orthonormal basis of the columns, in their place; NumPy's would be made in double precision."""
    found: Any = qr(X, mode="economic", overwrite_a=True, check_finite=False)
    return found[0]


def _deviation(V: Single, W: Single) -> float:
    """The standard deviation of the score over all cells."""
    U, I = len(V), len(W)
    return FactorColumn(name="", V=V, W=W, a=np.zeros(U), b=np.zeros(I)).deviation
