"""Functions of ids are models: evaluated as their scores are, and refused with their name where they give none."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.errors import PredictionError
from openloop.moments.functions import OfIds
from tests.elsewhere import ITEM_IDS, ITEMS, LOG, USER_IDS, USERS, V, W, assert_evaluated_as, evaluated, in_codes
from tests.facts import facts

SCORES = V @ W.T
ROW, COLUMN = {u: r for r, u in enumerate(USER_IDS)}, {i: r for r, i in enumerate(ITEM_IDS)}


def scored(users, items):
    """A score of each pair of ids."""
    assert len(users) == len(items)
    return [SCORES[ROW[u], COLUMN[i]] for u, i in zip(users, items, strict=True)]


def test_a_function_gets_ids():
    model = OfIds(what="f", function=scored, users=USERS, items=ITEMS)
    np.testing.assert_array_equal(model.scores(np.array([4, 0])), in_codes(SCORES)[[4, 0]])
    np.testing.assert_array_equal(model.predict(np.array([4]), np.array([2])), in_codes(SCORES)[[4], [2]])


def test_a_function_is_evaluated_as_its_scores_are():
    assert_evaluated_as(scored, in_codes(SCORES))


def test_a_function_is_audited_and_rehearsed():
    models = {"function": scored, "grid": in_codes(SCORES), "bias": ol.learners.Bias().fit(LOG)}
    found = ol.audit(models, LOG, np.full(len(LOG), 0.5), metrics=["mae"], rng=0)
    assert found.result["function", "mae", "snips"].value == found.result["grid", "mae", "snips"].value
    grid = np.full((len(USERS), len(ITEMS)), 0.5)
    pair = {name: models[name] for name in ("function", "bias")}
    assert ol.audit(pair, LOG, grid, metrics=["mae"], rehearse=2, rng=0).rehearsal is not None


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda *_: np.ones(2), ("(2,)", "one score per pair")),
        (lambda users, _: [{}[user] for user in users], ("KeyError",)),
        (lambda users, _: np.full(len(users), np.nan), ("finite",)),
        (lambda users, _: np.full(len(users), -np.inf), ("-inf", "masked")),
    ],
    ids=["shape", "raises", "nan", "masked"],
)
def test_a_function_without_scores_is_refused(function, told):
    with pytest.raises(PredictionError, match=facts("model 'm'", *told)):
        evaluated(function, metrics=["mae"])
