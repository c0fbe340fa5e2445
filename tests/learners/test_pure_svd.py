"""PureSVD: the best rank-k approximation, by law, and beside the dense decomposition."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.core.feedback import Feedback
from openloop.errors import InputError
from openloop.learners.pure_svd import PureSVD
from tests.contracts import PersonalRecommenderContract
from tests.facts import facts


class TestPureSVD(PersonalRecommenderContract):
    def make(self):
        return PureSVD(factors=2)


class TestPureSVDOfPositives(PersonalRecommenderContract):
    implicit = True

    def make(self):
        return PureSVD(factors=2, rng=7)


def table(Y: np.ndarray, observed: np.ndarray) -> Feedback:
    u, i = np.nonzero(observed)
    return Feedback.from_arrays(u, i, Y[u, i], users=Y.shape[0], items=Y.shape[1])


def sparse(seed: int = 0, shape: tuple[int, int] = (30, 22)) -> tuple[Feedback, np.ndarray]:
    rng = np.random.default_rng(seed)
    Y, observed = rng.integers(1, 6, shape).astype(float), rng.random(shape) < 0.3
    return table(Y, observed), np.where(observed, Y, 0)


@pytest.mark.parametrize("shape", [(30, 22), (22, 30)])
@pytest.mark.parametrize("K", [1, 5, 21, 22])
def test_it_is_the_best_approximation_of_that_rank(shape, K):
    log, R = sparse(1, shape)
    model = PureSVD(factors=K).fit(log)
    P, sigma, Qt = np.linalg.svd(R)
    np.testing.assert_allclose(model.singular_values_, sigma[:K], rtol=1e-9)
    np.testing.assert_allclose(model.scores(range(shape[0])), (P[:, :K] * sigma[:K]) @ Qt[:K], atol=1e-9)


def test_user_factors_are_the_ratings_folded_in():
    # Cremonesi et al. 2010: r̂_u = r_u Q Qᵀ.
    log, R = sparse(2)
    model = PureSVD(factors=4).fit(log)
    np.testing.assert_allclose(model.user_factors_, R @ model.item_factors_, atol=1e-9)
    np.testing.assert_allclose(model.item_factors_.T @ model.item_factors_, np.eye(4), atol=1e-9)


def test_weights_multiply_the_ratings():
    log, _ = sparse(3)
    w = np.random.default_rng(0).exponential(size=len(log)) + 0.1
    weighted = Feedback.from_arrays(log.user, log.item, log.rating * w / w.mean(), users=30, items=22)
    one, other = PureSVD(factors=3).fit(log, w), PureSVD(factors=3).fit(weighted)
    np.testing.assert_allclose(one.scores(range(30)), other.scores(range(30)), atol=1e-5)  # ratings are float32


def test_more_factors_than_the_grid_has_are_refused():
    with pytest.raises(InputError, match=facts("PureSVD", "factors", 22, 23)):
        PureSVD(factors=23).fit(sparse()[0])


def test_ratings_of_zero_are_refused():
    with pytest.raises(InputError, match=facts("PureSVD", "all ratings", 0)):
        PureSVD(factors=1).fit(Feedback.from_arrays([0, 1], [0, 1], [0, 0]))
