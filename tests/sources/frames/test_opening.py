"""Frames at the door: engines, names of columns and types of ids."""

from __future__ import annotations

import narwhals as nw
import polars as pl
import pytest

from openloop.errors import ColumnError, InputError
from openloop.sources.frames.opening import id_types, log_columns, named, opened, tables_of
from tests.engines import EAGER, converter

FRAME = pl.DataFrame({"uid": [1], "mid": ["a"], "stars": [2.0]})
NAMES = {"u": "uid", "i": "mid"}


@pytest.mark.parametrize("engine", EAGER)
def test_a_frame_of_any_engine_opens(engine):
    assert opened("the log", converter(engine)(FRAME)).collect_schema().names() == ["uid", "mid", "stars"]


def test_what_is_no_frame_is_refused():
    with pytest.raises(InputError, match="the log is a dict, not a dataframe"):
        opened("the log", {"user": [1]})


def test_a_column_is_the_named_one_or_the_first_obvious_one():
    assert named("user", "uid", ["uid", "user"], ("user",)) == "uid"
    assert named("user", None, ["uid", "user"], ("user", "uid")) == "user"
    with pytest.raises(ColumnError, match=r"there is no column 'uidd'\. Did you mean 'uid'"):
        named("user", "uidd", ["uid"], ("user",))
    with pytest.raises(ColumnError, match="there is no column 'user'"):
        named("user", None, ["x"], ("user",))


def test_the_columns_of_the_log_that_models_are():
    assert log_columns({"a": "x", "b": {"score": "y", "rank": "z"}, "c": FRAME}) == ["x", "y", "z"]


@pytest.mark.parametrize(
    ("other", "user"),
    [(pl.Int64, None), (pl.Int32, nw.Int64()), (pl.String, nw.String())],
)
def test_ids_are_cast_only_where_frames_differ(other, user):
    model = FRAME.with_columns(pl.col("uid").cast(other))
    assert id_types(nw.from_native(FRAME), NAMES, {"m": model}, None) == (user, None)


def test_the_ids_of_every_table_of_a_model_decide_their_type():
    log = pl.DataFrame({"user": [1], "item": [1]}, schema={"user": pl.Int64, "item": pl.Int64})
    narrow = log.cast(pl.Int32)
    table = opened("the log", log)
    names = {"u": "user", "i": "item"}
    assert id_types(table, names, {"m": [log, log]}, None) == (None, None)
    assert id_types(table, names, {"m": [log, narrow]}, None) == (nw.Int64(), nw.Int64())
    assert len(tables_of(log)) == 1
    assert len(tables_of([log, narrow])) == 2
