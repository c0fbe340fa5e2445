from __future__ import annotations

import uuid

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openloop.commands.audit import scan_columns
from openloop.commands.audit.scan_columns import (
    ScannedIds,
    check_propensities,
    check_ratings,
    number,
    rating,
    refuse_empty,
)
from openloop.data import values
from openloop.errors import EmptyError, InputError
from tests.facts import facts

FIELDS = st.one_of(
    st.none(),
    st.integers(-3, 12).map(str),
    st.integers(2**62, 2**64).map(str),
    st.sampled_from(["007", "1.0", "2.0", " 3", "4 ", "nan", "NaN", "", "true", "a", "1e3", "-0", "inf", "0.5", "é\0"]),
)
UNTYPED = st.lists(FIELDS, min_size=1, max_size=12).map(lambda fields: pl.Series("user", fields, dtype=pl.String))
TYPED = st.one_of(
    st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=9).map(
        lambda v: pl.Series("user", v, dtype=pl.Int64)
    ),
    st.lists(
        st.one_of(st.none(), st.sampled_from([1.0, 2.0, 2.5, np.nan, np.inf, 2.0**53])), min_size=1, max_size=9
    ).map(lambda v: pl.Series("user", v, dtype=pl.Float64)),
    st.lists(st.booleans(), min_size=1, max_size=3).map(lambda v: pl.Series("user", v)),
    st.lists(st.sampled_from(["a", "b", "a\0"]), min_size=1, max_size=5).map(
        lambda v: pl.Series("user", v, dtype=pl.Categorical)
    ),
)


def told(call):
    """What comes of a call: its result, or the error."""
    try:
        return call()
    except InputError as error:
        return type(error), str(error)


def _ids_of_rows(column, text, keep_text):
    found = values.ids(column, "log", text=text, keep_text=keep_text)
    if found.dtype == pl.String:
        scan_columns.refuse_nul(found.unique().sort(), found, "log")
    return found.to_list()


def _scanned(column, text, keep_text):
    found = ScannedIds.of(column.to_frame().lazy(), "log", text=text, keep_text=keep_text)
    return column.to_frame().select(found.column).to_series().to_list()


@given(UNTYPED, st.booleans())
def test_untyped_ids_are_read_and_refused_as_rows_in_memory_are(column, keep_text):
    assert told(lambda: _scanned(column, True, keep_text)) == told(lambda: _ids_of_rows(column, True, keep_text))


@given(TYPED)
def test_typed_ids_are_read_and_refused_as_rows_in_memory_are(column):
    assert told(lambda: _scanned(column, False, False)) == told(lambda: _ids_of_rows(column, False, False))


def test_uuids_are_read_as_in_memory():
    column = pl.Series("user", [uuid.UUID(int=n).bytes for n in (5, 7, 5)])
    assert _scanned(column, False, False) == [str(uuid.UUID(int=n)) for n in (5, 7, 5)]


@given(st.one_of(UNTYPED, TYPED))
def test_numbers_are_read_and_refused_as_rows_in_memory_are(column):
    rows = column.to_frame().lazy()

    def scanned(check, made):
        check(rows, "log")
        return rows.select(made("user", column.dtype)).collect().to_series().to_list()

    in_memory = told(lambda: values.ratings(column, "log").tolist())
    assert told(lambda: scanned(check_ratings, rating)) == in_memory
    in_memory = told(lambda: values.propensities(column, "log").tolist())
    assert told(lambda: scanned(check_propensities, number)) == in_memory


def test_the_error_names_the_part_of_a_long_file(monkeypatch):
    monkeypatch.setattr(scan_columns, "PART", 4)
    rows = pl.LazyFrame({"rating": ["1", "2", "3", "4", "5", "x"]})
    with pytest.raises(InputError, match=facts("log, after 4 rows", "1 of 2 ratings", "'x'", "row 2")):
        check_ratings(rows, "log")


def test_ids_that_a_population_lacks():
    found = ScannedIds.of(pl.LazyFrame({"user": ["1", "x", "1"]}), "log", text=True, keep_text=False)
    assert found.unknown(pl.Series([1, 2]))["id"].to_list() == ["x"]  # text is compared as it is written
    typed = ScannedIds.of(pl.LazyFrame({"user": ["1", "x"]}), "log", text=False, keep_text=False)
    assert sorted(typed.unknown(pl.Series([1, 2]))["id"]) == ["1", "x"]


def test_no_rows():
    with pytest.raises(EmptyError, match=facts("log", "no rows")):
        refuse_empty(pl.LazyFrame({"user": []}), "log")
