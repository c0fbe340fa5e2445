"""What a model must beat: `Random`, `GlobalAverage`, `Popularity`, and `Bias`, the offsets a_u + b_i + c alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, cg

from openloop.core.feedback import Array, Feedback, Floats
from openloop.errors import DivergenceError
from openloop.learners.base import FactorLearner, Learner, Weights, check_number, unseen_notes, weights
from openloop.support.arguments import generator


class Random(Learner):
    """A score in [0, 1) for each cell, from a hash of (seed, user, item): the random permutation of the candidates.

    The same on every call, whatever else is asked for at the same time. Learned: `seed_`.
    """

    seed_: int

    def __init__(self, rng: int | np.random.Generator = 0) -> None:
        self.rng: Any = rng

    def fit(self, feedback: Feedback, sample_weight: Weights = None, propensities: Any = None) -> Random:
        """Nothing to learn but the grid; weights change nothing."""
        weights(self, feedback, sample_weight, propensities)
        self.seed_ = int(generator(type(self).__name__, self.rng).integers(2**63))
        return self._remember(feedback)

    def predict(self, user: npt.ArrayLike, item: npt.ArrayLike) -> Array:
        """The score of each (user, item) pair of codes; it is no rating."""
        from openloop.kernels.uniforms import cell_uniforms

        u, i = self._pairs(user, item)
        return cell_uniforms(self.seed_, u, i)

    def scores(self, users: npt.ArrayLike) -> Array:
        """The scores of all items for these users, (B, I)."""
        from openloop.kernels.uniforms import block_uniforms

        u = self._users(users)
        return block_uniforms(self.seed_, u, len(self.items_))


class GlobalAverage(Learner):
    """Ŷ = Σwy/Σw for every cell. Learned: `mean_`."""

    mean_: float

    def fit(self, feedback: Feedback, sample_weight: Weights = None, propensities: Any = None) -> GlobalAverage:
        """Learn the weighted mean rating."""
        w = weights(self, feedback, sample_weight, propensities)
        self.mean_ = float(np.average(feedback.rating, weights=w))
        return self._remember(feedback)

    def predict(self, user: npt.ArrayLike, item: npt.ArrayLike) -> Array:
        """The mean, for each (user, item) pair of codes."""
        u, _ = self._pairs(user, item)
        return np.full(len(u), self.mean_)

    def scores(self, users: npt.ArrayLike) -> Array:
        """The mean for all items and these users, (B, I)."""
        u = self._users(users)
        return np.full((len(u), len(self.items_)), self.mean_)


class Popularity(Learner):
    """The score of an item is how many rows it has, each counted by its weight (of mean 1).

    It ranks, and is no rating: do not ask it for mae or mse. Learned: `item_counts_` (I,).
    """

    item_counts_: Array  # (I,)

    def fit(self, feedback: Feedback, sample_weight: Weights = None, propensities: Any = None) -> Popularity:
        """Count the rows of each item, whatever their ratings."""
        w = weights(self, feedback, sample_weight, propensities)
        self.item_counts_ = np.bincount(feedback.item, weights=w, minlength=feedback.n_items)
        return self._remember(feedback)

    def predict(self, user: npt.ArrayLike, item: npt.ArrayLike) -> Array:
        """The item's count, for each (user, item) pair of codes."""
        _, i = self._pairs(user, item)
        return self.item_counts_[i]

    def scores(self, users: npt.ArrayLike) -> Array:
        """The counts of all items for these users, (B, I)."""
        u = self._users(users)
        return np.tile(self.item_counts_, (len(u), 1))


class Bias(FactorLearner):
    """Ŷ = a_u + b_i + c, which minimises Σ w(y - Ŷ)² + λ(‖a‖² + ‖b‖²), λ = `reg`, w of mean 1; c is free.

    With `reg=0` many (a, b, c) fit equally well; of these it takes the one with the smallest ‖a‖² + ‖b‖², to which
    a vanishing reg leads. Learned: `user_bias_` (U,), `item_bias_` (I,), `intercept_`; the factors have no columns.
    """

    penalties_beside_row_sum = ("reg",)

    def __init__(self, reg: float = 10.0) -> None:
        self.reg = reg

    def fit(self, feedback: Feedback, sample_weight: Weights = None, propensities: Any = None) -> Bias:
        """Solve the weighted ridge regression."""
        w, reg = weights(self, feedback, sample_weight, propensities), check_number(self, "reg")
        U, I = feedback.n_users, feedback.n_items
        a, b, c = offsets(feedback.user, feedback.item, feedback.rating.astype(np.float64), w, (U, I), reg)
        self.user_factors_, self.item_factors_ = np.zeros((U, 0)), np.zeros((I, 0))
        self.user_bias_, self.item_bias_, self.intercept_ = a, b, c
        return self._remember(feedback, *unseen_notes(feedback, "the other offsets alone"))


# -- the offsets ---------------------------------------------------------------------------------------------

TOLERANCE = 1e-13  # of the residual, relative


