"""ADG and AUC: the contract, simulation with a known truth, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.errors import DivergenceError, EmptyError
from openloop.learners.pairwise import ADG, AUC
from tests.contracts import PersonalRecommenderContract
from tests.facts import facts

BOTH = pytest.mark.parametrize("Learner", [ADG, AUC])


class TestADG(PersonalRecommenderContract):
    implicit = True

    def make(self):
        return ADG(4, updates=60_000)


class TestAUC(PersonalRecommenderContract):
    implicit = True

    def make(self):
        # The withheld item counts as not liked, which more factors would learn.
        return AUC(1, updates=60_000)


def groups(users: int = 120, items: int = 90, seed: int = 0) -> tuple[Feedback, Feedback]:
    """Three kinds of users who like three kinds of items, some items much more known; train and test."""
    rng = np.random.default_rng(seed)
    known = 0.1 + 0.8 * rng.random(items) ** 3
    taste = np.where(np.arange(users)[:, None] % 3 == np.arange(items) % 3, 1.0, 0.08)
    user, item = np.nonzero(rng.random((users, items)) < taste * known)
    log = Feedback.from_arrays(user, item, np.ones(len(user)), users=users, items=items)
    return ol.split(log, test=0.3, rng=seed)


@pytest.fixture(scope="module")
def world():
    return groups()


def score(model, log, exclude=None, metric="adg"):
    found = ol.evaluate({"m": model}, log, metrics=[metric], estimators=["naive"], exclude=exclude)
    return found["m", metric, "naive"].value


def tiny(rating=(1, 1, 1), **columns) -> Feedback:
    return Feedback.from_arrays([0, 0, 1], [0, 2, 1], np.array(rating), users=3, items=4, **columns)


def state(model):
    return [model.user_factors_, model.item_factors_, model.item_bias_]


def same(a, b):
    for x, y in zip(state(a), state(b), strict=True):
        np.testing.assert_array_equal(x, y)


# --- by law


def test_rows_below_the_threshold_are_as_if_they_were_not_there():
    rng = np.random.default_rng(0)
    user, item = np.nonzero(rng.random((20, 15)) < 0.5)
    log = Feedback.from_arrays(user, item, rng.integers(1, 6, len(user)), users=20, items=15)
    liked = log.take(log.rating >= 4)
    same(AUC(3, updates=2_000).fit(log), AUC(3, updates=2_000).fit(liked))
    same(ADG(3, updates=2_000).fit(log), ADG(3, updates=2_000, threshold=4).fit(liked))
    same(
        ADG(3, updates=2_000, threshold=2).fit(log),
        ADG(3, updates=2_000, threshold=1).fit(log.take(log.rating >= 2)),
    )


# --- by simulation


def popular(log: Feedback) -> np.ndarray:
    return np.tile(np.bincount(log.item, minlength=log.n_items).astype(float), (log.n_users, 1))


@BOTH
def test_it_beats_popularity_where_tastes_differ(world, Learner):
    train, test = world
    model = Learner(8, updates=200_000).fit(train)
    for metric in ("adg", "recall@10", "map"):
        assert score(model, test, train, metric) > 1.2 * score(popular(train), test, train, metric)


def test_adg_puts_more_at_the_top_than_auc_with_the_same_start(world):
    train, _ = world
    a = ADG(4, 0.01, gamma=2, updates=200_000).fit(train)  # up to 45 draws
    b = AUC(4, 0.01, updates=200_000).fit(train)
    assert score(a, train) > score(b, train)
    assert score(a, train, metric="ndcg@10") > score(b, train, metric="ndcg@10")


# --- difficult data


@BOTH
def test_no_positive_at_all_is_an_error_with_a_remedy(Learner):
    with pytest.raises(EmptyError, match=facts(Learner.__name__, 4, 3, "threshold=")):
        Learner(2).fit(tiny((3, 2, 1)))


@BOTH
@pytest.mark.parametrize("bad", [{"rate": 1e6}, {"rate": 5.0, "reg": 1.0}])
def test_divergence_is_said(world, Learner, bad):
    with pytest.raises(DivergenceError, match=facts(Learner.__name__, f"rate={bad['rate']:g}", "smaller rate")):
        Learner(8, **bad).fit(world[0])
