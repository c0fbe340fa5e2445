from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

from openloop.data.values import ids, propensities, ratings, row_list, times, weights
from openloop.errors import InputError, PropensityError, RatingError

NAN, INF = float("nan"), float("inf")


# -- ids -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt64, pl.Int128, pl.Float32, pl.Float64]
)
def test_whole_numbers_become_int64(dtype):
    found = ids(pl.Series([3, 1, 2], dtype=dtype), "log")
    assert (found.dtype, found.to_list()) == (pl.Int64, [3, 1, 2])


def test_decimals_without_fraction():
    assert ids(pl.Series([Decimal(3)], dtype=pl.Decimal(38, 0)), "log").to_list() == [3]


def test_text_categories_and_uuids_become_text():
    assert ids(pl.Series(["b", "007"]), "log").to_list() == ["b", "007"]
    assert ids(pl.Series(["b", "a"], dtype=pl.Categorical), "log").dtype == pl.String
    assert ids(pl.Series(["b", "a"], dtype=pl.Enum(["a", "b"])), "log").dtype == pl.String
    some = [uuid.uuid4() for _ in range(3)]
    assert ids(pl.Series([u.bytes for u in some]), "log").to_list() == list(map(str, some))


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        (["1", "20", "-3", "0"], [1, 20, -3, 0]),
        (["1.0", "20.0"], [1, 20]),
        ([" 1", "2 "], [1, 2]),
        (["1", "007"], ["1", "007"]),
        (["1", "+7"], ["1", "+7"]),
        (["-0", "1"], ["-0", "1"]),
        (["1", "2.0"], ["1", "2.0"]),
        (["1.0", "2"], ["1.0", "2"]),
        (["1.0", "02.0"], ["1.0", "02.0"]),
        (["1", "x"], ["1", "x"]),
        (["1e3", "2"], ["1e3", "2"]),
        (["9223372036854775808", "1"], ["9223372036854775808", "1"]),
        ([" a ", "b"], ["a", "b"]),
    ],
)
def test_untyped_fields_are_integers_only_if_nothing_is_lost(fields, found):
    assert ids(pl.Series(fields), "log", text=True).to_list() == found
    assert ids(pl.Series(fields), "log", text=True, keep_text=True).to_list() == [f.strip() for f in fields]


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (
            pl.Series([1, None, 3, None]),
            r"log: 2 of 4 ids are missing \(rows 1, 3\); drop or repair those rows",
        ),
        (pl.Series([1.0, NAN]), r"1 of 2 ids are missing \(row 1\)"),
        (pl.Series([None, None]), "2 of 2 ids are missing"),
        (
            pl.Series([1.0, 2.5]),
            r"1 of 2 ids are not whole numbers: 2.5 \(row 1\); make them integers or text",
        ),
        (pl.Series([INF]), "not whole numbers: inf"),
        (pl.Series([2.0**54]), "not whole numbers"),
        (pl.Series([2**63], dtype=pl.UInt64), r"do not fit 64 signed bits: 9223372036854775808 .*to text"),
        (pl.Series([True]), "must be integers, text or UUIDs, not Boolean"),
        (pl.Series([dt.date(2020, 1, 1)]), "not Date"),
        (pl.Series([b"abc"]), "not Binary"),
        (pl.Series([Decimal("1.5")]), "not Decimal"),
    ],
)
def test_ids_that_are_refused(column, words):
    with pytest.raises(InputError, match=words):
        ids(column, "log")


def test_blank_fields_are_missing_ids():
    for fields in (["a", ""], ["a", "  "], ["1", ""], ["1", None]):
        with pytest.raises(InputError, match=r"1 of 2 ids are missing \(row 1\)"):
            ids(pl.Series(fields), "log", text=True)


