"""Random, GlobalAverage, Popularity and Bias: by hand, by law, and beside scikit-learn's ridge regression."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from threadpoolctl import threadpool_limits

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.core.propensities import Propensities
from openloop.data.simulate import movie_lovers
from openloop.errors import InputError
from openloop.learners.baselines import Bias, GlobalAverage, Popularity, Random
from tests.contracts import RecommenderContract
from tests.facts import facts


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


def test_another_seed_is_another_order():
    orders = {tuple(Random(rng=seed).fit(four()).scores([0])[0].argsort()) for seed in range(30)}
    assert len(orders) > 10
    assert Random(rng=np.random.default_rng(3)).fit(four()).seed_ == Random(rng=3).fit(four()).seed_


@pytest.mark.parametrize("rng", [-1, 1.5, None, "a", True])
def test_a_seed_is_a_whole_number(rng):
    with pytest.raises(InputError, match=facts("Random", "rng", repr(rng))):
        Random(rng=rng).fit(four())


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


def test_weights_of_propensities_make_the_average_that_of_all_cells():
    world = movie_lovers(users=300, items=100)
    log = world.observe(3)
    p = Propensities(values=log.propensity)
    truth, naive = world.ratings.mean(), GlobalAverage().fit(log).mean_
    assert abs(GlobalAverage().fit(log, p).mean_ - truth) < 0.1 * abs(naive - truth)


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


def test_without_a_penalty_the_fit_is_the_best_and_its_offsets_the_smallest():
    log, w = scattered(2, rows=60)  # several connected parts, and users and items without a rating
    model = Bias(reg=0).fit(log, w)
    X, y, root = one_hot(log), log.rating.astype(float), np.sqrt(w)
    design = np.column_stack([X, np.ones(len(log))])
    best = np.linalg.lstsq(root[:, None] * design, root * y)[0]
    np.testing.assert_allclose(model.predict(log.user, log.item), design @ best, atol=1e-9)
    # Among all (a, b, c) + N x with N the null space of the design, ‖(a, b)‖ is least at x = 0.
    rank = np.linalg.matrix_rank(design)
    null = np.linalg.svd(design)[2][rank:].T  # (U + I + 1, ·)
    assert null.shape[1] > 3
    offsets = np.append(model.user_bias_, model.item_bias_)
    np.testing.assert_allclose(null[:-1].T @ offsets, 0, atol=1e-9)


def test_a_vanishing_penalty_leads_to_none():
    log, w = scattered(3)
    small, none = (Bias(reg=reg).fit(log, w).scores(range(30)) for reg in (1e-8, 0))
    np.testing.assert_allclose(small, none, atol=1e-6)


def test_offsets_that_made_the_ratings_are_found_again():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=40), rng.normal(size=25)
    u, i = np.nonzero(rng.random((40, 25)) < 0.3)
    log = Feedback.from_arrays(u, i, a[u] + b[i] + 3, users=40, items=25)
    np.testing.assert_allclose(Bias(reg=0).fit(log).scores(range(40)), a[:, None] + b + 3, atol=1e-5)  # float32 ratings


def test_equal_ratings_need_no_offsets():
    log = Feedback.from_arrays([0, 0, 1, 2], [0, 1, 1, 2], np.full(4, 0.1), users=4, items=3)
    for reg in (0, 1):
        np.testing.assert_allclose(Bias(reg=reg).fit(log).scores(range(4)), np.float32(0.1), rtol=1e-12)
    zero = Feedback.from_arrays([0, 1], [0, 1], [0, 0])
    assert not Bias().fit(zero).scores([0, 1]).any()


def test_scaled_and_shifted_ratings_scale_and_shift_the_offsets():
    log, w = scattered(4)
    scaled = Feedback.from_arrays(log.user, log.item, 1024 * log.rating + 64, users=30, items=20)
    one, other = Bias(reg=2).fit(log, w).scores(range(30)), Bias(reg=2).fit(scaled, w).scores(range(30))
    np.testing.assert_allclose(other, 1024 * one + 64, rtol=1e-9)


def test_who_has_no_rating_has_no_offset_and_the_fit_says_so():
    for reg in (0, 5):
        model = Bias(reg=reg).fit(four())
        assert model.user_bias_[2] == 0
        assert model.item_bias_[3] == 0
        users, items = model.notes_
        assert re.search(facts("1 user", "no rating"), users)
        assert re.search(facts("1 item", "no rating"), items)


def test_one_item_or_one_user_is_enough():
    column = Feedback.from_arrays([0, 1, 2], [0, 0, 0], [1, 5, 3], users=4)
    np.testing.assert_allclose(Bias(reg=0).fit(column).scores(range(3)), [[1], [5], [3]])
    np.testing.assert_allclose(Bias(reg=1e9).fit(column).scores(range(4)), 3, rtol=1e-6)
    cell = Feedback.from_arrays([0], [0], [4])
    assert Bias().fit(cell).scores([0]).tolist() == [[4]]


def test_offsets_are_the_same_bits_whatever_the_threads():
    log, w = scattered(5, 300, 20_000, 100_000)
    with threadpool_limits(1):
        one = Bias().fit(log, w)
    many = Bias().fit(log, w)
    np.testing.assert_array_equal(one.item_bias_, many.item_bias_)
    np.testing.assert_array_equal(one.user_bias_, many.user_bias_)


@pytest.mark.parametrize("reg", [-1, np.nan, np.inf, "1", None, True])
def test_a_penalty_is_a_number_from_zero(reg):
    with pytest.raises(InputError, match=facts("Bias", "reg", repr(reg))):
        Bias(reg=reg).fit(four())


# -- evaluation ----------------------------------------------------------------------------------------------


def test_baselines_go_through_evaluate():
    world = movie_lovers(users=60, items=40)
    train, test = ol.split(world.observe(2), test=0.3, rng=0)
    models = {"random": Random(), "mean": GlobalAverage(), "popular": Popularity(), "bias": Bias()}
    fitted = {name: model.fit(train) for name, model in models.items()}
    result = ol.evaluate(
        fitted, test, metrics=["mse", "recall@5", "ndcg@5"], estimators=["naive"], exclude=train, threshold=4
    )
    naive = {name: result[name, "mse", "naive"].value for name in fitted}
    assert naive["bias"] < naive["mean"] < naive["random"]
    # Scores that are all equal are a random order's expectation: the average over seeds comes near it.
    seeds = {str(seed): Random(rng=seed).fit(train) for seed in range(40)}
    many = ol.evaluate(seeds, test, metrics=["recall@5"], estimators=["naive"], exclude=train, threshold=4)
    values = np.array([many[name, "recall@5", "naive"].value for name in seeds])
    expected = result["mean", "recall@5", "naive"].value
    assert abs(values.mean() - expected) < 4 * values.std() / np.sqrt(40)
