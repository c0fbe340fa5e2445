"""What is read more than once is held and given back."""

from __future__ import annotations

from contextlib import ExitStack

import narwhals as nw
import polars as pl
import pytest

import openloop as ol
from openloop.errors import PropensityError
from openloop.sources.frames.holding import held, on_spark, result_limit
from tests.engines import converter

ROWS = pl.DataFrame(
    {"user": [0, 0, 1], "item": [0, 1, 2], "rating": [5.0, 4.0, 1.0], "p": [0.5, 0.2, 0.9], "own": [3.0, 2.0, 1.0]}
)


def held_frames(spark):
    return spark.sparkContext._jsc.getPersistentRDDs().size()


def test_frames_in_memory_are_only_made_once():
    made = []
    frame = nw.from_native(ROWS.lazy().map_batches(lambda rows: made.append(1) or rows))
    with ExitStack() as until:
        assert held(frame, until) is frame
        kept = held(frame, until, eager=True)
        assert kept.collect().to_native().equals(kept.collect().to_native())
    assert made == [1]
    assert not on_spark(frame)


def test_spark_holds_joined_rows_until_the_end_also_where_something_is_refused(spark):
    into, before = converter("spark", spark), held_frames(spark)
    with ExitStack() as until:
        assert held(nw.from_native(into(ROWS)), until).to_native().storageLevel.useDisk
        held(nw.from_native(into(ROWS.head(2))), until).collect()
        assert held_frames(spark) == before + 1
    assert held_frames(spark) == before
    asked = {"metrics": ["mae"], "estimators": ["snips"], "population": (2, 3)}
    ol.evaluate({"m": "own"}, into(ROWS), "p", **asked)
    with pytest.raises(PropensityError):
        ol.evaluate({"m": "own"}, into(ROWS.with_columns(p=pl.col("p") * 2)), "p", **asked)
    assert held_frames(spark) == before


def test_spark_says_how_large_a_result_may_be(spark):
    assert result_limit(nw.from_native(converter("spark", spark)(ROWS))) == 2**30
    assert result_limit(nw.from_native(ROWS)) is None
