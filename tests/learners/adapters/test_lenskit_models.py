"""LensKit: pipelines asked user by user with their own vocabularies; what they do not know is not predicted."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.errors import InputError, PredictionError
from tests.elsewhere import ITEM_IDS, ITEMS, LOG, USER_IDS, USERS, V, W, assert_evaluated_as, evaluated, in_codes
from tests.facts import facts

SCORES = V @ W.T
UNSURE = {(USER_IDS[3], ITEM_IDS[2]), (USER_IDS[4], ITEM_IDS[0])}  # too few neighbours


class Terms:
    """lenskit.data.Vocabulary."""

    def __init__(self, ids):
        self._ids = ids

    def ids(self):
        return np.array(self._ids)

    def number(self, term):
        return self._ids.index(term)


class ItemList:
    """lenskit.data.ItemList."""

    def __init__(self, item_ids, scores=None):
        self._ids, self._scores = list(item_ids), scores

    def ids(self):
        return np.array(self._ids)

    def scores(self):
        return self._scores


class Pipeline:
    """lenskit.pipeline.Pipeline, whose scorer or history keeps the vocabularies."""

    __module__ = "lenskit.pipeline._impl"

    def __init__(self, *, predictor=False, unsure=(), keeps=("users", "items"), nodes=None):
        kept = {"users": Terms(USER_IDS), "items": Terms(ITEM_IDS)}
        self.parts = nodes or {"query": None, "scorer": SimpleNamespace(**{name: kept[name] for name in keeps})}
        self.parts |= {"rating-predictor": SimpleNamespace()} if predictor else {}
        self.unsure = unsure

    def nodes(self):
        return [SimpleNamespace(name=name, component=part) for name, part in self.parts.items()]

    def run(self, node, *, query, items):
        shift = 0.5 if node == "rating-predictor" else 0.0
        return ItemList(items.ids(), np.array([self.score(query, i) + shift for i in items.ids().tolist()], np.float32))

    def score(self, user, item):
        if (str(user), item) in self.unsure or user not in USER_IDS or item not in ITEM_IDS:
            return np.nan
        return SCORES[USER_IDS.index(user), ITEM_IDS.index(item)]


@pytest.fixture(autouse=True)
def lenskit(monkeypatch):
    monkeypatch.setitem(sys.modules, "lenskit.data", SimpleNamespace(ItemList=ItemList))


def test_ratings_are_those_of_the_rating_predictor_and_ranks_those_of_the_scorer():
    model = ol.wrap(Pipeline(predictor=True)).placed(LOG.users, LOG.items)
    np.testing.assert_allclose(model.predict([3], [4]), in_codes(SCORES)[3, 4] + 0.5, rtol=1e-6)
    np.testing.assert_allclose(model.scores([3, 1]), in_codes(SCORES)[[3, 1]], rtol=1e-6)


def test_a_pipeline_without_a_scorer_is_refused():
    with pytest.raises(InputError, match=facts("'scorer'", "recommender", "topn_pipeline")):
        ol.wrap(Pipeline(nodes={"recommender": SimpleNamespace()}))


def test_pairs_that_it_does_not_know_are_not_predicted_and_rank_last():
    wrapped = ol.wrap(Pipeline(unsure=UNSURE))
    grid = in_codes(SCORES).copy()
    at = [(USERS.codes([u])[0], ITEMS.codes([i])[0]) for u, i in UNSURE]
    for cell in at:
        grid[cell] = -np.inf
    found = assert_evaluated_as(wrapped, grid, metrics=["ndcg@3"])
    assert any("'m'" in note and "-inf for 2 cells of 2 users" in note for note in found.notes)
    everything = Feedback.from_arrays(
        *(x.ravel() for x in np.indices(grid.shape)), np.ones(grid.size), users=USERS, items=ITEMS
    )
    with pytest.raises(PredictionError, match=facts("'m'", "2 of 360", 'missing="drop"')):
        evaluated(wrapped, everything, metrics=["mae"])
    zero = ol.wrap(Pipeline(unsure=UNSURE), unknown="zero").placed(USERS, ITEMS)  # for ids that it lacks alone
    assert np.isnan([zero.predict([u], [i])[0] for u, i in at]).all()
    assert int(np.isneginf(zero.scores(np.arange(len(USERS)))).sum()) == 2
