from __future__ import annotations

import datetime as dt
import gzip
import uuid

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openloop.core.feedback import Feedback, Vocabulary
from openloop.data.reading import read
from openloop.data.splitting import split
from openloop.errors import (
    ColumnError,
    DuplicateError,
    EmptyError,
    FormatError,
    InputError,
    PropensityError,
    RatingError,
    UnknownIdError,
)
from openloop.learners import Popularity
from tests.facts import facts
from tests.strategies import invalid_logs, logs, small_ids

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


def test_rows_that_are_sorted_already():
    log = read(LOG.sort("user", "item"))
    assert log.row.tolist() == [0, 1, 2, 3]


def test_uniform_is_marked():
    assert read(LOG, uniform=True).uniform
    assert not read(LOG).uniform


def test_only_the_needed_columns_are_read():
    broken = pl.col("user").map_batches(lambda _: 1 / 0, return_dtype=pl.Int64)
    assert len(read(LOG.lazy().with_columns(other=broken))) == 4


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


@settings(max_examples=30)
@given(logs())
def test_csv_and_parquet_give_what_the_frame_gives(tmp_path_factory, columns):
    frame, folder = pl.DataFrame(columns), tmp_path_factory.mktemp("formats", numbered=True)
    frame.write_csv(folder / "log.csv", float_precision=None)
    frame.write_parquet(folder / "log.parquet")
    frame.write_ndjson(folder / "log.ndjson")
    expected = read(frame, **COLUMNS)
    assert same(expected, read(folder / "log.parquet", **COLUMNS))
    assert same(expected, read(folder / "log.ndjson", **COLUMNS))
    texts = [value for column in ("user", "item") for value in columns[column] if isinstance(value, str)]
    if all(not text.isascii() or text.isalpha() for text in texts):  # "7" is text in a frame only
        assert same(expected, read(folder / "log.csv", **COLUMNS, separator=",", header=True))


@given(invalid_logs())
def test_a_broken_row_is_refused_and_named(broken):
    columns, error, row = broken
    with pytest.raises(error, match=rf"\brows? (\d+, )*{row + 1}\b"):
        read(pl.DataFrame(columns, strict=False), **COLUMNS)


@given(logs(ids=small_ids))
def test_a_larger_population_changes_no_cell(columns):
    small, large = read(pl.DataFrame(columns)), read(pl.DataFrame(columns), users=10, items=range(-5, 15))
    assert (large.n_users, large.n_items) == (10, 20)
    np.testing.assert_array_equal(small.users.ids[small.user], large.users.ids[large.user])
    np.testing.assert_array_equal(small.items.ids[small.item], large.items.ids[large.item])
    np.testing.assert_array_equal(small.rating, large.rating)


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


def test_movielens_1m_half_is_divided_by_double_colons(data_dir):
    log = read(data_dir("ml-1m-half") / "ratings.dat", time="time")
    assert (len(log), log.n_users, log.n_items) == (487_650, 2_999, 3_615)
    assert set(np.unique(log.rating)) == {1, 2, 3, 4, 5}


def test_movielens_small_has_a_header(data_dir):
    log = read(data_dir("ml-latest-small") / "ratings.csv", time="timestamp")
    assert (len(log), log.n_users, log.n_items) == (100_004, 671, 9_066)
    assert log.rating.min() == 0.5


# -- ids -----------------------------------------------------------------------------------------------------


def test_uuids_of_all_sources_are_the_same_text(tmp_path):
    ids = [uuid.UUID(int=n * 10**30) for n in (3, 1, 2)]
    expected = sorted(map(str, ids))
    rest = {"item": [1, 2, 3], "rating": [1, 2, 3]}
    pandas = pd.DataFrame({"user": ids} | rest)
    relation = duckdb.connect().from_df(pandas.assign(user=[str(i) for i in ids]))
    relation = relation.project("user::UUID AS user, item, rating")
    relation.write_parquet(str(tmp_path / "log.parquet"))
    for source in (pandas, pl.DataFrame({"user": ids} | rest), relation, tmp_path / "log.parquet"):
        assert read(source).users.ids.tolist() == expected


