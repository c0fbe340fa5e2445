"""What a fit takes from a frame is what it takes from Feedback, and what reading refuses, it refuses."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.errors import ColumnError, DuplicateError, EmptyError, InputError, RatingError, UndefinedError
from openloop.propensity import Balanced, Boosted, Calibrated, Known, Logistic, LowRank, NaiveBayes, Popularity, Uniform
from tests.engines import EAGER, converter
from tests.facts import facts
from tests.propensity_logs import COLUMNS, RATED, I, U, feedback, held, in_order, log, names, sample

SMALL = pl.DataFrame({"user": [1, 1, 2, 3], "item": [1, 2, 1, 3], "rating": [5.0, 1.0, 4.0, 2.0]})


def test_obvious_columns_are_found_and_ratings_are_not_needed():
    fitted = Logistic().fit(SMALL.select("user", "item"), population=(5, 5))
    assert np.isclose(fitted.users_.size @ fitted.users_.count, 4)
    assert Uniform().fit(SMALL.drop("rating"), population=(5, 5)).p_ == 4 / 25


def test_a_population_that_is_not_given_is_counted_with_a_note():
    fitted = Uniform().fit(SMALL)
    assert fitted.p_ == 4 / 9
    assert "population=" in fitted.notes_[0]
    assert Uniform().fit(SMALL, population=(3, 3)).notes_ == ()


@pytest.mark.parametrize("more", [(0, 0), (7, 0), (0, 9), (4, 5)])
def test_users_and_items_without_a_row_are_of_the_population(more):
    rows = log()
    grid = (U + more[0], I + more[1])
    here = ol.read(rows, user="uid", item="mid", rating="stars", users=grid[0], items=grid[1])
    for model in (Popularity(), Logistic(), Uniform()):
        there = type(model)().fit(rows, user="uid", item="mid", population=grid)
        inside = model.fit(here)
        p = there.with_column(rows)["propensity"].to_numpy()
        np.testing.assert_allclose(p, in_order(inside.predict(here), here), rtol=1e-9)
        assert there.notes_ == inside.notes_


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


def test_distinct_saves_the_search_for_pairs_that_are_there_twice():
    assert Uniform().fit(pl.concat([SMALL, SMALL[:1]]), population=(5, 5), distinct=True).p_ == 5 / 25


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


@pytest.mark.parametrize("given", [(2, 5), (5, 2), (0, 3), (3,), "many"])
def test_a_population_holds_the_log(given):
    with pytest.raises(InputError, match=facts("Uniform", "population=")):
        Uniform().fit(SMALL, population=given)


def test_what_has_no_answer_in_memory_has_none_here():
    whole = pl.DataFrame({"user": [1, 1, 2, 2], "item": [1, 2, 1, 2], "rating": [1.0, 2, 3, 4]})
    with pytest.raises(UndefinedError, match="every row"):
        Logistic().fit(whole)
    with pytest.raises(UndefinedError, match=facts("two different counts")):
        Popularity().fit(whole)
    with pytest.raises(RatingError, match=facts(3.0, 4.0, "smoothing=1")):
        NaiveBayes(smoothing=0).fit(whole, uniform=pl.DataFrame({"rating": [1.0, 2.0]}))
    with pytest.raises(InputError, match="uniform"):
        NaiveBayes().fit(whole)
    with pytest.raises(EmptyError, match=facts("uniform=")):
        NaiveBayes().fit(whole, uniform=pl.DataFrame({"rating": []}, schema={"rating": pl.Float64}))
    with pytest.raises(RatingError, match=facts("uniform=", 1)):
        Balanced(Uniform()).fit(whole, uniform=pl.DataFrame({"rating": [1.0, None]}))
    many = pl.DataFrame({"user": np.arange(2000), "item": 1, "rating": np.arange(2000.0)})
    with pytest.raises(RatingError, match=facts("1,000")):
        NaiveBayes().fit(many, uniform=[1.0])
    with pytest.raises(UndefinedError, match="positives"):
        Balanced(Uniform()).fit(whole.with_columns(rating=pl.lit(1.0)), uniform=[0.0, 1.0])


@pytest.mark.parametrize("model", [Boosted(), LowRank(), Known(), Calibrated(Logistic())])
def test_models_of_memory_refuse_a_frame_with_the_remedy(model):
    name = type(model).__name__
    for columns in ({}, COLUMNS):
        with pytest.raises(InputError, match=facts(name, "Feedback")):
            model.fit(log(), **columns)
    with pytest.raises(InputError, match=facts(name)):
        Balanced(model).fit(log(), uniform=[1.0, 2.0, 3.0], **RATED)


def test_frames_are_balanced_by_ratings_alone():
    rows = log()
    for given in ({"predictions": np.zeros((U, I))}, {"user_features": np.zeros((U, 1))}):
        with pytest.raises(InputError, match=facts(f"{next(iter(given))}=", "frame")):
            Balanced(Uniform()).fit(rows, uniform=sample(rows), **given, **RATED)
    with pytest.raises(InputError, match=facts("margins=", "frame")):
        Balanced(Uniform(), margins={"age": {"old": 1.0}}).fit(rows, uniform=sample(rows), **RATED)
    with pytest.raises(InputError, match="uniform=sample"):
        Balanced(Uniform()).fit(rows, **RATED)


def test_a_feedback_serves_as_sample_of_a_frame_and_a_frame_of_a_feedback():
    rows = log()
    here, drawn = feedback(rows), sample(rows)
    uniform = ol.read(
        drawn.with_row_index("uid").with_columns(mid=pl.lit(0)), user="uid", item="mid", rating="stars", uniform=True
    )
    for model in (NaiveBayes, lambda: Balanced(Popularity(gamma=1.0))):
        p = [
            in_order(model().fit(here, uniform=uniform).predict(here), here),
            in_order(model().fit(here, uniform=drawn).predict(here), here),
            model().fit(rows, uniform=uniform, **RATED).with_column(rows)["propensity"].to_numpy(),
        ]
        np.testing.assert_allclose(p[1], p[0], rtol=1e-12)
        np.testing.assert_allclose(p[2], p[0], rtol=1e-9)


@pytest.mark.parametrize("engine", EAGER)
@pytest.mark.parametrize("ids", ["integers", "text"])
def test_products_of_covariates_are_fitted_as_in_memory(engine, ids):
    rows, rng = log(ids), np.random.default_rng(4)
    here, frame = feedback(rows, ids), converter(engine)(rows)
    tables = [rng.normal(size=(U, 2)), rng.integers(0, 2, (I, 3)).astype(float)]
    X, Z = (
        ol.Covariates(values=x, names=tuple("abc"[: x.shape[1]]), ids=ol.Vocabulary.of(names(ids, len(x), prefix)))
        for x, prefix in zip(tables, "ui", strict=True)
    )
    inside = Logistic(reg=2.0).fit(here, X, Z)
    there = Logistic(reg=2.0).fit(frame, X, Z, user="uid", item="mid")
    np.testing.assert_allclose(there.weights_, inside.weights_, rtol=1e-7, atol=1e-9)
    p = held(there.with_column(frame)).sort("n")["propensity"].to_numpy()
    np.testing.assert_allclose(p, in_order(inside.predict(here), here)[np.argsort(rows["n"])], rtol=1e-9)
    assert there.notes_ == inside.notes_
    np.testing.assert_allclose(there.matrix(), inside.matrix(), rtol=1e-9)  # all ids are known


def test_covariates_of_a_frame_know_their_ids_and_the_penalty():
    rows = log()
    X = ol.Covariates(values=np.eye(U)[:, :2], names=("a", "b"), ids=ol.Vocabulary.range(U))
    Z = ol.Covariates(values=np.eye(I)[:, :2], names=("a", "b"), ids=ol.Vocabulary.range(I))
    with pytest.raises(InputError, match=facts("user_features", "ol.covariates")):
        Logistic(reg=1.0).fit(rows, np.eye(U), Z, user="uid", item="mid")
    with pytest.raises(InputError, match=facts("reg=")):
        Logistic().fit(rows, X, Z, user="uid", item="mid")
    with pytest.raises(InputError, match=facts("population=", "(61, 30)")):
        Logistic(reg=1.0).fit(rows, X, Z, user="uid", item="mid", population=(61, 30))
    few = ol.Covariates(values=np.eye(9)[:, :2], names=("a", "b"), ids=ol.Vocabulary.range(9))
    with pytest.raises(ol.errors.UnknownIdError, match=facts("Logistic", "users", 9, "covariates")):
        Logistic(reg=1.0).fit(rows, few, Z, user="uid", item="mid")
    alone = Logistic().fit(rows, X, **COLUMNS)
    assert "give both sides" in alone.notes_[0]
    assert alone.with_column(rows)["propensity"].equals(Logistic().fit(rows, **COLUMNS).with_column(rows)["propensity"])


def test_ids_that_stay_in_an_engine_have_no_matrix_and_are_looked_up():
    rows = log("text")
    for model in (Uniform(), Popularity(), Logistic()):
        fitted = model.fit(rows, **COLUMNS)
        assert (len(fitted.users_), len(fitted.items_)) == (U, I)
        for ask in (fitted.matrix, fitted.margins):
            with pytest.raises(UndefinedError, match=facts(type(model).__name__, U, "with_column(frame)")):
                ask()
    part = ol.read(rows.head(40), user="uid", item="mid", rating="stars")
    whole = dict(zip(rows["n"], fitted.with_column(rows)["propensity"], strict=True))
    expected = [whole[n] for n in rows["n"].head(40).to_numpy()[part.row].tolist()]
    np.testing.assert_allclose(fitted.predict(part).values, expected, rtol=1e-12)
    other = ol.read(rows.with_columns(uid=pl.lit("x") + pl.col("uid")), user="uid", item="mid", rating="stars")
    with pytest.raises(ol.errors.UnknownIdError, match=facts("Logistic", "population=")):
        fitted.predict(other)
