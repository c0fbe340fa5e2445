"""The door for frames: names, engines, id types, duplicates, and predictions that are missing."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.errors import ColumnError, DuplicateError, InputError, PredictionError
from tests.engines import EAGER, converter

LOG = pl.DataFrame({"user": [1, 1, 2, 2], "item": [1, 2, 1, 3], "rating": [5.0, 1.0, 4.0, 2.0], "p": [0.5] * 4})
SCORES = LOG.select("user", "item", score=pl.Series([4.0, 2.0, 4.0, 3.0]))
OPTIONS = {"metrics": ["mae"], "estimators": ["naive"], "population": (2, 3)}


def evaluate(log=LOG, scores=SCORES, into=lambda frame: frame, **options):
    return ol.evaluate({"m": into(scores)}, into(log), "p", **(OPTIONS | options))


def test_columns_with_obvious_names_are_found():
    assert evaluate()["m", "mae", "naive"].value == pytest.approx((1 + 1 + 0 + 1) / 4)


def test_a_missing_column_is_named_with_the_nearest():
    with pytest.raises(ColumnError, match=r"no column 'ratingg'.*Did you mean 'rating'"):
        evaluate(rating="ratingg")
    with pytest.raises(ColumnError, match="no column 'score' or 'rank'"):
        evaluate(scores=SCORES.rename({"score": "points"}))


@pytest.mark.parametrize("engine", EAGER)
def test_duplicates_are_refused_on_either_side(engine):
    into = converter(engine)
    with pytest.raises(DuplicateError, match="the log: 1 "):
        evaluate(log=pl.concat([LOG, LOG.head(1)]), into=into)
    with pytest.raises(PredictionError, match=r"'m': 1 .* pairs .*\(1, 1\)"):
        evaluate(scores=pl.concat([SCORES, SCORES.head(1)]), into=into)


def test_frames_of_two_engines_do_not_join():
    with pytest.raises(InputError, match="bring both into one"):
        ol.evaluate({"m": converter("pandas")(SCORES)}, LOG, "p", **OPTIONS)


@pytest.mark.parametrize("engine", EAGER)
def test_numbers_and_text_do_not_match(engine):
    text = SCORES.with_columns(pl.col("user").cast(str))
    with pytest.raises(InputError, match="user ids are text, the log's integers; cast"):
        evaluate(scores=text, into=converter(engine))


@pytest.mark.parametrize("engine", EAGER)
def test_missing_predictions_are_an_error_or_dropped_or_worst(engine):
    into = converter(engine)
    short = SCORES.head(3)
    with pytest.raises(PredictionError, match=r"'m': no prediction for 1 of 4 scored rows.* users 2;"):
        evaluate(scores=short, into=into)
    dropped = evaluate(scores=short, into=into, missing="drop")
    assert dropped["m", "mae", "naive"].value == pytest.approx(2 / 3)
    assert "1 rows" in dropped.notes[0]
    worst = evaluate(scores=short, into=into, missing="worst")  # 2 is furthest from 5
    assert worst["m", "mae", "naive"].value == pytest.approx((1 + 1 + 0 + 3) / 4)
    with pytest.raises(InputError, match='missing must be "error"'):
        evaluate(missing="ignore")


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_scores_must_be_numbers(value):
    broken = SCORES.with_columns(score=pl.Series([4.0, value, 4.0, 3.0]))
    with pytest.raises(PredictionError, match=r"'m': 1 of 4 values in column 'score' .* user 1 and item 2;"):
        evaluate(scores=broken)


def test_ranking_metrics_need_ranks_or_all_scores():
    with pytest.raises(ol.errors.UndefinedError, match="complete=True"):
        evaluate(metrics=["ndcg"])
    grid = pl.DataFrame({"user": [1, 1, 1, 2, 2], "item": [1, 2, 3, 1, 2], "score": np.arange(5.0)})
    with pytest.raises(PredictionError, match="1 scored rows have no score"):
        evaluate(scores=grid, metrics=["ndcg"], complete=True)


@pytest.mark.parametrize("ranks", [[0, 1, 1, 2], [1.5, 1.0, 1.0, 2.0], [1, 1, 1, 2]])
def test_ranks_are_whole_numbers_from_one_each_once_a_user(ranks):
    lists = SCORES.select("user", "item", rank=pl.Series(ranks))
    with pytest.raises(PredictionError, match="integers starting at 1"):
        evaluate(scores=lists, metrics=["ndcg@1"])


def test_a_list_may_not_rank_what_is_excluded():
    lists = pl.DataFrame({"user": [1, 1], "item": [3, 1], "rank": [1, 2]})
    train = pl.DataFrame({"user": [1], "item": [3]})
    with pytest.raises(PredictionError, match="1 excluded cells"):
        evaluate(scores=lists, metrics=["ndcg@1"], exclude=train)


def test_a_declared_whole_ranking_must_hold_every_scored_row():
    lists = SCORES.head(3).select("user", "item", rank=pl.Series([1, 2, 1]))
    with pytest.raises(PredictionError, match="1 scored rows have no rank"):
        evaluate(scores=lists, metrics=["mrr"], complete=True)


def test_an_empty_list_is_refused():
    lists = SCORES.head(0).select("user", "item", rank=pl.lit(1))
    with pytest.raises(PredictionError, match="'m': the table has no rows"):
        evaluate(scores=lists, metrics=["ndcg@1"])


@pytest.mark.parametrize("engine", EAGER)
def test_a_rank_column_of_the_log_may_have_gaps(engine):
    log = LOG.with_columns(place=pl.Series([1, None, 2, None]))
    found = ol.evaluate({"m": {"rank": "place"}}, converter(engine)(log), metrics=["recall@1"], estimators=["naive"])
    assert found["m", "recall@1", "naive"].value == pytest.approx(0.5)


def test_scores_declared_complete_must_be():
    grid = pl.DataFrame({"user": [1, 1, 1, 2, 2], "item": [1, 2, 3, 1, 3], "score": np.arange(5.0)})
    with pytest.raises(PredictionError, match="a user has scores of 2 of 3 items"):
        evaluate(scores=grid, metrics=["ndcg"], complete=True)


@pytest.mark.parametrize("population", [5, (5,), (0, 3), "ab"])
def test_a_population_is_two_numbers(population):
    with pytest.raises(InputError, match="population= must be"):
        evaluate(population=population)


def test_rows_scored_and_excluded_have_no_weighted_ranking():
    lists = SCORES.select("user", "item", rank=pl.Series([1, 2, 1, 2]))
    found = evaluate(scores=lists, metrics=["ndcg@1"], estimators=["naive", "snips"], exclude=LOG.head(1), threshold=1)
    assert "are in exclude= too" in found.skipped["ndcg@1", "snips"]


def test_a_recommendation_matrix_is_zero_or_one():
    with pytest.raises(PredictionError, match="0/1 recommendation matrix"):
        evaluate(metrics=["cg@1"])


def test_a_model_that_is_no_frame_is_named():
    with pytest.raises(InputError, match="model 'm' is a ndarray, not a dataframe"):
        ol.evaluate({"m": np.zeros((2, 3))}, LOG, "p", **OPTIONS)


def test_something_that_is_no_frame_is_refused():
    with pytest.raises(InputError, match="the log is a list, not a dataframe"):
        ol.evaluate({"m": SCORES}, [1, 2, 3], **OPTIONS)


# -- two tables of one model ---------------------------------------------------------------------------------

LISTS = pl.DataFrame({"user": [1, 1, 2, 2], "item": [1, 3, 3, 2], "rank": [1, 2, 1, 2]})
TWO = {"metrics": ["mae", "recall@2"], "estimators": ["naive"], "population": (2, 3)}


@pytest.mark.parametrize("engine", EAGER)
@pytest.mark.parametrize("turned", [False, True])
def test_scores_of_the_log_and_a_list_are_one_model(engine, turned):
    into = converter(engine)
    tables = [into(SCORES), into(LISTS.with_columns(score=9.0))]
    found = ol.evaluate({"m": tables[::-1] if turned else tables}, into(LOG), "p", **TWO)
    apart = [evaluate(metrics=["mae"]), evaluate(scores=LISTS, metrics=["recall@2"])]
    assert found["m", "mae", "naive"].value == apart[0]["m", "mae", "naive"].value
    assert found["m", "recall@2", "naive"].value == apart[1]["m", "recall@2", "naive"].value


@pytest.mark.parametrize("tables", [[SCORES, SCORES], [LISTS, LISTS], [SCORES, LISTS, LISTS]])
def test_other_tables_do_not_go_together(tables):
    with pytest.raises(
        PredictionError, match="must be two, the scores of the log's pairs and a list with a rank column"
    ):
        ol.evaluate({"m": tables}, LOG, "p", **TWO)


def test_duplicates_are_found_in_either_table():
    twice = pl.concat([SCORES, SCORES.head(1)])
    with pytest.raises(PredictionError, match=r"'m': 1 .* pairs .*\(1, 1\)"):
        ol.evaluate({"m": [LISTS, twice]}, LOG, "p", **TWO)
    again = LISTS.with_row_index().with_columns(item=pl.when(pl.col("index") == 1).then(1).otherwise(pl.col("item")))
    with pytest.raises(PredictionError, match=r"'m': .*(pairs|ranks)"):
        ol.evaluate({"m": [SCORES, again.drop("index")]}, LOG, "p", **TWO)


def test_ratings_are_left_out_where_a_list_with_scores_lacks_a_scored_row():
    both = LISTS.with_columns(score=pl.lit(3.0))
    found = evaluate(scores=both, metrics=["mae", "recall@2"])
    assert found.metrics == ("recall@2",)
    assert "model 'm' is a top-2 list, and lacks predictions" in found.skipped["mae", "naive"]
    assert set(evaluate(scores=both, metrics=["mae", "recall@2"], missing="worst").metrics) == {"mae", "recall@2"}
    whole = SCORES.with_columns(rank=pl.Series([1, 2, 1, 2]))
    assert set(evaluate(scores=whole, metrics=["mae", "recall@2"]).metrics) == {"mae", "recall@2"}
