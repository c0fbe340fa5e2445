"""Predictions given as a table: what it holds, and which metrics it can serve."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.errors import ColumnError, PredictionError
from openloop.tables import read_table
from tests.examples import small_world

WORLD = small_world()
LOG = WORLD.observe(1)
U, I = WORLD.ratings.shape
SCORES = WORLD.predictions["a"]
GRID = pl.DataFrame(
    {"user": np.repeat(np.arange(U), I), "item": np.tile(np.arange(I), U), "score": SCORES.ravel()}
).with_columns(rank=pl.col("score").rank("ordinal", descending=True).over("user"))
WHOLE = float(U * I)


def test_a_table_finds_cells_and_says_where_it_has_none():
    found = read_table("m", pl.DataFrame({"user": [1, 0], "item": [2, 3], "score": [0.5, 0.7]}), LOG)
    np.testing.assert_array_equal(found.at(found.score, np.array([3, I + 2, 0])), [0.7, 0.5, np.nan])


def test_a_grid_needs_every_cell():
    np.testing.assert_array_equal(read_table("m", GRID, LOG).grid("m"), SCORES)
    with pytest.raises(PredictionError, match=f"needs scores of all {U} × {I} cells, has 5"):
        read_table("m", GRID.head(5), LOG).grid("m")


@pytest.mark.parametrize(
    ("columns", "rows", "metric", "reason"),
    [
        (("score", "rank"), WHOLE, "mae", None),
        (("score", "rank"), WHOLE, "map", None),
        (("rank",), WHOLE, "map", None),  # a whole ranking serves every metric on ranks
        (("rank",), WHOLE, "mae", "has no scores"),
        (("rank",), 3, "ndcg@3", None),
        (("rank",), 3, "ndcg@4", "top-3 list, which serves only @k with k ≤ 3"),
        (("rank",), 3, "ndcg", "top-3 list"),
        (("score",), 3, "mae", None),
        (("score",), 3, "ndcg@3", "rankings need all, or a rank column"),
    ],
)
def test_which_metrics_a_table_can_serve(columns, rows, metric, reason):
    frame = GRID.filter(pl.col("rank") <= rows).select("user", "item", *columns)
    found = read_table("m", frame, LOG).refusal(ol.metric(metric), WHOLE, everywhere=False)
    assert found is None if reason is None else reason in found


@pytest.mark.parametrize(
    ("frame", "reason"),
    [(GRID, None), (GRID.drop("score"), "has no scores"), (GRID.filter(pl.col("rank") < 4), "those of every cell")],
)
def test_imputation_needs_every_cell(frame, reason):
    found = read_table("m", frame, LOG).refusal(ol.metric("dcg@3"), WHOLE, everywhere=True)
    assert found is None if reason is None else reason in found


def test_the_doubly_robust_estimator_is_left_out_where_a_table_holds_ranks():
    options = {"metrics": ["dcg@3"], "estimators": ["naive", "dr"], "imputation": np.full((U, I), 3.0)}
    whole = ol.evaluate({"m": GRID.drop("rank")}, LOG, **options)["m", "dcg@3", "dr"]
    assert whole.value == ol.evaluate({"m": SCORES}, LOG, **options)["m", "dcg@3", "dr"].value
    assert "table of ranks" in ol.evaluate({"m": GRID.drop("score")}, LOG, **options).skipped["dcg@3", "dr"]


def test_a_table_with_both_serves_ratings_and_rankings():
    frame = GRID.filter(pl.col("rank") <= 5)
    result = ol.evaluate({"m": frame}, LOG, metrics=["mae", "ndcg@5"], estimators=["naive"], missing="drop")
    assert set(result.metrics) == {"mae", "ndcg@5"}


def test_columns_of_another_name_are_named():
    frame = GRID.select(customer="user", thing="item", score="score")
    options = {"metrics": ["mae"], "estimators": ["naive"]}
    found = ol.evaluate({"m": frame}, LOG, user="customer", item="thing", **options)
    assert found["m", "mae", "naive"].value == ol.evaluate({"m": SCORES}, LOG, **options)["m", "mae", "naive"].value
    with pytest.raises(ColumnError, match="no column 'user'"):
        ol.evaluate({"m": frame}, LOG, **options)


def test_a_list_without_any_scored_row_is_noted():
    seen = pl.DataFrame({"user": LOG.user, "item": LOG.item})
    others = GRID.drop("score").join(seen, on=["user", "item"], how="anti")
    ranked = others.with_columns(rank=pl.col("rank").rank("ordinal").over("user")).filter(pl.col("rank") <= 3)
    found = ol.evaluate({"m": ranked}, LOG, metrics=["recall@3"], estimators=["naive"])
    assert "model 'm' lists none of the scored rows; was it made to leave them out?" in found.notes
    whole = ol.evaluate({"m": GRID.drop("score")}, LOG, metrics=["recall@3"], estimators=["naive"])
    assert not any("lists none" in note for note in whole.notes)
