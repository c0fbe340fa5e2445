"""Names of columns: without case, signs and "id" they say what a column is. tests/data/test_columns.py has the rest."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from openloop.errors import ColumnError
from openloop.support.columns import choose, names_a, near, plain, shared
from tests.facts import facts


@dataclass
class Table:
    columns: tuple[str, ...]
    name: str = "log"
    note: str = ""


@pytest.mark.parametrize("name", ["user_id", "userId", "User ID", "USER", "user"])
def test_names_are_compared_without_case_signs_and_id(name):
    assert plain(name) == "user"
    assert names_a("user", name)
    assert not names_a("item", name)


def test_short_names_keep_their_id():
    assert plain("uid") == "uid"
    assert names_a("user", "uid")


def test_what_is_asked_for_is_chosen_and_what_is_needed_is_found():
    table = Table(("who", "sku", "stars", "x"))
    assert choose(table, {"user": "who"}, ("user", "item")) == {"user": "who", "item": "sku"}
    with pytest.raises(ColumnError, match=facts("user", "item", "'sku'")):
        choose(table, {"user": "sku", "item": "sku"}, ())
    assert shared(table, {"user": "who", "item": "gone"}) == {"user": "who"}


def test_a_name_that_is_nearly_right_is_proposed():
    assert "'ratng'" in near(["ratng", "x"], "rating")
    assert not near(["x"], "rating")
    assert "'Username'" in near(["Username"], "user")
    assert not near(["Kundennr", "Sterne"], "user")
