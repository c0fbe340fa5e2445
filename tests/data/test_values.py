from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

from openloop.data.values import ids, look_like_times, propensities, ratings, times, weights
from openloop.errors import InputError, PropensityError, RatingError
from tests.facts import facts

NAN, INF = float("nan"), float("inf")


# -- ids -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        (["1", "20", "-3", "0"], [1, 20, -3, 0]),
        (["1.0", "20.0"], [1, 20]),
        (["1", "007"], ["1", "007"]),
        (["1", "+7"], ["1", "+7"]),
        (["1", "2.0"], ["1", "2.0"]),
        (["1.0", "02.0"], ["1.0", "02.0"]),
        (["1", "x"], ["1", "x"]),
        ([" a ", "b"], ["a", "b"]),
    ],
)
def test_untyped_fields_are_integers_only_if_nothing_is_lost(fields, found):
    assert ids(pl.Series(fields), "log", text=True).to_list() == found
    assert ids(pl.Series(fields), "log", text=True, keep_text=True).to_list() == [f.strip() for f in fields]


@pytest.mark.parametrize(
    ("column", "told"),
    [
        pytest.param(pl.Series([1, None, 3, None]), ("2 of 4 ids", "missing", "rows 2, 4"), id="null"),
        pytest.param(pl.Series([1.0, 2.5]), ("1 of 2 ids", "whole numbers", 2.5, "row 2"), id="fraction"),
        pytest.param(pl.Series([INF]), ("1 of 1 ids", "whole numbers", INF, "row 1"), id="infinite"),
        pytest.param(pl.Series([2.0**54]), ("1 of 1 ids", "2⁵³", 2.0**54, "row 1"), id="inexact"),
        pytest.param(pl.Series([2**63], dtype=pl.UInt64), ("1 of 1 ids", 64, 2**63, "row 1", "text"), id="too large"),
        pytest.param(pl.Series([True]), ("ids", "Boolean", "cast"), id="Boolean"),
        pytest.param(pl.Series([dt.date(2020, 1, 1)]), ("ids", "Date", "cast"), id="date"),
    ],
)
def test_ids_that_are_refused(column, told):
    with pytest.raises(InputError, match=facts("log", *told)):
        ids(column, "log")


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
    ("column", "told"),
    [
        pytest.param(pl.Series([1, None]), ("1 of 2 ratings", "missing", "row 2"), id="null"),
        pytest.param(pl.Series([1.0, -INF]), ("1 of 2 ratings", "finite", 32, -INF, "row 2"), id="infinite"),
        pytest.param(pl.Series([1.0, 1e39]), ("1 of 2 ratings", "finite", 32, 1e39, "row 2"), id="too large"),
        pytest.param(pl.Series(["1", "4,5", "x"]), ("2 of 3 ratings", "'4,5', 'x'", "rows 2, 3"), id="text"),
        pytest.param(pl.Series([dt.date(2020, 1, 1)]), ("ratings", "numbers", "Date", "cast"), id="date"),
    ],
)
def test_ratings_that_are_refused(column, told):
    with pytest.raises(RatingError, match=facts("log", *told)):
        ratings(column, "log")


def test_propensities():
    assert propensities(pl.Series([1.0, 0.5, 1e-100]), "log").tolist() == [1, 0.5, 1e-100]
    for bad in (0.0, -1.0, 1.01, INF, 1e-200):
        with pytest.raises(PropensityError, match=facts("1 of 2 propensities", "(0, 1]", bad, "row 2")):
            propensities(pl.Series([0.5, bad]), "log")
    for gone in (None, NAN):
        with pytest.raises(PropensityError, match=facts("1 of 2 propensities", "missing", "row 2")):
            propensities(pl.Series([0.5, gone]), "log")
    with pytest.raises(PropensityError, match=facts("1 of 1 propensities", "numbers", "'half'", "row 1")):
        propensities(pl.Series(["half"]), "log")


def test_weights():
    assert weights(pl.Series([1, 20]), "log").tolist() == [1, 20]
    for bad in (0.0, -1.0, INF):
        with pytest.raises(InputError, match=facts("1 of 2 weights", "positive", bad, "row 2")):
            weights(pl.Series([0.5, bad]), "log")


# -- times ---------------------------------------------------------------------------------------------------

DAY = 86_400_000_000  # microseconds


@pytest.mark.parametrize(
    ("column", "found"),
    [
        (pl.Series([5, 7], dtype=pl.UInt32), [5, 7]),
        (pl.Series(["5", "7"]), [5, 7]),
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
    ("column", "told"),
    [
        pytest.param(pl.Series([1, None]), ("1 of 2 times", "missing", "row 2"), id="null"),
        pytest.param(pl.Series([1.0, INF]), ("1 of 2 times", "finite", INF, "row 2"), id="infinite"),
        pytest.param(pl.Series(["1970-01-02", "soon"]), ("times", "'1970-01-02', 'soon'", "ISO"), id="two forms"),
        pytest.param(pl.Series([dt.timedelta(1)]), ("times", "numbers", "Duration", "cast"), id="duration"),
    ],
)
def test_times_that_are_refused(column, told):
    with pytest.raises(InputError, match=facts("log", *told)):
        times(column, "log")


# -- what looks like times -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "answer"),
    [
        ([1_600_000_000, 1_600_000_001], True),
        ([1_600_000_000_000.5], True),
        (["1600000000", " 1600000001"], True),
        (["2024-03-01", "2024-03-01 12:30", "2024-03-01T12:30:00Z"], True),
        ([dt.date(2024, 3, 1), None], True),
        ([1_600_000_000, 5], False),
        (["2024-03-01", "5"], False),
        ([1, 2, 5], False),
        (["good"], False),
    ],
    ids=str,
)
def test_times_are_told_from_ratings(values, answer):
    assert look_like_times(pl.Series(values)) is answer


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (["9223372036854775808", "1"], ("1 of 2 ids", 64, "'9223372036854775808'", "row 1", "letter")),
        (["1", " -9223372036854775809"], ("1 of 2 ids", 64, "'-9223372036854775809'", "row 2")),
        (["1.0", "9223372036854775808.0"], ("1 of 2 ids", 64, "row 2")),
        (["1.0", "9007199254740992.0"], ("1 of 2 ids", "2⁵³", "'9007199254740992.0'", "row 2")),
        (["1", "nan", "3"], ("1 of 3 ids", "NaN", "row 2")),
        (["a", "NaN"], ("1 of 2 ids", "NaN", "row 2")),
    ],
)
def test_untyped_ids_that_are_refused(fields, told):
    with pytest.raises(InputError, match=facts("log", *told)):
        ids(pl.Series(fields), "log", text=True)


ALIKE = [
    [16777216.0, 16777217.0],
    [2**53, 2**53 + 1],  # which 64-bit floats do not tell apart either
    [1e-50, 2e-50],
    [-1e-46, 0.0],
    [1e6 + 0.01, 1e6 + 0.02],
]


@pytest.mark.parametrize("given", ALIKE, ids=str)
def test_distinct_ratings_that_32_bits_do_not_tell_apart_are_refused(given):
    for column in (pl.Series(given), pl.Series(given).reverse(), pl.Series(given * 3)):
        with pytest.raises(RatingError, match=facts("log", "1 pair", "32 bits", "rescale")):
            ratings(column, "log")
