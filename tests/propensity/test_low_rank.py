"""One-bit matrix completion: the contract, and the optimum of its convex problem."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from openloop.core.feedback import Feedback
from openloop.propensity.low_rank import LowRank
from tests.contracts import PropensityModelContract


class TestLowRank(PropensityModelContract):
    def make(self):
        return LowRank()


def log_of(O: np.ndarray, **columns) -> Feedback:
    user, item = np.nonzero(O)
    U, I = O.shape
    return Feedback.from_arrays(user, item, np.ones(len(user)), users=U, items=I, **columns)


def small_log() -> Feedback:
    rng = np.random.default_rng(3)
    return log_of(rng.random((14, 11)) < expit(-0.5 + rng.standard_normal((14, 1)) * rng.standard_normal(11)))


# ------------------------------------------------------------------------------------------ by another program


def ball(X: np.ndarray, bound: float) -> np.ndarray:
    """The nearest matrix with ‖X‖_* ≤ bound: its singular values, projected to the simplex (Duchi et al. 2008)."""
    left, values, right = np.linalg.svd(X, full_matrices=False)
    if values.sum() <= bound:
        return X
    above = (np.cumsum(values) - bound) / np.arange(1, len(values) + 1)
    return left * np.maximum(values - above[np.flatnonzero(values > above)[-1]], 0) @ right


def convex_twin(O: np.ndarray, radius: float) -> float:
    """The largest likelihood over all A = μ + B with ‖B‖_* ≤ τ√(U·I): projected gradient, with momentum, in B."""
    size = np.sqrt(O.size)
    B, last, m, last_m, t = np.zeros(O.shape), np.zeros(O.shape), 0.0, 0.0, 1.0
    for _ in range(3000):
        t, momentum = (1 + np.sqrt(1 + 4 * t * t)) / 2, (t - 1) / ((1 + np.sqrt(1 + 4 * t * t)) / 2)
        C, n = B + momentum * (B - last), m + momentum * (m - last_m)
        G = expit(n / size + C) - O
        # The curvature by B and m = μ√(U·I) together is at most 2/4.
        last, last_m, B, m = B, m, ball(C - 2 * G, radius * size), n - 2 * G.sum() / size
    A = m / size + B
    return float(np.sum(O * A - np.logaddexp(0, A)))


@pytest.mark.parametrize("radius", [0.2, 0.6, 2.0])
def test_the_factors_reach_the_optimum_of_the_convex_problem(radius):
    log = small_log()
    O = np.zeros((14, 11))
    O[log.user, log.item] = 1
    ours = LowRank(radius=radius, rank=12, tol=1e-9, max_iter=20_000).fit(log).log_likelihood_
    assert np.isclose(ours, convex_twin(O, radius), rtol=1e-6)
