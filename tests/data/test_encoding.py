from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openloop.core.feedback import Vocabulary
from openloop.data.encoding import encode, find, refuse_unknown, vocabulary
from openloop.errors import EmptyError, InputError, UnknownIdError
from tests.facts import facts
from tests.strategies import integer_ids, text_ids

columns = st.one_of(
    st.lists(st.integers(0, 20), min_size=1),
    st.lists(integer_ids, min_size=1),
    st.lists(text_ids, min_size=1),
).map(pl.Series)


@given(columns)
def test_codes_decode_to_the_column(column):
    known, codes = encode(column)
    assert known.ids.tolist() == sorted(set(column.to_list()))
    assert known.ids[codes].tolist() == column.to_list()
    assert codes.dtype == np.int32


def test_untyped_text_is_compared_as_written():
    known = Vocabulary.of([7, 10])
    assert find(pl.Series(["7", "007", "x", "10"]), known, text=True).tolist() == [0, -1, -1, 1]
    assert find(pl.Series(["7", "10"]), known).tolist() == [-1, -1]
    assert find(pl.Series([7]), Vocabulary.of(["7"])).tolist() == [-1]


@pytest.mark.parametrize(
    ("given", "error", "told"),
    [
        ([], EmptyError, ("users=", "empty")),
        (0, EmptyError, ("users=0",)),
        ([1, None], InputError, ("users=", "1 of 2 ids", "missing", "row 2")),
        ([1, "a"], InputError, ("mixes", "int", "str")),
        ([1.5], InputError, ("users=", "1 of 1 ids", "whole numbers", 1.5, "row 1")),
        ("users.csv", InputError, ("users='users.csv'", "number", "list")),
        (True, InputError, ("users=True", "number", "list")),
        (2.0, InputError, ("users=2.0", "number", "list")),
    ],
)
def test_vocabularies_that_are_refused(given, error, told):
    with pytest.raises(error, match=facts(*told)):
        vocabulary(given, "users")


def test_unknown_ids_are_counted_and_named():
    column, known = pl.Series([5, 1, 6, 5]), Vocabulary.range(3)
    refuse_unknown(column.slice(1, 1), np.array([1], np.int32), known, "log")
    told = facts("log", "2 ids", "3 of 4 rows", "0 … 2", "5, 6", "rows 1, 3, 4", "unknown='drop'")
    with pytest.raises(UnknownIdError, match=told):
        refuse_unknown(column, find(column, known), known, "log")


@pytest.mark.parametrize("given", [["\ud800"], np.array(["\ud800", "b"]), np.array(["a", "\udfff"], object)])
def test_halves_of_surrogate_pairs_are_no_text(given):
    with pytest.raises(InputError, match=facts("surrogate", "repair")):
        vocabulary(given, "users")
