"""Scores of -inf rank last, and are counted; where the scored rows are among them, that is said."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.errors import PredictionError
from tests.elsewhere import ITEMS, LOG, USERS, I, U, V, W, evaluated, in_codes
from tests.facts import facts

SCORES = in_codes(V @ W.T)
TRAIN, TEST = ol.split(LOG, test=0.3, rng=0)
LIKED = TEST.take(TEST.rating >= 4)  # the rows that ndcg looks at


def masked(*parts):
    """Scores with the cells of these logs masked, as RecBole and RecTools do."""
    found = SCORES.copy()
    for part in parts:
        found[part.user, part.item] = -np.inf
    return found


class Recommender:
    def __init__(self, scores):
        self._scores = scores

    def scores(self, users):
        return self._scores[users]

    def predict(self, user, item):
        return self._scores[user, item]


def table(scores):
    import polars as pl

    user, item = (x.ravel() for x in np.indices(scores.shape))
    return pl.DataFrame({"user": USERS.ids[user].tolist(), "item": ITEMS.ids[item], "score": scores.ravel()})


class Buffer:
    """Anything with __array__."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)


FORMS = {"array": np.asarray, "recommender": Recommender, "table": table, "buffer": Buffer}
ASKED = {name: form for name, form in FORMS.items() if name != "table"}


def told(result, *parts):
    return [note for note in result.notes if "-inf" in note and all(part in note for part in parts)]


@pytest.mark.parametrize("form", ASKED.values(), ids=ASKED)
def test_a_masked_history_ranks_as_one_that_is_excluded(form):
    plain = evaluated(SCORES, TEST, ["ndcg@3"], exclude=TRAIN)
    found = evaluated(form(masked(TRAIN)), TEST, ["ndcg@3"])
    assert found["m", "ndcg@3", "naive"].value == plain["m", "ndcg@3", "naive"].value
    users = np.unique(LIKED.user)
    count = int(np.isin(TRAIN.user, users).sum())
    assert told(found, "'m'", f"{count} cells of {len(users)} users")
    assert not told(found, "RANKED ROWS")
    assert not told(plain)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_masked_scores_are_no_ratings(form):
    assert evaluated(form(masked(TRAIN)), TEST, ["mae"])["m", "mae", "naive"].value > 0
    with pytest.raises(PredictionError, match=facts("model 'm'", f"{len(TEST)} of {len(TEST)}", "-inf", "masked")):
        evaluated(form(masked(LOG)), TEST, ["mae"])


@pytest.mark.parametrize("form", ASKED.values(), ids=ASKED)
def test_scored_rows_that_are_masked_are_told_and_all_of_them_refused(form):
    half = LIKED.take(np.arange(len(LIKED)) % 2 == 0)
    found = evaluated(form(masked(TRAIN, half)), TEST, ["ndcg"])
    assert told(found, f"{len(half)} of {len(LIKED)} RANKED ROWS")
    with pytest.raises(PredictionError, match=facts("model 'm'", f"all {len(LIKED)} rows", "-inf")):
        evaluated(form(masked(LOG)), TEST, ["ndcg"])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_other_scores_that_are_no_numbers_stay_errors(bad):
    broken = masked(TRAIN)
    broken[TEST.user[0], TEST.item[0]] = bad
    for form in FORMS.values():
        with pytest.raises(PredictionError, match="model 'm'"):
            evaluated(form(broken), TEST, ["mae"])
    with pytest.raises(PredictionError, match="model 'm'"):
        evaluated(table(broken), TEST, ["ndcg"])


def test_an_audit_of_masked_scores_judges_rankings():
    models = {"masked": masked(TRAIN, LIKED.take(np.arange(5))), "plain": SCORES}
    found = ol.audit(models, TEST, np.full((U, I), 0.5), exclude=TRAIN, rng=0)
    assert "mae" not in found.result.metrics
    assert found.result.metrics
    assert told(found.result, "'masked'", "RANKED ROWS")


def test_lists_leave_masked_items_out():
    found = ol.evaluate({"m": masked(TRAIN)}, TEST, metrics=["coverage@3"], estimators=["naive"], exclude=TRAIN)
    wanted = ol.evaluate({"m": SCORES}, TEST, metrics=["coverage@3"], estimators=["naive"], exclude=TRAIN)
    assert found["m", "coverage@3", "lists"].value == wanted["m", "coverage@3", "lists"].value
