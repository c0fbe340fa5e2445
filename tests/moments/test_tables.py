"""Predictions given as a table: what it holds, and which metrics it can serve."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.errors import PredictionError, UndefinedError
from tests.examples import small_world

WORLD = small_world()
LOG = WORLD.observe(1)
U, I = WORLD.ratings.shape
SCORES = WORLD.predictions["a"]
GRID = pl.DataFrame(
    {"user": np.repeat(np.arange(U), I), "item": np.tile(np.arange(I), U), "score": SCORES.ravel()}
).with_columns(rank=pl.col("score").rank("ordinal", descending=True).over("user"))
WHOLE = float(U * I)


def test_the_doubly_robust_estimator_is_left_out_where_a_table_holds_ranks():
    options = {"metrics": ["dcg@3"], "estimators": ["naive", ol.dr(np.full((U, I), 3.0))]}
    whole = ol.evaluate({"m": GRID.drop("rank")}, LOG, **options)["m", "dcg@3", "dr"]
    assert whole.value == ol.evaluate({"m": SCORES}, LOG, **options)["m", "dcg@3", "dr"].value
    assert "no scores" in ol.evaluate({"m": GRID.drop("score")}, LOG, **options).skipped["dcg@3", "dr"]


def test_a_table_with_both_serves_ratings_and_rankings():
    frame = GRID.filter(pl.col("rank") <= 5)
    result = ol.evaluate({"m": frame}, LOG, metrics=["mae", "ndcg@5"], estimators=["naive"], missing="drop")
    assert set(result.metrics) == {"mae", "ndcg@5"}


def test_a_list_without_any_scored_row_is_noted():
    seen = pl.DataFrame({"user": LOG.user, "item": LOG.item})
    others = GRID.drop("score").join(seen, on=["user", "item"], how="anti")
    ranked = others.with_columns(rank=pl.col("rank").rank("ordinal").over("user")).filter(pl.col("rank") <= 3)
    found = ol.evaluate({"m": ranked}, LOG, metrics=["recall@3"], estimators=["naive"])
    assert "model 'm' lists none of the scored rows; was it trained to leave them out?" in found.notes
    whole = ol.evaluate({"m": GRID.drop("score")}, LOG, metrics=["recall@3"], estimators=["naive"])
    assert not any("lists none" in note for note in whole.notes)


def evaluated(frame, *metrics, estimators=("naive",)):
    return ol.evaluate({"m": frame}, LOG, metrics=metrics, estimators=estimators)


@pytest.mark.parametrize(
    ("columns", "rows", "metric", "reason"),
    [
        (("score", "rank"), WHOLE, "map", None),
        (("rank",), WHOLE, "map", None),  # a whole ranking serves every metric on ranks
        (("rank",), WHOLE, "mae", "no scores"),
        (("rank",), 3, "ndcg@4", "top-3 list, which serves only @k with k ≤ 3"),
        (("rank",), 3, "ndcg", "top-3 list"),
        (("score",), 3, "ndcg@3", "neither ranks nor the scores of all"),
    ],
)
def test_which_metrics_a_table_can_serve(columns, rows, metric, reason):
    frame = GRID.filter(pl.col("rank") <= rows).select("user", "item", *columns)
    if reason is None:
        assert (
            evaluated(frame, metric)["m", metric, "naive"].value
            == evaluated(SCORES, metric)["m", metric, "naive"].value
        )
    else:
        with pytest.raises(UndefinedError, match=reason):
            evaluated(frame, metric)


def test_a_list_tells_of_gaps_and_of_users_without_one():
    top = GRID.filter(pl.col("rank") <= 4).drop("score")

    def told(frame):
        return [note for note in evaluated(frame, "recall@4").notes if "model 'm'" in note]

    assert told(top) == []
    shown = [int(u) for u in np.unique(LOG.user)]
    gone = top.filter(~pl.col("user").is_in(shown[:2]))
    assert told(gone) == ["model 'm': 2 users with scored rows have no list, so their items count as unlisted"]
    gaps = top.filter((pl.col("user") != 1) | (pl.col("rank") != 1))
    assert told(gaps) == ["model 'm': the lists of 1 users have gaps in their ranks"]
    assert told(top.filter((pl.col("user") != 1) | (pl.col("rank") != 4))) == []  # shorter, and without a gap


# -- two tables of one model ---------------------------------------------------------------------------------

PAIRS = GRID.select("user", "item", "score").join(
    pl.DataFrame({"user": LOG.user, "item": LOG.item}), on=["user", "item"], how="semi"
)
LIST = GRID.filter(pl.col("rank") <= 5)
BOTH = {"metrics": ["mae", "ndcg@5", "map"], "estimators": ["naive", "snips"]}


@pytest.mark.parametrize("listed", [LIST, LIST.drop("score")])
@pytest.mark.parametrize("turned", [False, True])
def test_scores_of_the_log_and_a_list_are_one_model(listed, turned):
    model = [listed, PAIRS] if turned else [PAIRS, listed]
    found = ol.evaluate({"m": model}, LOG, **BOTH)
    whole = ol.evaluate({"m": SCORES}, LOG, **BOTH)
    assert {key for key in whole.estimates if key[1] != "map"} == set(found.estimates)
    for key, estimate in found.estimates.items():
        assert estimate.value == pytest.approx(whole[key].value)
    assert "top-5 list" in found.skipped["map", "naive"]


@pytest.mark.parametrize("tables", [[PAIRS, PAIRS], [LIST, LIST], [PAIRS, PAIRS, LIST]])
def test_other_tables_do_not_go_together(tables):
    with pytest.raises(
        PredictionError, match="must be two, the scores of the log's pairs and a list with a rank column"
    ):
        ol.evaluate({"m": tables}, LOG, **BOTH)


def test_one_table_in_a_list_is_that_table():
    alone, listed = (ol.evaluate({"m": m}, LOG, metrics=["mae"], estimators=["naive"]) for m in (PAIRS, [PAIRS]))
    assert alone["m", "mae", "naive"].value == listed["m", "mae", "naive"].value


def test_ratings_are_left_out_where_a_list_with_scores_lacks_a_scored_row():
    found = ol.evaluate({"m": LIST, "whole": SCORES}, LOG, metrics=["mae", "ndcg@5"], estimators=["naive"])
    assert found.metrics == ("ndcg@5",)
    assert "model 'm' is a top-5 list, and lacks predictions of some scored rows" in found.skipped["mae", "naive"]
    assert ol.evaluate({"m": GRID}, LOG, metrics=["mae"], estimators=["naive"]).metrics == ("mae",)
    worst = ol.evaluate({"m": LIST}, LOG, metrics=["mae"], estimators=["naive"], missing="worst")
    assert worst.metrics == ("mae",)


def test_scores_that_lack_a_row_are_an_error_beside_a_list():
    with pytest.raises(PredictionError, match="no prediction for 2 of"):
        ol.evaluate({"m": [PAIRS.head(len(PAIRS) - 2), LIST]}, LOG, **BOTH)


def test_a_note_on_a_list_is_about_the_list():
    others = GRID.drop("score").join(PAIRS, on=["user", "item"], how="anti")
    ranked = others.with_columns(rank=pl.col("rank").rank("ordinal").over("user")).filter(pl.col("rank") <= 3)
    found = ol.evaluate({"m": [PAIRS, ranked]}, LOG, metrics=["mae", "recall@3"], estimators=["naive"])
    assert any("lists none of the scored rows" in note for note in found.notes)
