"""What reading refuses of a frame, a fit refuses."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from openloop.errors import ColumnError, DuplicateError, EmptyError, InputError, RatingError
from openloop.propensity import Logistic, NaiveBayes, Popularity, Uniform
from tests.engines import EAGER, converter
from tests.facts import facts
from tests.propensity_logs import feedback, log

SMALL = pl.DataFrame({"user": [1, 1, 2, 3], "item": [1, 2, 1, 3], "rating": [5.0, 1.0, 4.0, 2.0]})


def test_obvious_columns_are_found_and_ratings_are_not_needed():
    fitted = Logistic().fit(SMALL.select("user", "item"), population=(5, 5))
    assert np.isclose(fitted.users_.size @ fitted.users_.count, 4)
    assert Uniform().fit(SMALL.drop("rating"), population=(5, 5)).p_ == 4 / 25


@pytest.mark.parametrize("engine", EAGER)
def test_bad_rows_are_refused_on_every_engine(engine):
    into = converter(engine)
    for value in (None, float("nan"), float("inf"), 1e39):
        bad = SMALL.with_columns(rating=pl.Series([5.0, value, 4.0, 2.0]))
        with pytest.raises(RatingError, match=facts("NaiveBayes", 1, 4, "'rating'")):
            NaiveBayes().fit(into(bad), uniform=[1.0, 5.0])
    for column in ("user", "item"):
        gone = SMALL.with_columns(pl.Series(column, ["1", None, "2", "3"]))
        with pytest.raises(InputError, match=facts("Uniform", 1, 4, f"'{column}'")):
            Uniform().fit(into(gone))
    with pytest.raises(DuplicateError, match=facts("Popularity", "(1, 2)")):
        Popularity().fit(into(pl.concat([SMALL, SMALL[1:2]])))
    with pytest.raises(EmptyError, match=facts("Logistic", "no rows")):
        Logistic().fit(into(SMALL.clear()))


def test_types_and_names_are_checked():
    for bad in (pl.col("user").cast(pl.Float64) + 0.5, pl.lit(True), pl.lit("2020-01-01").str.to_date()):
        with pytest.raises(InputError, match=facts("'user'", "cast")):
            Uniform().fit(SMALL.with_columns(user=bad))
    with pytest.raises(RatingError, match=facts("'rating'", "String")):
        NaiveBayes().fit(SMALL.with_columns(pl.col("rating").cast(str)), uniform=[1.0])
    wide = SMALL.with_columns(user=pl.Series([1, 2**64 - 1, 3, 4], dtype=pl.UInt64))
    with pytest.raises(InputError, match=facts("64 signed bits", "'user'")):
        Uniform().fit(wide)
    with pytest.raises(ColumnError, match=facts("'uid'", "user=")):
        Uniform().fit(SMALL, user="uid")
    with pytest.raises(ColumnError, match=facts("NaiveBayes", "rating")):
        NaiveBayes().fit(SMALL.drop("rating"), uniform=[1.0])
    with pytest.raises(TypeError, match=facts("'usr'", "'user'")):
        Uniform().fit(SMALL, usr="user")
    with pytest.raises(InputError, match=facts("user=", "Feedback")):
        Uniform().fit(feedback(log()), user="uid")
