"""Lists of models in memory: which items, ties, exclusions, short lists; and worlds whose answer is obvious."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.errors import PredictionError, UndefinedError
from openloop.learners.adapters.factors import Factors
from tests.examples import same, small_world
from tests.facts import facts

ALL = ("coverage@3", "gini@3", "popularity@3", "novelty@3", "new@3", "overlap@3", "similarity@3")


def values(found, model="m"):
    return {metric: found[model, metric, "lists"].value for metric in found.list_metrics}


def log_of(users, items, rows=((0, 0),)):
    user, item = zip(*rows, strict=True)
    return Feedback.from_arrays(user, item, np.full(len(rows), 5.0), users=users, items=items)


def test_by_hand():
    """Two users, four items; rows of items 0, 0 and 1."""
    log = log_of(2, 4, [(0, 0), (1, 0), (1, 1)])
    scores = np.array([[4.0, 3, 2, 1], [1, 2, 3, 4]])  # lists 0, 1 and 3, 2
    running = np.array([[4.0, 1, 2, 3], [1, 2, 3, 4]])  # 0, 3 and 3, 2
    X = np.array([[1.0, 0], [1, 0], [0, 1], [1, 1]])
    metrics = [m.replace("@3", "@2") for m in ALL]
    found = ol.evaluate({"m": scores, "r": running}, log, metrics=metrics, running="r", item_features=X)
    same(
        list(values(found).values()),
        [
            4 / 4,
            0,
            (2 / 2 + 1 / 2) / 2 / 2,
            ((0 + 1) / 2 + (1 + 1) / 2) / 2,
            1 / 2,
            (1 / 2 + 1) / 2,
            (1 + 0.5**0.5) / 2,
        ],
    )
    same(list(values(found, "r").values())[:2], [3 / 4, (-3 * 0 - 1 * 1 + 1 * 1 + 3 * 2) / (4 * 4)])
    same(found["r", "overlap@2", "lists"].value, 1)


def test_random_lists_are_known_and_so_is_one_list_for_all():
    rng = np.random.default_rng(0)
    users, items, k = 4000, 50, 5
    rows = [(u, i) for u in range(users) for i in range(u % 4)]  # n_i/U = 3/4, 2/4 and 1/4 of the first three
    models = {"random": rng.random((users, items)), "one": np.tile(-np.arange(items, dtype=float), (users, 1))}
    asked = ["coverage@5", "gini@5", "popularity@5", "new@5", "overlap@5"]
    found = ol.evaluate(models, log_of(users, items, rows), metrics=asked, running="one")
    one = values(found, "one")
    same(list(one.values()), [k / items, 1 - k / items, 1.5 / 5, 2 / 5, 1])
    drawn = values(found, "random")
    # Exposures are near Poisson with mean m = U k/I, whose Gini is near 1/√(π m).
    assert drawn["coverage@5"] == 1
    assert drawn["gini@5"] == pytest.approx(1 / np.sqrt(np.pi * users * k / items), rel=0.3)
    for metric, truth in (("popularity@5", 1.5 / items), ("new@5", 47 / 50), ("overlap@5", k / items)):
        assert truth in found["random", metric, "lists"].interval(0.999)


def test_excluded_items_are_not_listed_and_their_rows_are_counted():
    train, test = log_of(2, 4, [(0, 0), (1, 0), (1, 3)]), log_of(2, 4, [(0, 1)])
    scores = np.tile([4.0, 3, 2, 1], (2, 1))  # lists 1, 2 and 1, 2
    found = ol.evaluate({"m": scores}, test, metrics=["coverage@2", "popularity@2", "new@2"], exclude=train)
    same(list(values(found).values()), [2 / 4, 0, 1])


def test_of_equal_scores_the_smaller_id_leads_as_in_predict_and_a_note_says_so():
    found = ol.evaluate({"m": np.zeros((5, 8))}, log_of(5, 8), metrics=["coverage@3", "popularity@3"])
    same(list(values(found).values()), [3 / 8, 1 / 5 / 3])
    assert any("m 5 of 5" in note for note in found.notes)


def test_no_note_where_ties_do_not_reach_the_end_of_a_list():
    scores = np.tile([9.0, 9, 8, 7, 7, 7], (5, 1))
    found = ol.evaluate({"m": scores}, log_of(5, 6), metrics=["coverage@3"])
    assert not any("tied" in note for note in found.notes)
    assert any("tied" in note for note in ol.evaluate({"m": scores}, log_of(5, 6), metrics=["coverage@4"]).notes)


def test_lists_with_fewer_items_than_k_are_averaged_over_what_they_hold():
    everything = ol.evaluate(
        {"m": np.zeros((3, 4))}, log_of(3, 4, [(0, 0), (1, 0)]), metrics=["coverage@9", "popularity@9"]
    )
    same(list(values(everything).values()), [1, 2 / 3 / 4])


def test_factors_scores_and_tables_list_the_same():
    rng = np.random.default_rng(2)
    P, Q = rng.normal(size=(30, 3)).astype(np.float32), rng.normal(size=(12, 3)).astype(np.float32)
    log = small_world().observe(rng=1)
    scores = P @ Q.T
    user, item = np.indices(scores.shape).reshape(2, -1)
    full = pl.DataFrame({"user": user, "item": item, "score": scores.ravel()})
    ranks = (-scores).argsort(axis=1).argsort(axis=1) + 1
    ranked = full.with_columns(rank=pl.Series(ranks.ravel()))
    models = {
        "m": scores, "factors": Factors(P, Q, users=range(30), items=range(12)), "full": full,
        "ranks": ranked.drop("score"), "top": ranked.filter(pl.col("rank") <= 4),
    }  # fmt: skip
    found = ol.evaluate(models, log, metrics=ALL, running="m", item_features=rng.normal(size=(12, 2)))
    for model in models:
        same(list(values(found, model).values()), list(values(found).values()))


def test_a_short_list_says_down_to_which_k_it_serves():
    log = small_world().observe(rng=1)
    top = pl.DataFrame({"user": [0, 0, 1], "item": [3, 4, 5], "rank": [1, 2, 1]})
    found = ol.evaluate({"m": top}, log, metrics=["coverage@2", "popularity@2", "coverage@3"])
    assert found["m", "popularity@2", "lists"].diagnostics.users == 2
    assert any("m 28 of 30" in note for note in found.notes)  # users without a list
    same(found["m", "coverage@2", "lists"].value, 3 / 12)
    with pytest.raises(UndefinedError, match=facts("coverage@3", "'m'", 2)):
        found["m", "coverage@3", "lists"]


def test_a_list_with_excluded_items_is_refused():
    train, test = log_of(2, 4, [(0, 0), (1, 0), (1, 3)]), log_of(2, 4, [(0, 1)])
    top = pl.DataFrame({"user": [0, 1], "item": [0, 1], "rank": [1, 1]})
    with pytest.raises(PredictionError, match=facts("'m'", 1, "exclude=None")):
        ol.evaluate({"m": top}, test, metrics=["coverage@1"], exclude=train)


def test_scores_of_some_pairs_are_no_lists():
    log = small_world().observe(rng=1)
    some = pl.DataFrame({"user": log.user, "item": log.item, "score": log.rating})
    with pytest.raises(UndefinedError, match=facts("coverage@3", "'m'", "rank")):
        ol.evaluate({"m": some}, log, metrics=["coverage@3"])


def test_scores_without_an_order_are_left_out_with_the_reason():
    scores = np.zeros((3, 4))
    scores[1, 2] = np.inf
    with pytest.raises(UndefinedError, match=facts("coverage@3", "'m'", "user 1", "+inf")):
        ol.evaluate({"m": scores}, log_of(3, 4), metrics=["coverage@3"])


def test_items_that_no_user_may_get_make_no_list():
    with pytest.raises(UndefinedError, match=facts("coverage@3", "'m'")):
        ol.evaluate({"m": np.full((3, 4), -np.inf)}, log_of(3, 4), metrics=["coverage@3"])


def test_covariates_are_those_of_the_items():
    with pytest.raises(ol.errors.AlignmentError, match=facts(4, "(3, 2)")):
        ol.evaluate({"m": np.zeros((3, 4))}, log_of(3, 4), metrics=["similarity@3"], item_features=np.ones((3, 2)))
