"""Blocks on Spark: the same fit as in memory, the same bits whoever adds, and what is refused before Spark breaks."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from openloop.errors import DuplicateError, InputError, UnknownIdError
from openloop.learners import MF
from openloop.learners.blocks import user_blocks
from openloop.learners.solvers.projected import Ask
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


@pytest.mark.parametrize("broadcast", [True, False], ids=["pairs travel", "blocks travel"])
def test_no_rank_on_spark_differs(spark, spark_blocks, fitted, monkeypatch, broadcast):
    monkeypatch.setattr(spark_blocks, "TRAVEL", 10**6 if broadcast else 0)
    on_spark, on_disk, rows = fitted
    held = rows.select("uid", "sku").sample(150, seed=5)
    fresh = pl.DataFrame({"uid": ["u0001", "new"], "sku": ["none", "i0003"]})  # an item and a user without a row
    pairs = pl.concat([held, fresh])
    got = local(on_spark.ranks(spark.createDataFrame(pairs.to_arrow()))).sort("uid", "sku")
    assert got.equals(on_disk.ranks(pairs).sort("uid", "sku"))


def test_sums_have_the_same_bits_whoever_adds_them(spark, spark_blocks, fitted, monkeypatch):
    blocks, ask = fitted[0]._on_frame.blocks, fitted[0]._on_frame.ask
    here = blocks.total(ask)
    monkeypatch.setattr(spark_blocks, "ON_DRIVER", 0)
    monkeypatch.setattr(spark_blocks, "AT_ONCE", 600)
    assert len(spark_blocks._edges(len(ask.Q), blocks.count, 2 * ask.Q.nbytes)) > 2
    there = blocks.total(ask)
    assert np.array_equal(here.sums, there.sums)
    assert (here.loss, here.offsets, here.users) == (there.loss, there.offsets, there.users)


def test_the_bits_do_not_depend_on_the_order_of_rows_on_spark(spark, spark_blocks, fitted, monkeypatch):
    monkeypatch.setattr(spark_blocks, "BLOCK_ROWS", 300)
    on_spark, _, rows = fitted
    other = spark.createDataFrame(rows.sort("stars").to_arrow()).repartition(3)
    again = MF(**SETTINGS).fit(other, **COLUMNS)
    assert np.array_equal(again.item_factors_, on_spark.item_factors_)
    assert np.array_equal(again.history_, on_spark.history_)
    again.release()


def test_blocks_without_users_are_there_on_spark_and_take_new_ones(spark, spark_blocks, monkeypatch):
    monkeypatch.setattr(spark_blocks, "BLOCK_ROWS", 1)
    monkeypatch.setattr(user_blocks, "ROWS_PER_ITEM", 0)
    rows = pl.DataFrame({"user": [1, 1, 2, 2, 3, 3], "item": [1, 2, 1, 2, 1, 2], "rating": [1.0, 2, 3, 4, 5, 3]})
    model = MF(1, solver="projected", iterations=1).fit(spark.createDataFrame(rows.to_arrow()))
    pairs = pl.DataFrame({"user": list(range(30)), "item": [1] * 30})
    got = local(model.ranks(spark.createDataFrame(pairs.to_arrow())))
    assert model._on_frame.blocks.count == 6
    assert sorted(got["user"].to_list()) == list(range(30))
    model.release()


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


def test_results_that_the_driver_does_not_take_are_refused_on_spark(spark, spark_blocks, fitted):
    blocks = fitted[0]._on_frame.blocks
    ask = Ask(Q=np.broadcast_to(np.float32(0), (2_000_000, 129)), c=0.0, penalty=np.ones(129))
    with pytest.raises(InputError, match=facts("spark.driver.maxResultSize", "1 GiB", "1.92 GiB")):
        blocks.total(ask)


class ConnectSession:
    """What a session of Spark Connect tells about itself."""

    conf = SimpleNamespace(get=lambda _name, default: default)


ConnectSession.__module__ = "pyspark.sql.connect.session"


def test_messages_that_spark_connect_does_not_take_are_refused(spark_blocks):
    blocks = spark_blocks.SparkBlocks(
        frame=SimpleNamespace(sparkSession=ConnectSession()), count=1, items=np.arange(3), kinds={}, dtype=np.float32,
        facts=None,
    )  # fmt: skip
    ask = Ask(Q=np.broadcast_to(np.float32(0), (500_000, 65)), c=0.0, penalty=np.ones(65))
    with pytest.raises(InputError, match=facts("Spark Connect", "128 MiB", "124 MiB")):
        blocks.map(user_blocks.user_table(), ask)


def test_a_block_that_arrow_cannot_hold_is_refused(spark, spark_blocks, fitted):
    rows = [{"block": 0, "large": True} | dict.fromkeys(spark_blocks.FACTS, 7)]
    found = SimpleNamespace(to_pylist=lambda: rows)
    arrow = SimpleNamespace(sort_by=lambda _: found)
    frame = SimpleNamespace(select=lambda *_: SimpleNamespace(toArrow=lambda: arrow))
    with pytest.raises(InputError, match=facts("MF", 7, "2 GiB")):
        spark_blocks._facts(SimpleNamespace(who="MF"), frame)
