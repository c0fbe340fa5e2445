from __future__ import annotations

import polars as pl
import pytest

from openloop.data.columns import InputTable, choose, choose_log, names_a, shared
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


def test_a_table_without_columns_has_no_list_of_them():
    with pytest.raises(ColumnError, match=r"log: must have a user column, and has no columns"):
        choose(table(), NOTHING)


def test_names_and_positions():
    asked = NOTHING | {"user": "a", "item": 2, "rating": 0, "time": "d"}
    assert choose(table("r", "a", "i", "d"), asked) == {"user": "a", "item": "i", "rating": "r", "time": "d"}


def test_a_column_that_was_asked_for_is_not_guessed_again():
    columns = table("user", "item", "rating", "score")
    assert choose(columns, NOTHING | {"propensity": "score"})["rating"] == "rating"
    assert choose(columns, NOTHING | {"weight": "rating"})["rating"] == "score"


def test_a_column_that_is_taken_is_no_candidate():
    columns = table("user", "item", "rating", "score")
    assert choose(columns, NOTHING, taken=["score"])["rating"] == "rating"
    with pytest.raises(ColumnError, match="'rating', 'score' may each be the rating column"):
        choose(columns, NOTHING)


def test_a_table_may_share_the_columns_of_another():
    assert shared(table("uid", "movie"), {"user": "uid", "item": "mid", "rating": None}) == {"user": "uid"}


def test_integer_labels_of_pandas_are_names():
    assert choose(table("1", "2", "3"), NOTHING | {"user": 1, "item": 2, "rating": 3})["user"] == "1"


def test_a_table_of_pairs_needs_no_rating():
    table = InputTable("t", ["who", "movie_id", "user"], lambda *_: iter([pl.DataFrame()]))
    assert choose(table, {}, required=("user", "item")) == {"user": "user", "item": "movie_id"}
    assert choose(table, {"user": "who"}, required=("user",)) == {"user": "who"}


@pytest.mark.parametrize(
    ("role", "name", "is_one"),
    [("user", "User ID", True), ("user", "movieId", False), ("item", "movieId", True), ("item", "id", False)],
)
def test_names_tell_roles_apart(role, name, is_one):
    assert names_a(role, name) == is_one


def test_optional_columns_are_not_guessed():
    assert set(choose(table("user", "item", "rating", "propensity", "time"), NOTHING)) == {
        "user",
        "item",
        "rating",
    }


@pytest.mark.parametrize(
    ("columns", "asked", "told"),
    [
        (("user", "item", "rating"), {"user": "usr"}, ("'usr'", "user=", "mean 'user'")),
        (("user", "item", "rating"), {"time": "x"}, ("'x'", "time=", "'user', 'item', 'rating'")),
        (("user", "user_id", "item", "rating"), {}, ("'user', 'user_id'", "user=")),
        (("user", "thing", "rating"), {}, ("'user', 'thing', 'rating'", "item=")),
        (("user", "item", "ratin"), {}, ("'user', 'item', 'ratin'", "mean 'ratin'", "rating=")),
        (("user", "item", "rating"), {"time": 3}, ("time=3", "3 columns", 0)),
        (("user", "item", "rating"), {"time": -1}, ("time=-1", "3 columns", 0)),
        (("user", "item", "rating"), {"time": True}, ("time=True", "name", "integer")),
        (("user", "item", "rating"), {"time": 1.0}, ("time=1.0", "name", "integer")),
        (("user", "item", "rating"), {"weight": "rating", "rating": 2}, ("rating", "weight", "both", "'rating'")),
        (("user", "item", "r", "r"), {"rating": "r"}, ("2 columns", "'r'", "rename")),
    ],
)
def test_wrong_columns_are_named(columns, asked, told):
    with pytest.raises(ColumnError, match=facts(*told)):
        choose(table(*columns), NOTHING | asked)


def test_the_note_says_how_names_were_found():
    with pytest.raises(ColumnError, match="no header"):
        choose(
            table("user", "item", "rating", note=" (it was read as having no header)"),
            NOTHING | {"user": "x"},
        )


@pytest.mark.parametrize(
    ("columns", "asked", "found"),
    [
        (("user", "item"), {}, {"user": "user", "item": "item"}),
        (("user", "item", "device"), {}, {"user": "user", "item": "item"}),
        (("user", "item", "rating"), {}, {"user": "user", "item": "item", "rating": "rating"}),
        (("user", "item", "rating"), {"rating": False}, {"user": "user", "item": "item"}),
        (("user", "item", "rating"), {"rating": False, "time": 2}, {"user": "user", "item": "item", "time": "rating"}),
        (("user", "item", "score"), {"propensity": "score"}, {"user": "user", "item": "item", "propensity": "score"}),
        (("a", "b"), {"user": "a", "item": 1}, {"user": "a", "item": "b"}),
    ],
)
def test_a_log_may_be_one_of_positives(columns, asked, found):
    assert choose_log(table(*columns), NOTHING | asked) == found


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        (("user", "item", "ratin"), ("mean 'ratin'", "rating=", "rating=False")),
        (("user", "item", "stars", "score"), ("'stars', 'score'", "rating=")),
        (("user", "thing"), ("'user', 'thing'", "item=")),
    ],
)
def test_what_looks_like_ratings_is_not_passed_over(columns, told):
    with pytest.raises(ColumnError, match=facts(*told)):
        choose_log(table(*columns), NOTHING)
