"""Recommenders and propensity models that break the contract are told what is violated; others pass."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import openloop as ol
from openloop.testing import check_propensity_model, check_recommender
from tests.facts import facts

# -- recommenders --------------------------------------------------------------------------------------------


class ItemMeans:
    """The mean rating of each item; no BaseEstimator."""

    def fit(self, feedback, sample_weight=None):
        weight = np.ones(len(feedback)) if sample_weight is None else sample_weight
        total = np.bincount(feedback.item, weight * feedback.rating, minlength=feedback.n_items)
        self.means = (total + 3.0) / (np.bincount(feedback.item, weight, minlength=feedback.n_items) + 1)
        return self

    def predict(self, user, item):
        return self.means[item] + 0 * np.asarray(user)

    def scores(self, users):
        return np.tile(self.means, (len(users), 1))


class OnlyScores:
    fit, scores = ItemMeans.fit, ItemMeans.scores


class OnlyPredicts:
    fit, predict = ItemMeans.fit, ItemMeans.predict


class Cloned(BaseEstimator, ItemMeans):
    def __init__(self, prior=1.0):
        self.prior = prior


@pytest.mark.parametrize(
    "model", [ItemMeans(), OnlyScores(), OnlyPredicts(), Cloned(), ol.learners.MF(factors=2, rng=0)]
)
def test_recommenders_that_keep_the_contract_pass(model):
    assert check_recommender(model) is None
    assert not hasattr(model, "means")  # a copy was fitted


class NoSelf(ItemMeans):
    def fit(self, feedback, sample_weight=None):
        super().fit(feedback, sample_weight)


class Changes(ItemMeans):
    def fit(self, feedback, sample_weight=None):
        feedback.rating[:] = 1
        return super().fit(feedback, sample_weight)


class Flat(ItemMeans):
    def scores(self, users):
        return self.means


class Gaps(ItemMeans):
    def scores(self, users):
        return np.where(np.arange(len(self.means)) == 2, np.nan, super().scores(users))


class OfTheBlock(ItemMeans):
    def scores(self, users):
        return super().scores(users) + np.arange(len(users))[:, None]


class OfTheOrder(OnlyPredicts):
    def predict(self, user, item):
        return super().predict(user, item) + np.arange(len(user))


class Another(ItemMeans):
    def predict(self, user, item):
        return 2 * super().predict(user, item)


class Draws(ItemMeans):
    def fit(self, feedback, sample_weight=None):
        super().fit(feedback, sample_weight)
        self.means = self.means + np.random.default_rng().random(len(self.means))
        return self


class Forgetful(ItemMeans):
    asked = 0

    def scores(self, users):
        self.asked += 1
        return super().scores(users) + self.asked


class Remembers(ItemMeans):
    def fit(self, feedback, sample_weight=None):
        before = getattr(self, "means", 0.0)
        super().fit(feedback, sample_weight)
        self.means = self.means + before
        return self


class Weighs(ItemMeans):
    def fit(self, feedback, sample_weight=None):
        return super().fit(feedback, None if sample_weight is None else 2 * sample_weight)


class Loses(BaseEstimator, ItemMeans):
    def __init__(self, prior=1.0):
        self.prior = prior + 1.0


class Nothing:
    def fit(self, feedback):
        return self


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (ItemMeans, ("is a class", "ItemMeans()")),
        (Nothing(), ("neither predict(user, item) nor scores(users)",)),
        (object(), ("has no method fit",)),
        (NoSelf(), ("return self",)),
        (Changes(), ("fit changes the feedback",)),
        (Flat(), ("shape (20,)", "(20, 20)")),
        (Gaps(), ("20 of 400", "not finite")),
        (OfTheBlock(), ("another block",)),
        (OfTheOrder(), ("another order",)),
        (Another(), ("compared with scores",)),
        (Draws(), ("seed",)),
        (Forgetful(), ("differ",)),
        (Remembers(), ("fit must forget",)),
        (Weighs(), ("sample_weight 1",)),
        (Loses(), ("cannot be cloned", "__init__")),
    ],
    ids=lambda given: getattr(given, "__name__", type(given).__name__) if not isinstance(given, tuple) else "",
)
def test_a_broken_recommender_is_told(model, says):
    with pytest.raises(AssertionError, match=facts(*says)):
        check_recommender(model)


# -- propensity models ---------------------------------------------------------------------------------------


class ByItem:
    """The share of users who have an item's row; no BaseEstimator, no matrix."""

    def fit(self, feedback):
        rows = np.bincount(feedback.item, minlength=feedback.n_items)
        self.p = (rows + 1) / (feedback.n_users + 2)
        return self

    def values(self, feedback):
        return self.p[feedback.item]

    def predict(self, feedback):
        return ol.Propensities(values=self.values(feedback), fingerprint=feedback.fingerprint)


