from __future__ import annotations

import gzip

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openloop.core.feedback import Feedback, Vocabulary
from openloop.data.reading import read
from openloop.errors import (
    ColumnError,
    DuplicateError,
    EmptyError,
    InputError,
    UnknownIdError,
)
from tests.facts import facts
from tests.strategies import invalid_logs, logs

LOG = pl.DataFrame({
    "user": [30, 10, 20, 10],
    "item": [7, 9, 7, 8],
    "rating": [4.0, 1.5, 3.0, 5.0],
    "propensity": [0.4, 0.1, 0.3, 0.2],
    "time": [400, 100, 300, 200],
})  # fmt: skip
COLUMNS = {"propensity": "propensity", "time": "time"}


def same(a: Feedback, b: Feedback) -> bool:
    assert a.users == b.users
    assert a.items == b.items
    for name in ("user", "item", "rating", "propensity", "time", "weight", "row"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    return (a.input_rows, a.dropped, a.uniform) == (b.input_rows, b.dropped, b.uniform)


# -- by hand -------------------------------------------------------------------------------------------------


def test_rows_become_sorted_cells_with_their_columns():
    log = read(LOG, weight="time", propensity="propensity")
    assert log.users.ids.tolist() == [10, 20, 30]
    assert log.items.ids.tolist() == [7, 8, 9]
    assert log.user.tolist() == [0, 0, 1, 2]
    assert log.item.tolist() == [1, 2, 0, 0]
    assert log.rating.tolist() == [5.0, 1.5, 3.0, 4.0]
    assert log.propensity.tolist() == [0.2, 0.1, 0.3, 0.4]
    assert log.weight.tolist() == [200, 100, 300, 400]
    assert log.row.tolist() == [3, 1, 2, 0]
    assert log.time is None
    assert (log.user.dtype, log.rating.dtype, log.input_rows) == (np.int32, np.float32, 4)


# -- laws ----------------------------------------------------------------------------------------------------


@given(logs(), st.randoms(use_true_random=False))
def test_row_order_does_not_matter_and_align_follows_it(columns, random):
    whole = pl.DataFrame(columns)
    order = list(range(len(whole)))
    random.shuffle(order)
    shuffled = whole[order]
    a, b = read(whole, time="time"), read(shuffled, **COLUMNS)
    assert a.users == b.users
    assert a.items == b.items
    np.testing.assert_array_equal(a.cell, b.cell)
    np.testing.assert_array_equal(a.rating, b.rating)
    np.testing.assert_array_equal(a.time, b.time)
    np.testing.assert_array_equal(a.align(whole["propensity"]), b.propensity)
    np.testing.assert_array_equal(b.align(shuffled["propensity"]), b.propensity)


@given(logs())
def test_ids_decode_to_the_input(columns):
    log = read(pl.DataFrame(columns))
    assert log.align(np.array(columns["user"], object)).tolist() == log.users.ids[log.user].tolist()
    assert log.align(np.array(columns["item"], object)).tolist() == log.items.ids[log.item].tolist()


# -- all formats, all engines --------------------------------------------------------------------------------


def write(path, kind: str):
    match kind:
        case "csv":
            LOG.write_csv(path)
        case "tsv":
            LOG.write_csv(path, separator="\t", include_header=False)
        case "dat":
            path.write_text("\n".join("::".join(map(str, row)) for row in LOG.rows()) + "\n")
        case "csv.gz":
            path.write_bytes(gzip.compress(LOG.write_csv().encode()))
        case "parquet":
            LOG.write_parquet(path)
        case "jsonl":
            LOG.write_ndjson(path)
        case "json":
            LOG.write_json(path)


@pytest.mark.parametrize("kind", ["csv", "tsv", "dat", "csv.gz", "parquet", "jsonl", "json"])
def test_all_formats_give_the_same_feedback(tmp_path, kind):
    path = tmp_path / f"log.{kind}"
    write(path, kind)
    positions = {"propensity": 3, "time": 4}
    assert same(read(path, **positions), read(LOG, **COLUMNS))
    assert same(read(str(path), **positions), read(LOG, **COLUMNS))


@pytest.mark.parametrize("engine", ["lazy", "pandas", "pyarrow", "duckdb"])
def test_all_engines_give_the_same_feedback(engine):
    arrow = LOG.to_arrow()
    frame = {
        "lazy": LOG.lazy(),
        "pandas": pd.DataFrame(LOG.to_dict(as_series=False)),
        "pyarrow": arrow,
        "duckdb": duckdb.connect().from_arrow(arrow),
    }[engine]
    assert same(read(frame, **COLUMNS), read(LOG, **COLUMNS))


def test_spark_gives_the_same_feedback(spark):
    frame = spark.createDataFrame(LOG.to_arrow()).coalesce(1)
    assert same(read(frame, **COLUMNS), read(LOG, **COLUMNS))
    text = LOG.with_columns(pl.col("user", "item").cast(pl.String), click=pl.col("rating") > 3)
    frame = spark.createDataFrame(text.to_arrow()).coalesce(1)
    assert same(read(frame, rating="click"), read(text, rating="click"))


# -- real files ----------------------------------------------------------------------------------------------


def test_movielens_100k(data_dir):
    log = read(data_dir("ml-100k") / "u.data", time=3)
    assert (len(log), log.n_users, log.n_items) == (100_000, 943, 1_682)
    assert log.users.ids[[0, -1]].tolist() == [1, 943]
    at = np.flatnonzero(log.row == 0)[0]  # the file's first line: 196 242 3 881250949
    cell = (log.users.ids[log.user[at]], log.items.ids[log.item[at]], log.rating[at], log.time[at])
    assert cell == (196, 242, 3.0, 881250949)


# -- ids -----------------------------------------------------------------------------------------------------


def test_leading_zeros_of_a_file_stay_text_and_plain_integers_do_not(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("user,item,rating\n007,1,5\n7,2,4\n")
    log = read(path)
    assert log.users.ids.tolist() == ["007", "7"]
    assert log.items.ids.tolist() == [1, 2]


# -- vocabularies --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "users",
    [
        [5, 30, 20, 10],
        np.array([30, 20, 10, 5, 5]),
        pl.Series([5, 10, 20, 30]),
        pd.Series([5, 10, 20, 30]),
        Vocabulary.of([5, 10, 20, 30]),
        (5, 10, 20, 30),
    ],
)
def test_users_may_be_any_list_of_ids(users):
    log = read(LOG, users=users)
    assert log.users.ids.tolist() == [5, 10, 20, 30]
    assert log.user.tolist() == [1, 1, 2, 3]


def test_unknown_ids_are_an_error_or_dropped_and_counted():
    train = read(LOG.filter(pl.col("user") != 10))
    with pytest.raises(UnknownIdError, match=facts("'user'", "2 of 4 rows", "20 … 30", 10, "rows 2, 4")):
        read(LOG, like=train)
    log = read(LOG, like=train, unknown="drop", **COLUMNS)
    assert (len(log), log.dropped, log.input_rows) == (2, 2, 4)
    assert log.row.tolist() == [2, 0]
    assert log.align(LOG["propensity"]).tolist() == log.propensity.tolist() == [0.3, 0.4]


# -- duplicates ----------------------------------------------------------------------------------------------

TWICE = pl.DataFrame({
    "user": ["b", "a", "b", "b"],
    "item": [1, 1, 1, 2],
    "rating": [5, 1, 2, 3],
    "time": [0, 1, 2, 3],
})  # fmt: skip


def test_duplicates_are_counted_and_named():
    with pytest.raises(
        DuplicateError, match=facts("('b', 1)", "rows 1, 3", "duplicates='first'", "'last'", "'mean'", "'count'")
    ):
        read(TWICE)


@pytest.mark.parametrize(
    ("duplicates", "rating", "row"),
    [("first", [1, 5, 3], [1, 0, 3]), ("last", [1, 2, 3], [1, 2, 3]), ("mean", [1, 3.5, 3], [1, 2, 3])],
)
def test_duplicates_become_one(duplicates, rating, row):
    log = read(TWICE, duplicates=duplicates, time="time")
    assert log.rating.tolist() == rating
    assert log.row.tolist() == log.time.tolist() == row
    assert (log.input_rows, log.dropped) == (4, 0)


# -- errors --------------------------------------------------------------------------------------------------


def test_no_rows(tmp_path):
    with pytest.raises(EmptyError, match=facts("source", "no rows")):
        read(LOG.head(0))
    path = tmp_path / "log.csv"
    path.write_text("user,item,rating\n")
    with pytest.raises(EmptyError, match=facts("log.csv", "no rows")):
        read(path)


def test_missing_column():
    with pytest.raises(ColumnError, match=facts("'ratng'", "rating=", "'rating'")):
        read(LOG, rating="ratng")


@pytest.mark.parametrize("source", [[1, 2], {"user": [1]}, None, np.ones((2, 3)), 7])
def test_a_source_that_is_no_table(source):
    with pytest.raises(InputError, match=facts("source", type(source).__name__, "dataframe")):
        read(source)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"unknown": "drp"}, ("unknown='drp'", "'drop'")),
        ({"duplicates": "latest"}, ("duplicates='latest'", "'last'")),
        ({"separator": ","}, ("separator=", "header=", "dataframe")),
        ({"skip": 1}, ("skip=", "dataframe")),
        ({"skip": -1}, ("skip=-1", "from 0")),
        ({"comment": " "}, ("comment=' '", "'#'")),
        ({"positive": "many"}, ("positive='many'", "as 30")),
        ({"positive": 3, "uniform": True}, ("positive=3", "uniform=")),
    ],
)
def test_options_that_do_not_exist(options, told):
    with pytest.raises(InputError, match=facts(*told)):
        read(LOG, **options)


