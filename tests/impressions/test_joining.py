"""Frames of impressions and lists are checked before anything is summed."""

from __future__ import annotations

import polars as pl
import pytest

import openloop as ol
from openloop.errors import DuplicateError, EmptyError, InputError, PredictionError, PropensityError, RatingError
from tests.facts import facts

LOG = {
    "request": [1, 1, 2, 2], "user": [7, 7, 8, 8], "item": [10, 11, 10, 12], "pos": [1, 2, 1, 2],
    "click": [0.0, 1, 1, 0], "p": [0.5, 0.5, 0.5, 0.5],
}  # fmt: skip
LISTS = {"user": [7, 7, 8, 8], "item": [10, 11, 10, 12], "rank": [1, 2, 1, 2]}


def evaluate(log=None, lists=None, **options):
    given = {"position": "pos", "reward": "click", "propensity": "p", "estimators": ["iips"]} | options
    return ol.evaluate({"a": pl.DataFrame(LISTS | (lists or {}))}, pl.DataFrame(LOG | (log or {})), **given)


def test_ranks_by_another_name():
    ranks = [2, 1, 1, 2]
    wanted = evaluate(lists={"rank": ranks})["a", "clicks", "iips"].value
    assert evaluate(lists={"at": ranks}, rank="at")["a", "clicks", "iips"].value == wanted
    lists = pl.DataFrame(LISTS | {"place": ranks}).drop("rank")
    options = {"position": "pos", "reward": "click", "propensity": "p", "estimators": ["iips"]}
    assert ol.evaluate({"a": lists}, pl.DataFrame(LOG), **options)["a", "clicks", "iips"].value == wanted


def test_by_hand():
    assert evaluate()["a", "clicks", "iips"].value == pytest.approx(2.0)  # 2 clicks of weight 2 in 2 requests
    assert evaluate(lists={"rank": [2, 1, 1, 2]})["a", "clicks", "iips"].value == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("log", "error", "told"),
    [
        ({"pos": [1, 2, 0, 2]}, InputError, ("position", "1 of 4")),
        ({"pos": [1, 1, 1, 2]}, DuplicateError, ("position", "1 times")),
        ({"click": [0.0, 1, None, 0]}, RatingError, ("reward", "1 of 4")),
        ({"click": [0.0, 1, -1, 0]}, RatingError, ("reward", "1 of 4")),
        ({"p": [0.5, 0.5, 0, 2]}, PropensityError, ("propensity", "2 of 4")),
        ({"user": [7, 9, 8, 8]}, InputError, ("1 requests", "user")),
        ({"item": [10, None, 10, 12]}, InputError, ("item", "1 of 4")),
    ],
    ids=["position", "twice", "missing", "negative", "propensity", "users", "item"],
)
def test_what_no_engine_may_sum_over(log, error, told):
    with pytest.raises(error, match=facts(*told)):
        evaluate(log)


@pytest.mark.parametrize(
    ("lists", "told"),
    [
        ({"rank": [1, 1, 1, 2]}, ("ranks", "user")),
        ({"rank": [1, 2, 1, 0]}, ("ranks",)),
        ({"rank": [1, 2, 1, None]}, ("ranks",)),
        ({"item": [10, 10, 10, 12]}, ("1 (user, item)",)),
        ({"user": [7, 7, 9, 9]}, ("1 user", "no list")),
    ],
    ids=["twice", "zero", "missing", "pair", "lists"],
)
def test_what_is_no_list(lists, told):
    with pytest.raises(PredictionError, match=facts("'a'", *told)):
        evaluate(lists=lists)


def test_tables_of_another_kind():
    with pytest.raises(PredictionError, match=facts("'a'", "rank", "ol.read")):
        ol.evaluate(
            {"a": pl.DataFrame({"user": [7, 8], "item": [10, 10], "score": [1.0, 2.0]})}, pl.DataFrame(LOG),
            position="pos", propensity="p", estimators=["iips"],
        )  # fmt: skip
    with pytest.raises(InputError, match=facts("'a'", "item", "text", "integers")):
        evaluate(lists={"item": ["10", "11", "10", "12"]})
    with pytest.raises(InputError, match=facts("request=", "user=")):
        evaluate(request=False, user=False)
    with pytest.raises(PredictionError, match=facts("'a'", "users", "none")):
        evaluate(user=False)
    with pytest.raises(InputError, match=facts("exposure", 1, 2)):
        evaluate(exposure=["p"], propensity=None)
    with pytest.raises(EmptyError, match=facts("no rows")):
        ol.evaluate(
            {"a": pl.DataFrame(LISTS)}, pl.DataFrame(LOG).head(0), position="pos", reward="click", propensity="p"
        )
    with pytest.raises(InputError, match=facts("'a'", "pandas", "polars")):
        ol.evaluate({"a": pl.DataFrame(LISTS).to_pandas()}, pl.DataFrame(LOG), position="pos", estimators=["iips"])
