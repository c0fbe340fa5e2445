"""`Features`: ratings by who the user is and what the item is, a ridge regression on products of covariates.

    f_ui = c + x_uᵀW z_i,    x = [1, centred user covariates], z = [1, centred item covariates],

W minimises Σ_O w(y - f)² + λ‖W‖², w of mean 1. Its first entry, 1·1, is c, which has no penalty: so Σ_O w(y - f) = 0.
No design matrix of products is made. Both sides of the normal equations are of the form Xᵀ(S∘…)Z with a sparse S as
large as the log, which is all that conjugate gradients need.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import LinearOperator, cg
from threadpoolctl import threadpool_limits

from openloop.core.covariates import Covariates
from openloop.core.feedback import Array, Feedback, Floats
from openloop.errors import InputError
from openloop.kernels.products import factor_products
from openloop.learners.base import FactorLearner, Weights, check_number, weight_notes, weights

EXACT = 1e-12  # of the first residual of the normal equations: what is left of it at the end
STEPS = 2000  # of conjugate gradients; a few dozen do where the penalty is of use


class Features(FactorLearner):
    """A weighted ridge regression on all products of user and item covariates, and on each covariate by itself.

    Covariates are those of `ol.covariates`, or arrays with a row for each id in the vocabulary's order. One side is
    enough; the other's is then the constant alone. `reg` is λ beside a *sum* over ratings, whose weights are rescaled
    to mean 1; it takes covariates in the units that they have. Users and items without a rating are predicted as all
    others are. Learned: `weights_` is W, (1 + k, 1 + l).
    """

    penalties_beside_row_sum = ("reg",)
    weights_: Floats

    def __init__(self, user_features: Any = None, item_features: Any = None, reg: float = 100.0) -> None:
        self.user_features = user_features
        self.item_features = item_features
        self.reg = reg

    def fit(self, feedback: Feedback, sample_weight: Weights = None, propensities: Any = None) -> Self:
        """Solve the normal equations, in double precision."""
        w, reg = weights(self, feedback, sample_weight, propensities), check_number(self, "reg")
        users = Covariates.of(self.user_features, feedback.users, "user")
        items = Covariates.of(self.item_features, feedback.items, "item")
        if users is None and items is None:
            raise InputError(
                "Features: there are no covariates to learn from; pass user_features=, item_features= or both, which "
                "ol.covariates(table, log.users) and ol.covariates(table, log.items) make of tables."
            )
        X, Z = _centred(users, feedback.n_users), _centred(items, feedback.n_items)
        with threadpool_limits(1, "blas"):  # a sum in parts would round by the number of threads
            W, settled = NormalEquations.of(feedback, w, X, Z, reg).solve()
        self._keep(W, X, Z)
        notes = [note for side, given in (("user", users), ("item", items)) if given for note in given.remarks(side)]
        return self._remember(feedback, *weight_notes(w), *notes, *([] if settled else [_cut_short(reg)]))

    def _keep(self, W: Floats, X: Floats, Z: Floats) -> None:
        """x_uᵀW z_i as a factor model: W's first column gives offsets of users, its first row those of items."""
        self.weights_, self.intercept_ = W, float(W[0, 0])
        x, z, inner = X[:, 1:], Z[:, 1:], W[1:, 1:]
        self.user_bias_, self.item_bias_ = x @ W[1:, 0], z @ W[0, 1:]
        narrow = x.shape[1] <= z.shape[1]  # the fewer columns, the quicker are scores
        self.user_factors_, self.item_factors_ = (x, z @ inner.T) if narrow else (x @ inner, z)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NormalEquations:
    """Xᵀ(S∘XWZᵀ)Z + λW = Xᵀ(S∘Y)Z, S the weights of the rows and 0 elsewhere."""

    feedback: Feedback
    w: Floats  # (n,)
    X: Floats  # (U, 1 + k)
    Z: Floats  # (I, 1 + l)
    penalty: Floats  # λ, but 0 of the first entry, (1 + k, 1 + l)

    @classmethod
    def of(cls, feedback: Feedback, w: Floats, X: Floats, Z: Floats, reg: float) -> NormalEquations:
        """Those of a log with these weights and covariates."""
        penalty = np.full((X.shape[1], Z.shape[1]), reg)
        penalty[0, 0] = 0.0
        return cls(feedback=feedback, w=w, X=X, Z=Z, penalty=penalty)

    def solve(self) -> tuple[Floats, bool]:
        """W, and whether it is exact; from the mean on, by conjugate gradients preconditioned by the diagonal."""
        shape, size = self.penalty.shape, self.penalty.size
        y = self.feedback.rating.astype(np.float64)
        mean = np.average(y, weights=self.w)
        diagonal = (self.summed(self.w, self.X**2, self.Z**2) + self.penalty).ravel()
        diagonal[diagonal == 0] = 1.0  # of columns that are 0, as their right side is
        operator: Any = LinearOperator
        A = operator((size, size), matvec=lambda d: self.times(d.reshape(shape)).ravel(), dtype=np.float64)
        right = self.summed(self.w * (y - mean), self.X, self.Z)
        found, left = cg(A, right.ravel(), rtol=EXACT, maxiter=STEPS, M=diags_array(1 / diagonal))
        W = found.reshape(shape)
        W[0, 0] += mean
        return W, left == 0

    def times(self, W: Floats) -> Floats:
        """The left side."""
        predicted = factor_products(self.X @ W, self.Z, self.feedback.user, self.feedback.item)  # (n,)
        return self.summed(self.w * predicted, self.X, self.Z) + self.penalty * W

    def summed(self, values: Array, X: Floats, Z: Floats) -> Floats:
        """Σ_O v x_u z_iᵀ."""
        S = csr_array((values, self.feedback.item, self.feedback.user_ptr), shape=(len(X), len(Z)))  # (U, I)
        return X.T @ (S @ Z)


def _centred(given: Covariates | None, n: int) -> Floats:
    """[1, covariates less their means over all ids], (n, 1 + k); without covariates the 1 alone."""
    ones = np.ones((n, 1))
    return ones if given is None else np.column_stack([ones, given.values - given.values.mean(axis=0)])


def _cut_short(reg: float) -> str:
    return f"stopped after {STEPS:,} steps, before the equations were solved; pass a reg above {reg:g}"
