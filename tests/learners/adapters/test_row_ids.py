"""Mappings that do not name rows are refused."""

from __future__ import annotations

import pytest

from openloop.errors import InputError
from openloop.learners.adapters.row_ids import row_ids
from tests.facts import facts


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({0: 1, 1: 2, 2: 0}, ("0, 1, 2", "1, 2, 0", "list of ids")),
        ({"a": 0, "b": 2}, ("0 … 1", "0, 2")),
        ({"a": 0, "b": 0}, ("0 … 1", "0, 0")),
        ({"a": 0.0, "b": 1.0}, ("0 … 1", 0.0)),
        ("ann", ("str", "list of ids")),
        (3, ("int", "list of ids")),
    ],
    ids=["both ways", "gap", "twice", "floats", "text", "number"],
)
def test_what_does_not_name_rows_is_refused(given, told):
    with pytest.raises(InputError, match=facts("wrap", "users", *told)):
        row_ids("users", given)