class WithMatrix(ByItem):
    def fit(self, feedback):
        self.users = feedback.n_users
        return super().fit(feedback)

    def matrix(self):
        return np.tile(self.p, (self.users, 1))


class ByRating(ByItem):
    sees_rating = True

    def fit(self, feedback):
        self.p = np.linspace(0.1, 0.9, 6)
        return self

    def values(self, feedback):
        return self.p[feedback.rating.astype(int)]


@pytest.mark.parametrize("model", [ByItem(), WithMatrix(), ByRating(), ol.propensity.Popularity()])
def test_propensity_models_that_keep_the_contract_pass(model):
    assert check_propensity_model(model) is None


class BareArray(ByItem):
    def predict(self, feedback):
        return self.values(feedback)


class AboveOne(ByItem):
    def values(self, feedback):
        return 1 + super().values(feedback)


class NoFingerprint(ByItem):
    def predict(self, feedback):
        return ol.Propensities(values=self.values(feedback))


class TooFew(ByItem):
    def predict(self, feedback):
        return ol.Propensities(values=self.values(feedback)[1:], fingerprint=feedback.fingerprint)


class OfThePart(ByItem):
    def values(self, feedback):
        return np.full(len(feedback), len(feedback) / (feedback.n_users * feedback.n_items))


class OtherMatrix(WithMatrix):
    def matrix(self):
        return super().matrix() / 2


class Turned(WithMatrix):
    def matrix(self):
        return super().matrix().T


class Zeros(WithMatrix):
    def matrix(self):
        return np.where(np.arange(len(self.p)) == 0, 0.0, super().matrix())


class SaysItSees(ByItem):
    sees_rating = True


class SaysNothing(ByRating):
    sees_rating = False


class DrawsP(ByItem):
    def fit(self, feedback):
        super().fit(feedback)
        self.p = np.random.default_rng().uniform(0.1, 0.9, len(self.p))
        return self


class AddsUp(ByItem):
    rows = 0

    def fit(self, feedback):
        self.rows = self.rows + np.bincount(feedback.item, minlength=feedback.n_items)
        self.p = (self.rows + 1) / (self.rows.sum() + 2)
        return self


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (ByItem, ("is a class",)),
        (ItemMeans(), ("predict",)),
        (BareArray(), ("ndarray", "ol.Propensities(values=p")),
        (AboveOne(), ("predict(feedback) fails",)),
        (NoFingerprint(), ("fingerprint=feedback.fingerprint",)),
        (TooFew(), ("one per row",)),
        (OfThePart(), ("a third of the rows",)),
        (OtherMatrix(), ("compared with matrix()",)),
        (Turned(), ("matrix()", "(20, 30)", "(30, 20)")),
        (Zeros(), ("outside (0, 1]",)),
        (SaysItSees(), ("says that it sees ratings", "sees_rating = False")),
        (SaysNothing(), ("sees_rating = True",)),
        (DrawsP(), ("differ",)),
        (AddsUp(), ("fit must forget",)),
    ],
    ids=lambda given: getattr(given, "__name__", type(given).__name__) if not isinstance(given, tuple) else "",
)
def test_a_broken_propensity_model_is_told(model, says):
    with pytest.raises(AssertionError, match=facts(*says)):
        check_propensity_model(model)