def offsets(
    user: Array, item: Array, y: Floats, w: Floats, shape: tuple[int, int], reg: float
) -> tuple[Floats, Floats, float]:
    """a (U,), b (I,) and c of least Σ w(y - a_u - b_i - c)² + reg·(‖a‖² + ‖b‖²)."""
    from threadpoolctl import threadpool_limits

    mean = float(np.average(y, weights=w))
    unit = float(np.abs(y).max()) or 1.0
    R = coo_array((w, (user, item)), shape).tocsr()  # (U, I), the weights
    wy = w * ((y - mean) / unit)
    s_user, s_item = np.bincount(user, wy, minlength=shape[0]), np.bincount(item, wy, minlength=shape[1])
    with threadpool_limits(1, "blas"):  # a sum in parts would round by the number of threads
        a, b, c = _solve(R, s_user, s_item, reg)
    if reg == 0:
        a, b, c = _least_norm(R, a, b, c)
    return unit * a, unit * b, unit * c + mean


def _solve(R: csr_array, s_user: Array, s_item: Array, reg: float) -> tuple[Floats, Floats, float]:
    """The normal equations with a eliminated, by conjugate gradients; s_user and s_item are the sums of wy.

    With z = (b, c), D = diag(R1) + λ, B = [R, R1]:  a = D⁻¹(s_user - Bz),
    (diag(Rᵀ1) + λ, Rᵀ1; 1ᵀR, 1ᵀR1) z - BᵀD⁻¹Bz = (s_item, 1ᵀs_user) - BᵀD⁻¹s_user.
    """
    of_user, of_item = R.sum(axis=1), R.sum(axis=0)  # R1 (U,), Rᵀ1 (I,)
    D = _positive(of_user + reg)
    Rt, total, I = R.T.tocsr(), of_user.sum(), len(of_item)

    def spread(z: Floats) -> Floats:
        return R @ z[:I] + of_user * z[I]  # Bz, (U,)

    def gather(x: Floats) -> Floats:
        return np.append(Rt @ x, of_user @ x)  # Bᵀx, (I + 1,)

    def schur(z: Floats) -> Floats:
        own = np.append((of_item + reg) * z[:I] + of_item * z[I], of_item @ z[:I] + total * z[I])
        return own - gather(spread(z) / D)

    right = np.append(s_item, s_user.sum()) - gather(s_user / D)
    z = _conjugate_gradients(schur, right, np.sqrt(np.append(_positive(of_item + reg), total)), reg)
    return (s_user - spread(z)) / D, z[:I], float(z[I])


def _positive(sums: Floats) -> Floats:
    """A divisor: who has no rows, and no penalty, stays at 0."""
    return np.where(sums > 0, sums, 1.0)


def _conjugate_gradients(schur: Callable[[Floats], Floats], right: Floats, q: Floats, reg: float) -> Floats:
    """z of schur(z) = right, solved for q·z: so the residual of an item with one row counts as that of any other."""
    size = len(right)
    scaled: Any = LinearOperator((size, size), matvec=lambda x: schur(x.ravel() / q) / q)  # pyright: ignore[reportCallIssue]
    noise = float(np.finfo(np.float64).eps * q[-1])  # where all ratings are equal, right is nothing else
    x, failed = cg(scaled, right / q, rtol=TOLERANCE, atol=noise, maxiter=1000 + 10 * size)
    if failed:
        raise DivergenceError(f"Bias: the offsets were not found in {failed:,} steps; pass a larger reg= than {reg:g}.")
    return x / q


def _least_norm(R: csr_array, a: Floats, b: Floats, c: float) -> tuple[Floats, Floats, float]:
    """The shift of least ‖a‖² + ‖b‖² among those that leave every fitted value alone.

    In each connected part g of the graph of ratings a may rise by s_g and b by -s_g - t, while c rises by t:
    t = Σ h_g(ā_g + b̄_g)/Σ h_g with h_g = U_g·I_g/(U_g + I_g), and s_g = (Σb - I_g·t - Σa)/(U_g + I_g).
    """
    U = len(a)
    graph = coo_array(R)
    edges = coo_array((np.ones(graph.nnz), (graph.row, graph.col + U)), (U + len(b), U + len(b)))
    parts, of = connected_components(edges, directed=False)
    of_a, of_b = of[:U], of[U:]
    n_a, n_b = (np.bincount(o, minlength=parts).astype(float) for o in (of_a, of_b))
    sum_a, sum_b = (np.bincount(o, v, minlength=parts) for o, v in ((of_a, a), (of_b, b)))
    h = n_a * n_b / (n_a + n_b)
    t = float(h @ (sum_a / np.maximum(n_a, 1) + sum_b / np.maximum(n_b, 1)) / h.sum())
    s = (sum_b - n_b * t - sum_a) / (n_a + n_b)
    linked = (n_a > 0) & (n_b > 0)  # who has no rows stays at 0
    a = np.where(linked[of_a], a + s[of_a], 0.0)
    b = np.where(linked[of_b], b - s[of_b] - t, 0.0)
    return a, b, c + t
