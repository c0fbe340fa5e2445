"""Random, GlobalAverage, Popularity and Bias: by hand, by law, and beside scikit-learn's ridge regression."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from openloop.core.feedback import Feedback
from openloop.learners.baselines import Bias, GlobalAverage, Popularity, Random
from tests.contracts import RecommenderContract


class TestRandom(RecommenderContract):
    def make(self):
        return Random(rng=1)


class TestGlobalAverage(RecommenderContract):
    def make(self):
        return GlobalAverage()


class TestPopularity(RecommenderContract):
    def make(self):
        return Popularity()


class TestBias(RecommenderContract):
    def make(self):
        return Bias()


class TestBiasWithoutPenalty(RecommenderContract):
    def make(self):
        return Bias(reg=0)


def four() -> Feedback:
    """Ratings 5 and 1 of user 0, 3 and 2 of user 1; user 2 and item 3 have none."""
    return Feedback.from_arrays([0, 0, 1, 1], [0, 1, 1, 2], [5, 1, 3, 2], users=3, items=4)


def scattered(seed: int, users: int = 30, items: int = 20, rows: int = 150) -> tuple[Feedback, np.ndarray]:
    """Random cells with random ratings, and weights."""
    rng = np.random.default_rng(seed)
    cell = rng.choice(users * items, rows, replace=False)
    log = Feedback.from_arrays(cell // items, cell % items, rng.integers(1, 6, rows), users=users, items=items)
    return log, rng.exponential(size=rows) + 0.05


# -- Random --------------------------------------------------------------------------------------------------


def test_a_random_score_does_not_depend_on_what_else_is_asked():
    model = Random(rng=5).fit(four())
    whole = model.scores([0, 1, 2])
    np.testing.assert_array_equal(model.scores([2, 0]), whole[[2, 0]])
    np.testing.assert_array_equal(model.predict([1, 1, 0], [3, 0, 2]), whole[[1, 1, 0], [3, 0, 2]])


# -- GlobalAverage and Popularity ----------------------------------------------------------------------------


def test_the_average_by_hand():
    assert GlobalAverage().fit(four()).mean_ == 11 / 4
    assert GlobalAverage().fit(four(), [5, 1, 1, 1]).mean_ == 31 / 8
    assert GlobalAverage().fit(four()).scores([2]).tolist() == [[2.75] * 4]


def test_popularity_by_hand():
    assert Popularity().fit(four()).item_counts_.tolist() == [1, 2, 1, 0]
    # Weights of mean 1: 3, 1, 1, 3 are 1.5, 0.5, 0.5, 1.5.
    assert Popularity().fit(four(), [3, 1, 1, 3]).scores([2, 0]).tolist() == [[1.5, 1, 1.5, 0]] * 2
    assert Popularity().fit(four()).predict([0, 2], [1, 3]).tolist() == [2, 0]


# -- Bias ----------------------------------------------------------------------------------------------------


def one_hot(log: Feedback) -> np.ndarray:
    X = np.zeros((len(log), log.n_users + log.n_items))
    X[np.arange(len(log)), log.user] = X[np.arange(len(log)), log.n_users + log.item] = 1
    return X


@pytest.mark.parametrize("reg", [1e-3, 1.0, 10, 1e4])
@pytest.mark.parametrize("shape", [(30, 20, 150), (5, 40, 60), (200, 3, 300)])
def test_the_offsets_are_those_of_ridge_regression(reg, shape):
    log, w = scattered(1, *shape)
    ours = Bias(reg=reg).fit(log, w)
    theirs = Ridge(alpha=reg, solver="cholesky").fit(one_hot(log), log.rating.astype(float), sample_weight=w / w.mean())
    np.testing.assert_allclose(np.append(ours.user_bias_, ours.item_bias_), theirs.coef_, atol=1e-9)
    assert np.isclose(ours.intercept_, theirs.intercept_, rtol=1e-12)


def test_offsets_that_made_the_ratings_are_found_again():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=40), rng.normal(size=25)
    u, i = np.nonzero(rng.random((40, 25)) < 0.3)
    log = Feedback.from_arrays(u, i, a[u] + b[i] + 3, users=40, items=25)
    np.testing.assert_allclose(Bias(reg=0).fit(log).scores(range(40)), a[:, None] + b + 3, atol=1e-5)  # float32 ratings


def test_scaled_and_shifted_ratings_scale_and_shift_the_offsets():
    log, w = scattered(4)
    scaled = Feedback.from_arrays(log.user, log.item, 1024 * log.rating + 64, users=30, items=20)
    one, other = Bias(reg=2).fit(log, w).scores(range(30)), Bias(reg=2).fit(scaled, w).scores(range(30))
    np.testing.assert_allclose(other, 1024 * one + 64, rtol=1e-9)
