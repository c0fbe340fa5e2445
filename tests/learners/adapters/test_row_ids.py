"""The ids of rows, whatever keeps them; mappings that may be read both ways are refused."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.preprocessing import LabelEncoder

from openloop.core.feedback import Vocabulary
from openloop.errors import InputError
from openloop.learners.adapters.row_ids import row_ids
from tests.facts import facts

KEPT = {
    "list": ["b", "a", "c"],
    "array": np.array(["b", "a", "c"]),
    "pandas": pd.Series(["b", "a", "c"]),
    "index": pd.Index(["b", "a", "c"]),
    "polars": pl.Series(["b", "a", "c"]),
    "id to position": {"a": 1, "c": 2, "b": 0},
    "position to id": {2: "c", 0: "b", 1: "a"},
    "RecTools": SimpleNamespace(external_ids=np.array(["b", "a", "c"], object)),
    "LensKit": SimpleNamespace(ids=lambda: np.array(["b", "a", "c"]), number=None),
}


@pytest.mark.parametrize("given", KEPT.values(), ids=KEPT)
def test_ids_are_in_the_order_of_the_rows(given):
    assert row_ids("users", given).tolist() == ["b", "a", "c"]


def test_vocabularies_and_encoders_have_theirs_sorted():
    assert row_ids("items", Vocabulary.of([5, 3])).tolist() == [3, 5]
    assert row_ids("items", LabelEncoder().fit(["x", "b"])).tolist() == ["b", "x"]


def test_numbers_map_to_positions():
    found = row_ids("items", {np.int64(70): np.int32(1), 30: 0, 10: 2})
    assert found.tolist() == [30, 70, 10]
    assert found.dtype.kind == "i"
    assert row_ids("items", {0: 0, 1: 1}).tolist() == [0, 1]
    assert row_ids("users", None) is None


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


def test_text_and_numbers_are_not_made_text():
    with pytest.raises(InputError, match=facts("users", "text and numbers", "'a'", "cast")):
        row_ids("users", [1, "a"])