# -- ratings, propensities, weights --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([1, 0], dtype=pl.UInt8),
        pl.Series([1.0, 0.0]),
        pl.Series([True, False]),
        pl.Series([Decimal("1.0"), Decimal("0.0")]),
        pl.Series(["1", " 0.0 "]),
        pl.Series(["True", "false"]),
        pl.Series(["1", "0"], dtype=pl.Categorical),
    ],
)
def test_ratings_of_any_numeric_type(column):
    found = ratings(column, "log")
    assert (found.dtype, found.tolist()) == (np.float32, [1, 0])


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pl.Series([1, None]), r"log: 1 of 2 ratings are missing \(row 1\)"),
        (pl.Series([1.0, NAN]), "1 of 2 ratings are missing"),
        (pl.Series(["1", ""]), "1 of 2 ratings are missing"),
        (pl.Series([None, None]), "2 of 2 ratings are missing"),
        (pl.Series([1.0, -INF]), r"1 of 2 ratings are not finite in 32 bits: -inf \(row 1\)"),
        (pl.Series([1.0, 1e39]), r"not finite in 32 bits: 1e\+39"),
        (pl.Series(["1", "nan"]), r"not finite in 32 bits: nan \(row 1\)"),
        (pl.Series(["1", "4,5", "x"]), r"2 of 3 ratings are not numbers: '4,5', 'x' \(rows 1, 2\)"),
        (pl.Series([[1]]), r"ratings must be numbers, not List"),
        (pl.Series([dt.date(2020, 1, 1)]), "not Date"),
    ],
)
def test_ratings_that_are_refused(column, words):
    with pytest.raises(RatingError, match=words):
        ratings(column, "log")


def test_propensities():
    assert propensities(pl.Series([1.0, 0.5, 1e-100]), "log").tolist() == [1, 0.5, 1e-100]
    for bad in (0.0, -1.0, 1.01, INF, 1e-200):
        with pytest.raises(PropensityError, match=r"1 of 2 propensities are outside \(0, 1\].*row 1"):
            propensities(pl.Series([0.5, bad]), "log")
    for gone in (None, NAN):
        with pytest.raises(PropensityError, match="1 of 2 propensities are missing"):
            propensities(pl.Series([0.5, gone]), "log")
    with pytest.raises(PropensityError, match="not numbers: 'half'"):
        propensities(pl.Series(["half"]), "log")


def test_weights():
    assert weights(pl.Series([1, 20]), "log").tolist() == [1, 20]
    for bad in (0.0, -1.0, INF):
        with pytest.raises(InputError, match=r"1 of 2 weights are not finite and positive.*row 1"):
            weights(pl.Series([0.5, bad]), "log")


# -- times ---------------------------------------------------------------------------------------------------

DAY = 86_400_000_000  # microseconds


@pytest.mark.parametrize(
    ("column", "found"),
    [
        (pl.Series([5, 7], dtype=pl.UInt32), [5, 7]),
        (pl.Series([5.5, 7.0]), [5.5, 7.0]),
        (pl.Series(["5", "7"]), [5, 7]),
        (pl.Series(["5.5", "7"]), [5.5, 7.0]),
        (pl.Series([dt.date(1970, 1, 2), dt.date(1970, 1, 3)]), [DAY, 2 * DAY]),
        (pl.Series([0, 1], dtype=pl.Datetime("ms")), [0, 1000]),
        (pl.Series([0, 5000], dtype=pl.Datetime("ns", "Asia/Tokyo")), [0, 5]),
        (pl.Series(["1970-01-02", "1970-01-03"]), [DAY, 2 * DAY]),
        (pl.Series(["1970-01-02T00:00:00Z", "1970-01-02T00:00:01Z"]), [DAY, DAY + 1_000_000]),
        (pl.Series(["1970-01-02 01:00:00"]), [DAY + 3_600_000_000]),
    ],
)
def test_times_keep_their_order(column, found):
    assert times(column, "log").tolist() == found


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pl.Series([1, None]), r"1 of 2 times are missing \(row 1\)"),
        (pl.Series([1.0, NAN]), "1 of 2 times are missing"),
        (pl.Series([1.0, INF]), "1 of 2 times are not finite"),
        (pl.Series([None, dt.date(1970, 1, 2)]), r"times are missing \(row 0\)"),
        (pl.Series(["1970-01-02", "soon"]), "times such as '1970-01-02', 'soon' are not of one form"),
        (pl.Series([dt.timedelta(1)]), "times must be numbers, not Duration"),
    ],
)
def test_times_that_are_refused(column, words):
    with pytest.raises(InputError, match=words):
        times(column, "log")


def test_long_lists_of_rows_are_cut():
    assert row_list([3]) == "row 3"
    assert row_list(list(range(100))) == "rows 0, 1, 2, 3, 4, … (100 in all)"