# -- positives -----------------------------------------------------------------------------------------------


def test_a_log_without_ratings_is_one_of_positives():
    log = read(LOG.drop("rating", "propensity"))
    assert log.positives
    assert log.rating.tolist() == [1, 1, 1, 1]
    assert "positives" in repr(log)
    assert not read(LOG).positives


@pytest.mark.parametrize(
    ("ratings", "positives"),
    [
        ([1, 1, 1, 1], True), ([3, 3, 3, 3], True), ([0, 0, 0, 0], False), ([4, 5, 4.5, 4], True),
        ([4, 5, 3, 4], False), ([4, 6, 4, 4], False), ([0, 1, 1, 1], False),
    ],
)  # fmt: skip
def test_ratings_that_say_of_nothing_that_it_was_not_liked_are_positives(ratings, positives):
    log = read(LOG.with_columns(rating=pl.Series(ratings, dtype=pl.Float64)))
    assert log.positives == positives
    assert sorted(log.rating.tolist()) == sorted(ratings)
    assert not read(LOG.with_columns(rating=pl.Series(ratings, dtype=pl.Float64)), uniform=True).positives


EVENTS = pl.DataFrame({
    "user": ["b", "a", "b", "b", "a"],
    "item": [1, 1, 1, 2, 1],
    "minutes": [50, 30, 29, 31, 90],
    "timestamp": [5, 9, 2, 3, 8],
})  # fmt: skip