def test_leading_zeros_of_a_file_stay_text_and_plain_integers_do_not(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("user,item,rating\n007,1,5\n7,2,4\n")
    log = read(path)
    assert log.users.ids.tolist() == ["007", "7"]
    assert log.items.ids.tolist() == [1, 2]


def test_text_of_a_frame_is_not_turned_into_integers():
    assert read(LOG.with_columns(pl.col("user").cast(pl.String))).users.ids.tolist() == ["10", "20", "30"]


def test_missing_ids_are_named_by_row():
    frame = pd.DataFrame({"user": [1, None, 3], "item": ["a", "b", None], "rating": [1, 2, 3]})
    with pytest.raises(InputError, match=facts("'user'", "1 of 3 ids", "missing", "row 2")):
        read(frame)
    with pytest.raises(InputError, match=facts("'item'", "1 of 3 ids", "missing", "row 3")):
        read(frame.assign(user=[1.0, 2.0, 3.0]))
    assert read(frame.assign(user=[1.0, 2.0, 3.0], item=1)).users.ids.tolist() == [1, 2, 3]


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


def test_a_number_stands_for_the_ids_from_zero():
    assert read(LOG, items=12).n_items == 12
    with pytest.raises(UnknownIdError, match=facts("'user'", "1 of 4 rows", "0 … 29", 30, "row 1", "unknown='drop'")):
        read(LOG, users=30)


def test_like_takes_the_vocabularies():
    train = read(LOG, users=100, items=[9, 8, 7])
    other = read(LOG.head(1), like=train)
    assert other.users is train.users
    assert other.items is train.items
    assert (other.user.tolist(), other.item.tolist()) == ([30], [0])


def test_unknown_ids_are_an_error_or_dropped_and_counted():
    train = read(LOG.filter(pl.col("user") != 10))
    with pytest.raises(UnknownIdError, match=facts("'user'", "2 of 4 rows", "20 … 30", 10, "rows 2, 4")):
        read(LOG, like=train)
    log = read(LOG, like=train, unknown="drop", **COLUMNS)
    assert (len(log), log.dropped, log.input_rows) == (2, 2, 4)
    assert log.row.tolist() == [2, 0]
    assert log.align(LOG["propensity"]).tolist() == log.propensity.tolist() == [0.3, 0.4]


def test_dropping_unknown_users_keeps_the_items_they_showed():
    assert read(LOG, users=[20, 30], unknown="drop").items.ids.tolist() == [7, 8, 9]


def test_nothing_left_after_dropping():
    with pytest.raises(EmptyError, match=facts("source", "4 rows", "unknown ids")):
        read(LOG, users=[1], unknown="drop")


def test_integers_and_text_do_not_match_across_frames():
    train = read(LOG)
    with pytest.raises(UnknownIdError, match=facts("'user'", "4 of 4 rows", "'30', '10', '20'", "integers", "text")):
        read(LOG.with_columns(pl.col("user").cast(pl.String)), like=train)


def test_a_file_has_no_types_so_it_takes_those_of_the_vocabulary(tmp_path):
    path = tmp_path / "log.csv"
    LOG.write_csv(path)
    assert read(path, users=["10", "20", "30", "A"]).users.ids.tolist() == ["10", "20", "30", "A"]
    path.write_text("user,item,rating\n10,7,5\n010,7,5\nx,7,5\n")
    with pytest.raises(UnknownIdError, match=facts("log.csv", "'user'", "2 of 3 rows", "'010', 'x'", "rows 2, 3")):
        read(path, users=[10, 20])
    assert read(path, users=[10, 20], unknown="drop").dropped == 2


def test_like_and_users_exclude_each_other():
    with pytest.raises(InputError, match=facts("either", "like=", "users=", "items=")):
        read(LOG, like=read(LOG), users=3)


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


@pytest.mark.parametrize("duplicates", ["first", "last", "mean"])
def test_without_duplicates_the_rule_does_not_matter(duplicates):
    assert same(read(LOG, duplicates=duplicates, **COLUMNS), read(LOG, **COLUMNS))


# -- values --------------------------------------------------------------------------------------------------


def test_clicks_are_zero_and_one(tmp_path):
    clicks = LOG.select("user", "item", clicked=pl.Series([True, False, True, True]))
    clicks.write_csv(tmp_path / "log.csv")
    clicks.to_pandas().to_csv(tmp_path / "capital.csv", index=False)
    for source in (clicks, tmp_path / "log.csv", tmp_path / "capital.csv"):
        assert read(source).rating.tolist() == [1, 0, 1, 1]


def test_datetimes_are_microseconds_in_every_source(tmp_path):
    moments = [dt.datetime(2020, 1, day, 12, tzinfo=dt.UTC) for day in (4, 1, 3, 2)]
    frame = LOG.with_columns(time=pl.Series(moments, dtype=pl.Datetime("ms", "UTC")))
    frame.write_csv(tmp_path / "log.csv")
    expected = [int(moments[row].timestamp() * 1e6) for row in (3, 1, 2, 0)]
    for source in (frame, frame.to_pandas(), frame.to_arrow(), tmp_path / "log.csv"):
        assert read(source, time="time").time.tolist() == expected


# -- errors --------------------------------------------------------------------------------------------------


def test_text_ratings_are_named_with_rows_and_values(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("user,item,rating\n1,1,5\n1,2,good\n1,3,\n2,1,bad\n")
    with pytest.raises(
        RatingError, match=facts("log.csv", "'rating'", "2 of 4 ratings", "numbers", "'good', 'bad'", "rows 2, 4")
    ):
        read(path)


def test_propensities_outside_their_range():
    frame = LOG.with_columns(propensity=pl.Series([0.5, 0.0, 1.0, 1.2]))
    with pytest.raises(PropensityError, match=facts("'propensity'", "2 of 4", "(0, 1]", "0.0, 1.2", "rows 2, 4")):
        read(frame, propensity="propensity")


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


def test_names_in_a_file_without_a_header(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("1,2,3,4\n")
    assert read(path, user="user", time="time").time.tolist() == [4]
    with pytest.raises(ColumnError, match=facts("log.csv", "'uid'", "user=", "no header", "header=")):
        read(path, user="uid")


def test_columns_that_stand_twice():
    frame = pd.DataFrame([[1, 2, 3, 4]], columns=["user", "item", "rating", "rating"])
    with pytest.raises(ColumnError, match=facts("distinct", "'rating'", 2)):
        read(frame)


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
        ({"header": True}, ("separator=", "header=", "dataframe")),
        ({"skip": 1}, ("skip=", "dataframe")),
        ({"comment": "#"}, ("comment=", "dataframe")),
        ({"skip": -1}, ("skip=-1", "from 0")),
        ({"skip": True}, ("skip=True", "whole")),
        ({"comment": " "}, ("comment=' '", "'#'")),
        ({"positive": "many"}, ("positive='many'", "as 30")),
        ({"positive": float("nan")}, ("positive=nan", "as 30")),
        ({"positive": 3, "uniform": True}, ("positive=3", "uniform=")),
        ({"positive": 3, "rating": False}, ("positive=3", "rating=False")),
    ],
)
def test_options_that_do_not_exist(options, told):
    with pytest.raises(InputError, match=facts(*told)):
        read(LOG, **options)


def test_like_takes_the_ids_of_a_fitted_model():
    log = read(pl.DataFrame({"user": ["a", "b"], "item": [1, 2], "rating": [3, 4]}))
    model = Popularity().fit(log)
    other = read(pl.DataFrame({"user": ["b", "c"], "item": [1, 1], "rating": [1, 1]}), like=model, unknown="drop")
    assert other.users == log.users
    assert len(other) == 1
    with pytest.raises(InputError, match=facts("like=", "Feedback", "Popularity", "users=", "items=")):
        read(pl.DataFrame({"user": ["b"], "item": [1], "rating": [1]}), like=Popularity())


# -- positives -----------------------------------------------------------------------------------------------


def test_a_log_without_ratings_is_one_of_positives():
    log = read(LOG.drop("rating", "propensity"))
    assert log.positives
    assert log.rating.tolist() == [1, 1, 1, 1]
    assert "positives" in repr(log)
    assert not read(LOG).positives


def test_a_file_without_a_header_says_that_its_third_column_is_none(tmp_path):
    path = tmp_path / "clicks.csv"
    path.write_text("3,7,1600000000\n1,9,1600500000\n")
    assert read(path, rating=False).rating.tolist() == [1, 1]
    log = read(path, rating=False, time=2)
    assert log.positives
    assert log.time.tolist() == [1600500000, 1600000000]
    path.write_text("3,7\n1,9\n")
    assert read(path).positives
    assert read(path).users.ids.tolist() == [1, 3]


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


def test_parts_of_positives_are_positives():
    log = read(LOG.drop("rating"), time="time")
    assert all(part.positives for part in (*split(log, 0.5, rng=0), *split(log, 0.5, by="time"), log.take([0, 1])))


EVENTS = pl.DataFrame({
    "user": ["b", "a", "b", "b", "a"],
    "item": [1, 1, 1, 2, 1],
    "minutes": [50, 30, 29, 31, 90],
    "timestamp": [5, 9, 2, 3, 8],
})  # fmt: skip


def test_a_note_says_that_rows_are_positives_unless_that_was_asked_for():
    assert any("positive" in note and "rating=" in note for note in read(LOG.drop("rating")).notes)
    assert read(LOG.drop("rating"), rating=False).notes == ()
    assert read(LOG).notes == ()


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


def test_counts_sum_the_weights_that_the_log_has():
    log = read(EVENTS, rating=False, weight="minutes", duplicates="count")
    assert log.weight.tolist() == [120, 79, 31]
    assert read(LOG, duplicates="count").weight.tolist() == [1, 1, 1, 1]


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


def test_times_under_the_name_of_ratings_are_refused_unless_named():
    frame = LOG.with_columns(value=pl.Series([1_600_000_000, 1_600_001_000, 1_600_002_000, 1_600_003_000])).drop(
        "rating"
    )
    with pytest.raises(ColumnError, match=facts("'value'", "looks like times", 1600000000, "rating=")):
        read(frame)
    assert read(frame, rating="value").rating.min() == np.float32(1_600_000_000)
    assert read(frame, rating=False, time="value").positives
    dated = frame.with_columns(pl.from_epoch("value"))
    with pytest.raises(ColumnError, match=facts("'value'", "looks like times")):
        read(dated)


def test_large_ratings_stay_ratings_where_they_are_called_so_or_not_all_are_large(tmp_path):
    path = tmp_path / "sales.csv"
    path.write_text("3,7,99\n1,9,100000000\n")
    assert read(path).rating.tolist() == [100000000, 99]
    assert read(LOG.with_columns(rating=1e9 + 100 * pl.col("rating"))).rating.min() > 1e9


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


def test_a_ragged_line_keeps_its_number_under_skipped_lines(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("a\nb\n1,2,3\n# c\n1,2\n")
    with pytest.raises(FormatError, match=facts("line 5", "2 fields")):
        read(path, skip=2, comment="#")
    with pytest.raises(FormatError, match=facts("blank lines only", "skip=")):
        read(path, skip=9)


def test_last_fm_has_two_lines_of_counts(data_dir):
    log = read(data_dir("lastfm-hetrec") / "user_artists.dat", skip=2, header=False, rating=2, positive=100)
    assert (log.n_users, log.n_items, log.input_rows) == (1_892, 17_632, 92_834)
    assert log.positives


def test_a_uniform_sample_has_ratings():
    with pytest.raises(ColumnError, match=facts("rating=")):
        read(LOG.drop("rating"), uniform=True)
