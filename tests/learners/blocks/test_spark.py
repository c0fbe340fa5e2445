"""Blocks on Spark: the same fit as in memory, and what is refused before Spark breaks."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from openloop.errors import DuplicateError, InputError, UnknownIdError
from openloop.learners import MF
from tests.facts import facts
from tests.learners.projected_logs import COLUMNS, as_frame, small_log

SETTINGS = {"factors": 3, "reg": 2.0, "solver": "projected", "iterations": 3}


@pytest.fixture(scope="module")
def spark_blocks():
    """The module, which imports pyspark: only here, as other tests run without."""
    from openloop.learners.blocks import spark as module

    return module


@pytest.fixture(scope="module")
def fitted(spark, spark_blocks):
    """Fits of one log on Spark, in two blocks, with text ids; on disk; and the log."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark_blocks, "BLOCK_ROWS", 300)
        log, w = small_log()
        rows = as_frame(log, w, text=True)
        on_disk = MF(**SETTINGS).fit(rows, **COLUMNS)
        on_spark = MF(**SETTINGS).fit(spark.createDataFrame(rows.to_arrow()), **COLUMNS)
    yield on_spark, on_disk, rows
    on_spark.release()


def local(frame):
    return pl.from_arrow(frame.toArrow())


def test_a_fit_on_spark_is_the_fit_in_memory(spark, fitted):
    on_spark, on_disk, _ = fitted
    assert on_spark._on_frame.blocks.count == 2
    np.testing.assert_allclose(on_spark.history_, on_disk.history_, rtol=1e-6)
    np.testing.assert_allclose(on_spark.item_factors_, on_disk.item_factors_, atol=1e-4)
    assert on_spark.intercept_ == pytest.approx(on_disk.intercept_, rel=1e-12)
    assert on_spark.items_ == on_disk.items_


def test_frames_of_a_model_on_spark_are_those_in_memory(spark, fitted):
    on_spark, on_disk, rows = fitted
    here = on_spark.to_model()
    assert here.users_.ids.tolist() == sorted(rows["uid"].unique().to_list())
    users = local(on_spark.users()).sort("uid")
    assert np.array_equal(np.stack(users["factors"].to_list()), here.user_factors_)
    lists, like = (frame.sort("uid", "rank") for frame in (local(on_spark.top(3)), on_disk.top(3)))
    assert lists.columns == ["uid", "sku", "score", "rank"]
    assert lists.select("uid", "sku", "rank").equals(like.select("uid", "sku", "rank"))
    some = rows.filter(pl.col("uid") <= "u0003")
    folded = local(on_spark.users(spark.createDataFrame(some.to_arrow()))).sort("uid")
    np.testing.assert_allclose(np.stack(folded["factors"].to_list()), here.user_factors_[:4], atol=2e-6)


def test_rows_that_are_refused_on_spark(spark, fitted):
    on_spark, _, rows = fitted
    frame = spark.createDataFrame(pl.concat([rows, rows.head(2)]).to_arrow())
    with pytest.raises(DuplicateError, match=facts("MF", 2, 642)):
        MF(**SETTINGS).fit(frame, **COLUMNS)
    bad = spark.createDataFrame(rows.with_columns(pl.lit(float("nan")).alias("w")).to_arrow())
    with pytest.raises(InputError, match=facts("w", 640)):
        MF(**SETTINGS).fit(bad, **COLUMNS)
    with pytest.raises(InputError, match=facts("blocks", "Spark")):
        MF(**SETTINGS).fit(bad.fillna(1.0), **COLUMNS, blocks="here")
    unknown = spark.createDataFrame(
        rows.head(3).with_columns(pl.lit("x").alias("sku"), pl.Series("uid", ["a", "b", "c"])).to_arrow()
    )
    with pytest.raises(UnknownIdError, match=facts("MF.users", 3)):
        on_spark.users(unknown)
    with pytest.raises(InputError, match=facts("held_out")):
        on_spark.ranks(rows.select("uid", "sku"))
    with pytest.raises(InputError, match=facts("MF.users", "fitted", "bring")):
        on_spark.users(rows)