def test_rows_below_positive_are_left_out_and_counted():
    log = read(EVENTS, rating="minutes", positive=31, duplicates="first")
    assert log.positives
    assert log.rating.tolist() == [1, 1, 1]
    assert log.row.tolist() == [4, 0, 3]
    assert log.input_rows == 5
    assert any("2 of 5 rows" in note and "31" in note for note in log.notes)
    few = read(EVENTS, rating="minutes", positive=60)
    assert (len(few), few.n_users, few.n_items) == (1, 2, 2)  # what is left out is still of the population
    with pytest.raises(EmptyError, match=facts("none of its 5 rows", "5 are not positives", "positive=")):
        read(EVENTS, rating="minutes", positive=100)
    with pytest.raises(ColumnError, match=facts("positive=30", "rating=")):
        read(EVENTS.rename({"minutes": "length"}), positive=30)


@pytest.mark.parametrize(
    ("duplicates", "rows", "weight"),
    [("first", [4, 2, 3], None), ("last", [1, 0, 3], None), ("count", [1, 0, 3], [2, 2, 1])],
)
def test_the_first_and_the_last_are_by_time_where_there_is_one(duplicates, rows, weight):
    log = read(EVENTS, rating=False, time="timestamp", duplicates=duplicates)
    assert log.row.tolist() == rows
    assert log.time.tolist() == EVENTS["timestamp"].gather(rows).to_list()
    assert weight == (None if log.weight is None else log.weight.tolist())
    assert any("2 rows repeated a pair" in note and duplicates in note for note in log.notes)
    by_order = read(EVENTS, rating=False, duplicates=duplicates)
    assert by_order.row.tolist() == ([1, 0, 3] if duplicates == "first" else [4, 2, 3])


@pytest.mark.parametrize("when", ["1600000000", "1600000000000", "1600000000.5", "2020-09-13", "2020-09-13T12:26:40Z"])
def test_times_in_a_file_without_a_header_are_not_taken_for_ratings(tmp_path, when):
    path = tmp_path / "clicks.csv"
    path.write_text(f"3,7,{when}\n1,9,{when}\n")
    log = read(path)
    assert log.positives
    assert any("'time'" in note for note in log.notes)
    assert read(path, time="time").time is not None
    path.write_text(f"3,7,{when},5\n1,9,{when},4\n")
    with pytest.raises(ColumnError, match=facts("'rating'", "looks like times", "rating=False")):
        read(path)
    assert read(path, rating=3, time=2).rating.tolist() == [4, 5]
    assert read(path, rating=False, time=2).positives


# -- lines that are no rows ----------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("separator", [",", "::", "\t"])
def test_skipped_and_comment_lines_are_no_rows(tmp_path, separator, end):
    rows = ["user,item,rating", "# the first", "1,2,5", "#1,3,4", "2,2,3", "# the end"]
    lines = ["exported by x", 'with "one quote', *(row.replace(",", separator) for row in rows)]
    for name, pack in (("log.csv", lambda data: data), ("log.csv.gz", gzip.compress)):
        path = tmp_path / name
        path.write_bytes(pack(end.join(lines).encode()))
        log = read(path, skip=2, comment="#")
        assert log.users.ids.tolist() == [1, 2]
        assert log.rating.tolist() == [5, 3]
        assert log.row.tolist() == [0, 1]


@given(invalid_logs())
def test_a_broken_row_is_refused_and_named(broken):
    columns, error, row = broken
    with pytest.raises(error, match=rf"\brows? (\d+, )*{row + 1}\b"):
        read(pl.DataFrame(columns, strict=False), **COLUMNS)
