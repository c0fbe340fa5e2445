"""Wrapped: rules for ids that the model lacks, and for answers that are none."""

from __future__ import annotations

import re

import numpy as np
import pytest

from openloop.core.feedback import Vocabulary
from openloop.errors import DuplicateError, InputError, PredictionError
from openloop.learners.adapters.wrapped import PartlyWrapped, Wrapped
from openloop.moments.models import Partial
from tests.elsewhere import ITEM_IDS, ITEMS, LOG, USER_IDS, USERS, V, W, evaluated, in_codes
from tests.facts import facts

SCORES = V @ W.T


def pairs(user, item):
    assert (user >= 0).all()
    assert (item >= 0).all()
    return SCORES[user, item]


def make(**options):
    return Wrapped("theirs", pairs, USER_IDS, ITEM_IDS, **options)


def test_ids_that_it_lacks_score_zero():
    users, items = Vocabulary.of([*USERS.ids[:5], "zoe"]), Vocabulary.of([1, *ITEMS.ids[:4]])
    model = make(unknown="zero").placed(users, items)
    wanted = np.zeros((6, 5))
    wanted[:5, 1:] = in_codes(SCORES)[:5, :4]
    np.testing.assert_array_equal(model.scores(range(6)), wanted)
    np.testing.assert_array_equal(model.predict([5, 0, 2], [1, 0, 3]), wanted[[5, 0, 2], [1, 0, 3]])
    of_users, of_items = model.notes_
    assert re.search(facts("1 of 6 users", "unknown", 0), of_users)
    assert re.search(facts("1 of 5 items", "unknown", 0), of_items)
    assert make().placed(USERS, ITEMS).notes_ == ()


@pytest.mark.parametrize(
    ("users", "error", "told"),
    [(["a", "b", "a"], DuplicateError, (1, "'a'")), ([1.5, 2.0], InputError, ("float64", 1.5))],
    ids=["twice", "floats"],
)
def test_ids_are_distinct_integers_or_text(users, error, told):
    with pytest.raises(error, match=facts("theirs", "users", *told)):
        Wrapped("theirs", pairs, users, ITEM_IDS)


def test_answers_that_are_none_are_told_with_the_models_name():
    broken = Wrapped("theirs", lambda user, _: np.full(len(user), np.nan), USER_IDS, ITEM_IDS)
    for metric, told in (("mae", f"{len(LOG)} of {len(LOG)}"), ("ndcg@3", "NaN")):
        with pytest.raises(PredictionError, match=facts("model 'm'", told)):
            evaluated(broken, metrics=[metric])
    raising = Wrapped("theirs", lambda *_: 1 / 0, USER_IDS, ITEM_IDS)
    for metric in ("mae", "ndcg@3"):
        with pytest.raises(PredictionError, match=facts("model 'm'", "theirs", "ZeroDivisionError")):
            evaluated(raising, metrics=[metric])


def test_pairs_without_a_score_are_not_known():
    holes = np.where(np.indices(SCORES.shape).sum(axis=0) % 5 == 0, np.nan, SCORES)
    model = PartlyWrapped("theirs", lambda user, item: holes[user, item], USER_IDS, ITEM_IDS)
    assert isinstance(model, Partial)
    assert not isinstance(make(), Partial)
    grid, (user, item) = in_codes(holes), np.indices(SCORES.shape)
    np.testing.assert_array_equal(model.knows(user.ravel(), item.ravel()), ~np.isnan(grid).ravel())
    np.testing.assert_array_equal(model.scores([0, 7]), np.where(np.isnan(grid), -np.inf, grid)[[0, 7]])
