"""`Features`: ratings by who the user is and what the item is, a ridge regression on products of covariates.

    f_ui = c + x_uᵀW z_i,    x = [1, centred user covariates], z = [1, centred item covariates],

W minimises Σ_O w(y - f)² + λ‖W‖², w of mean 1. Its first entry, 1·1, is c, which has no penalty: so Σ_O w(y - f) = 0.
No design matrix of products is made: both sides of the normal equations are sums Xᵀ(S∘…)Z, S sparse and as large as
the log.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from openloop.core.covariates import Covariates
from openloop.core.feedback import Feedback, Floats
from openloop.errors import DivergenceError, InputError
from openloop.learners.base import FactorLearner, Weights, check_number, weight_notes, weights

MOST = 10_000  # products: their normal matrix then takes 800 MB


class Features(FactorLearner):
    """A weighted ridge regression (Hoerl & Kennard 1970) on covariates of users and items, and on all their products.

    Users and items without a rating are predicted like all others. With covariates of one side only, the other side has
    the constant alone.

    Args:
        user_features: `Covariates` of users, or an array (U, k) in the order of the vocabulary.
        item_features: The same for items (I, l).
        reg: λ beside a *sum* over ratings, with weights rescaled to mean 1. Covariates keep their units, so scale them
            first.

    Attributes:
        weights_: W (1 + k, 1 + l).
        users_: The users of the log, a `Vocabulary`.
        items_: The items of the log, a `Vocabulary`.
        notes_: What the fit reports, a tuple of sentences.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.movie_lovers().observe(rng=0)
        >>> import numpy as np
        >>> loves_romance = (np.arange(100) >= 50)[:, None].astype(float)  # (U, 1)
        >>> is_romance = ((np.arange(80) >= 30) & (np.arange(80) < 60))[:, None].astype(float)  # (I, 1)
        >>> model = ol.learners.Features(loves_romance, is_romance, reg=1.0).fit(log)
        >>> model.weights_.shape
        (2, 2)
    """

    penalties_beside_row_sum = ("reg",)
    weights_: Floats

    def __init__(self, user_features: Any = None, item_features: Any = None, reg: float = 100.0) -> None:
        self.user_features = user_features
        self.item_features = item_features
        self.reg = reg

    def fit(self, feedback: Feedback, sample_weight: Weights = None, propensities: Any = None) -> Self:
        """Solve the normal equations, in double precision.

        Args:
            feedback: The training rows.
            sample_weight: One positive weight per row in Feedback order, or the rows' `Propensities` (weights 1/p).
                None gives all rows the same weight.
            propensities: p instead of weights: `Propensities`, a fitted propensity model, or an array with p of each
                row (n,) or of each cell (U, I). Pass `sample_weight` or `propensities`, not both.

        Returns:
            The fitted learner itself.
        """
        w, reg = weights(self, feedback, sample_weight, propensities), check_number(self, "reg", positive=True)
        users = Covariates.of(self.user_features, feedback.users, "user")
        items = Covariates.of(self.item_features, feedback.items, "item")
        if users is None and items is None:
            raise InputError(
                "Features: there are no covariates to learn from; pass user_features=, item_features= or both, which "
                "ol.covariates(table, log.users) and ol.covariates(table, log.items) make of tables."
            )
        X, Z = _centred(users, feedback.n_users), _centred(items, feedback.n_items)
        if X.shape[1] * Z.shape[1] > MOST:
            raise InputError(
                f"Features: {X.shape[1] - 1:,} user and {Z.shape[1] - 1:,} item columns have more than {MOST:,} "
                "products; leave columns out, or group their levels."
            )
        with threadpool_limits(1, "blas"):  # a sum in parts would round by the number of threads
            self._keep(solve(feedback, w, X, Z, reg), X, Z)
        notes = [note for side, given in (("user", users), ("item", items)) if given for note in given.remarks(side)]
        return self._remember(feedback, *weight_notes(w), *notes)

    def _keep(self, W: Floats, X: Floats, Z: Floats) -> None:
        """x_uᵀW z_i as a factor model: W's first column gives offsets of users, its first row those of items."""
        self.weights_, self.intercept_ = W, float(W[0, 0])
        x, z, inner = X[:, 1:], Z[:, 1:], W[1:, 1:]
        self.user_bias_, self.item_bias_ = x @ W[1:, 0], z @ W[0, 1:]
        narrow = x.shape[1] <= z.shape[1]  # the fewer columns, the quicker are scores
        self.user_factors_, self.item_factors_ = (x, z @ inner.T) if narrow else (x @ inner, z)


def solve(feedback: Feedback, w: Floats, X: Floats, Z: Floats, reg: float) -> Floats:
    """W of x_uᵀW z_i, (1 + k, 1 + l), whose first entry has no penalty."""
    y = feedback.rating.astype(np.float64)
    mean = np.average(y, weights=w)  # taken off first, so that less is lost to rounding
    right = X.T @ (_sparse(feedback, w * (y - mean)) @ Z)
    A = normal_matrix(_sparse(feedback, w), X, Z)
    A.flat[:: len(A) + 1] += np.r_[0.0, np.full(len(A) - 1, reg)]
    try:
        W = cho_solve(cho_factor(A, lower=True, overwrite_a=True), right.ravel()).reshape(right.shape)
    except LinAlgError as error:
        raise DivergenceError(
            f"Features: the normal equations are singular at reg={reg:g} ({error}); pass a larger reg, or standardise "
            "the covariates."
        ) from error
    W[0, 0] += mean
    return W


def normal_matrix(S: Any, X: Floats, Z: Floats) -> Floats:
    """Σ_O w (x_u ⊗ z_i)(x_u ⊗ z_i)ᵀ, of products in the order of W's rows."""
    k, l = X.shape[1], Z.shape[1]
    if k > l:  # a pass over the rows for each column of X: better of the side that has fewer
        turned = normal_matrix(S.T, Z, X).reshape(l, k, l, k)
        return turned.transpose(1, 0, 3, 2).reshape(k * l, k * l)
    A = np.empty((k, l, k, l))
    for a in range(k):
        by_item = (S.T @ (X[:, a : a + 1] * X)).T  # Σ_u w x_ua x_u, (k, I)
        for b in range(l):
            A[a, b] = by_item @ (Z[:, b : b + 1] * Z)
    return A.reshape(k * l, k * l)


def _sparse(feedback: Feedback, values: Floats) -> Any:
    """The values of the rows as a matrix, (U, I)."""
    return csr_array((values, feedback.item, feedback.user_ptr), shape=(feedback.n_users, feedback.n_items))


def _centred(given: Covariates | None, n: int) -> Floats:
    """[1, covariates less their means over all ids], (n, 1 + k); without covariates the 1 alone."""
    ones = np.ones((n, 1))
    return ones if given is None else np.column_stack([ones, given.values - given.values.mean(axis=0)])
