"""Frames at the door: engines, names of columns and types of ids."""

from __future__ import annotations

from dataclasses import replace

import narwhals as nw
import polars as pl
import pytest

from openloop.errors import ColumnError, InputError
from openloop.sources.frames.opening import beside, common_types, log_columns, opened
from tests.engines import EAGER, converter

FRAME = pl.DataFrame({"uid": [1], "mid": ["a"], "stars": [2.0]})
NAMED = {"user": "uid", "item": "mid"}


@pytest.mark.parametrize("engine", EAGER)
def test_a_frame_of_any_engine_opens(engine):
    assert opened("the log", converter(engine)(FRAME)).columns == ("uid", "mid", "stars")


def test_what_is_no_frame_is_refused():
    with pytest.raises(InputError, match="the log is a dict, not a dataframe"):
        opened("the log", {"user": [1]})


def log():
    return replace(opened("the log", FRAME), ids=("uid", "mid"))


def test_columns_are_the_logs_or_the_obvious_ones():
    assert beside("m", FRAME, log(), NAMED).ids == ("uid", "mid")
    other = FRAME.rename({"uid": "customer_id", "mid": "movie"})
    assert beside("m", other, log(), NAMED).ids == ("customer_id", "movie")
    with pytest.raises(ColumnError, match="m: no user column found"):
        beside("m", FRAME.rename({"uid": "who"}), log(), NAMED)
    with pytest.raises(ColumnError, match="m: 'user', 'customer' may each be the user column"):
        beside("m", other.rename({"customer_id": "user"}).with_columns(customer=1), log(), NAMED)


def test_ids_of_another_kind_do_not_join():
    with pytest.raises(InputError, match="m: its user ids are text, the log's integers"):
        beside("m", FRAME.with_columns(pl.col("uid").cast(str)), log(), NAMED)


def test_the_columns_of_the_log_that_models_are():
    assert log_columns({"a": "x", "b": {"score": "y", "rank": "z"}, "c": FRAME}) == ["x", "y", "z"]


@pytest.mark.parametrize(("other", "user"), [(pl.Int64, None), (pl.Int32, nw.Int64())])
def test_ids_are_cast_only_where_tables_differ(other, user):
    model = beside("m", FRAME.with_columns(pl.col("uid").cast(other)), log(), NAMED)
    assert common_types([log(), model]) == (user, None)
    keys = model.frame.select(*model.keys((user, None))).collect_schema()
    assert dict(keys) == {"u": nw.Int64(), "i": nw.String()}
