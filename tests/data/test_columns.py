from __future__ import annotations

import polars as pl
import pytest

from openloop.data.columns import InputTable, choose, choose_log
from openloop.errors import ColumnError
from tests.facts import facts

NOTHING = dict.fromkeys(("user", "item", "rating", "propensity", "time", "weight"))


def table(*columns: str, note: str = "") -> InputTable:
    return InputTable("log", columns, lambda names, _: iter([pl.DataFrame(schema=list(names))]), note=note)


@pytest.mark.parametrize(
    "columns",
    [
        ("user", "item", "rating"),
        ("userId", "movieId", "rating", "timestamp"),
        ("user_id", "item_id", "click"),
        ("uid", "mid", "stars"),
        ("User ID", "Product ID", "Score"),
        ("reviewerID", "asin", "overall"),
        ("customer", "book", "value", "title"),
    ],
)
def test_obvious_names_are_found(columns):
    assert list(choose(table(*columns), NOTHING).values()) == list(columns[:3])


@pytest.mark.parametrize(
    ("columns", "asked", "told"),
    [
        (("user", "item", "rating"), {"user": "usr"}, ("'usr'", "user=", "mean 'user'")),
        (("user", "user_id", "item", "rating"), {}, ("'user', 'user_id'", "user=")),
        (("user", "thing", "rating"), {}, ("'user', 'thing', 'rating'", "item=")),
        (("user", "item", "rating"), {"time": 3}, ("time=3", "3 columns", 0)),
        (("user", "item", "rating"), {"time": True}, ("time=True", "name", "integer")),
        (("user", "item", "rating"), {"weight": "rating", "rating": 2}, ("rating", "weight", "both", "'rating'")),
        (("user", "item", "r", "r"), {"rating": "r"}, ("2 columns", "'r'", "rename")),
    ],
)
def test_wrong_columns_are_named(columns, asked, told):
    with pytest.raises(ColumnError, match=facts(*told)):
        choose(table(*columns), NOTHING | asked)


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        (("user", "item", "stars", "score"), ("'stars', 'score'", "rating=")),
        (("user", "thing"), ("'user', 'thing'", "item=")),
    ],
)
def test_what_looks_like_ratings_is_not_passed_over(columns, told):
    with pytest.raises(ColumnError, match=facts(*told)):
        choose_log(table(*columns), NOTHING)
