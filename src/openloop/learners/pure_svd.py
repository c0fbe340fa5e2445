"""`PureSVD`: the best approximation of rank k to the ratings, a missing one counting as 0."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import coo_array

from openloop.core.feedback import Array, Feedback, Floats
from openloop.errors import DivergenceError, InputError
from openloop.learners.base import FactorLearner, Weights, check_rank, check_whole, unseen_notes, weights
from openloop.support.arguments import generator

NOTHING = 1e-7  # of the largest singular value: below it the eigenvalues of RᵀR, its squares, cannot be told from 0


class PureSVD(FactorLearner):
    """R̂ = UΣQᵀ, the `factors` largest singular values of R (Cremonesi, Koren & Turrin 2010, Eq. 4).

    R is w·y where a rating was observed, and 0 elsewhere: with w = 1/p its expectation is the complete matrix of
    ratings, up to a factor. The scores rank items and are not ratings, since unobserved cells pull them towards 0.

    Args:
        factors: The number K of singular values.
        rng: A seed or generator for the start of the iteration.

    Attributes:
        user_factors_: UΣ (U, K).
        item_factors_: Q (I, K).
        singular_values_: The diagonal of Σ (K,).
        users_: The users of the log, a `Vocabulary`.
        items_: The items of the log, a `Vocabulary`.
        notes_: What the fit reports, a tuple of sentences.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.movie_lovers().observe(rng=0)
        >>> svd = ol.learners.PureSVD(factors=3, rng=0).fit(log)
        >>> svd.singular_values_.shape, svd.scores([0, 1]).shape
        ((3,), (2, 80))
    """

    rates = False
    singular_values_: Array  # Σ, (K,)

    def __init__(self, factors: int = 50, rng: int | np.random.Generator = 0) -> None:
        self.factors = factors
        self.rng: Any = rng

    def fit(self, feedback: Feedback, sample_weight: Weights = None, propensities: Any = None) -> PureSVD:
        """Find the largest singular values and their vectors.

        Args:
            feedback: The training rows.
            sample_weight: One positive weight per row in Feedback order, or the rows' `Propensities` (weights 1/p).
                None gives all rows the same weight.
            propensities: p instead of weights: `Propensities`, a fitted propensity model, or an array with p of each
                row (n,) or of each cell (U, I). Pass `sample_weight` or `propensities`, not both.

        Returns:
            The fitted learner itself.
        """
        w, K = weights(self, feedback, sample_weight, propensities), check_whole(self, "factors")
        check_rank(self, K, feedback.n_users, feedback.n_items)
        U, I = feedback.n_users, feedback.n_items
        R = coo_array((w * feedback.rating, (feedback.user, feedback.item)), (U, I)).tocsr()
        if not R.data.any():
            raise InputError("PureSVD: all ratings are 0, which also represents a missing rating; add 1 to them.")
        P, sigma, Q = _largest(R, K, generator(type(self).__name__, self.rng))
        self.user_factors_, self.item_factors_, self.singular_values_ = np.ascontiguousarray(P * sigma), Q, sigma
        self.user_bias_, self.item_bias_, self.intercept_ = np.zeros(U), np.zeros(I), 0.0
        return self._remember(feedback, *_rank_notes(sigma), *unseen_notes(feedback, "0 everywhere"))


def _rank_notes(sigma: Floats) -> list[str]:
    rank, K = int((sigma > 0).sum()), len(sigma)
    return [] if rank == K else [f"the ratings have rank {rank}, so {K - rank} of {K} factors are 0"]


def _largest(R: Any, K: int, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """The K largest singular triplets, (U, K), (K,) and (I, K), in descending order; those of 0 are 0 throughout."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, "blas"):  # a sum in parts would round by the number of threads
        triplets = _triplets(R, K, rng)
    if not all(np.isfinite(x).all() for x in triplets):
        raise DivergenceError(
            "PureSVD: the singular vectors are not finite; pass fewer factors=, or scale the ratings."
        )
    left, sigma, right = triplets
    order = np.argsort(-sigma, kind="stable")
    some = sigma[order] > NOTHING * sigma.max()
    P, s, Q = (np.where(some, x, 0.0) for x in (left[:, order], sigma[order], right[order].T))
    # A pair of singular vectors may change sign together: the largest entry of each column of Q is positive.
    sign = np.where(Q[np.abs(Q).argmax(axis=0), np.arange(K)] < 0, -1.0, 1.0)
    return P * sign, s, np.ascontiguousarray(Q * sign)


def _triplets(R: Any, K: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    from scipy.sparse.linalg import ArpackError, svds

    least = min(R.shape)
    if least == K:  # the iteration needs room for one more
        P, sigma, Qt = np.linalg.svd(R.toarray(), full_matrices=False)
        return P, sigma, Qt
    try:
        found: Any = svds(R, K, v0=rng.standard_normal(least))
    except ArpackError as error:
        raise DivergenceError(f"PureSVD: {K} singular values were not found ({error}); pass fewer factors=.") from error
    return found
