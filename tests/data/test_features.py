"""A table of users or items as numbers: by hand, by law, in all formats and engines, and what is refused."""

from __future__ import annotations

import datetime as dt
import gzip
import re
import uuid
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import openloop as ol
from openloop.core.covariates import Covariates
from openloop.core.feedback import Vocabulary
from openloop.data.features import covariates, id_column
from openloop.errors import ColumnError, DuplicateError, EmptyError, FormatError, InputError, UnknownIdError
from tests.facts import facts

USERS = Vocabulary.of([10, 20, 30])
TABLE = pl.DataFrame({
    "user_id": [30, 10, 20],
    "age": [50, 10, 30],
    "job": ["nurse", "cook", "nurse"],
    "member": [True, False, True],
    "north": [0, 1, 1],
})  # fmt: skip
NAMES = ("age", "job=cook", "job=nurse", "member", "north")
Z = np.sqrt(1.5)  # the standard score of 50 among 10, 30, 50
VALUES = [[-Z, 1, 0, 0, 1], [0, 0, 1, 1, 1], [Z, 0, 1, 1, 0]]


def same(a: Covariates, b: Covariates) -> bool:
    np.testing.assert_array_equal(a.values, b.values)
    return a.names == b.names and a.ids == b.ids


def saved(tmp_path, text, name="users.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


# -- by hand -------------------------------------------------------------------------------------------------


def test_a_table_becomes_numbers_in_the_order_of_the_ids():
    found = covariates(TABLE, USERS)
    assert found.names == NAMES
    np.testing.assert_allclose(found.values, VALUES, rtol=1e-14, atol=1e-14)
    assert found.ids is USERS
    assert found.notes == ()


def test_it_is_a_public_name():
    assert ol.covariates is covariates
    assert ol.Covariates is Covariates


def test_columns_are_chosen_by_name_or_position_and_keep_the_order_asked():
    assert covariates(TABLE, USERS, columns=["north", "age"]).names == ("north", "age")
    assert covariates(TABLE, USERS, columns=[4, 1]).names == ("north", "age")
    assert covariates(TABLE, USERS, columns="age").names == ("age",)


def test_only_the_needed_columns_are_read():
    broken = pl.col("age").map_batches(lambda _: 1 / 0, return_dtype=pl.Int64)
    lazy = TABLE.lazy().with_columns(other=broken)
    assert covariates(lazy, USERS, columns=["age"]).names == ("age",)


@pytest.mark.parametrize("values", [[0, 0, 1], [1.0, 0.0, 0.0], [True, False, False]])
def test_zeros_and_ones_stay_as_they_are(values):
    table = pl.DataFrame({"id": [10, 20, 30], "x": values})
    assert covariates(table, USERS).values[:, 0].tolist() == [float(v) for v in values]


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt64, pl.Float32, pl.Decimal(10, 2)])
def test_all_kinds_of_numbers_are_numbers(dtype):
    table = TABLE.select("user_id", pl.col("age").cast(dtype))
    np.testing.assert_allclose(covariates(table, USERS).values[:, 0], [-Z, 0, Z], rtol=1e-14, atol=1e-14)


def test_categories_are_text_and_only_levels_in_use_count():
    kinds = pl.Enum(["nurse", "cook", "pilot"])
    found = covariates(TABLE.select("user_id", pl.col("job").cast(kinds)), USERS)
    assert found.names == ("job=cook", "job=nurse")
    found = covariates(TABLE.select("user_id", pl.col("job").cast(pl.Categorical)).to_pandas(), USERS)
    assert found.names == ("job=cook", "job=nurse")


def test_huge_and_tiny_numbers_are_standardised_too():
    table = pl.DataFrame({"id": [10, 20, 30], "a": [1e308, -1e308, 0], "b": [5e-324, 0, 1e-323]})
    found = covariates(table, USERS).values
    np.testing.assert_allclose(found[:, 0], [Z, -Z, 0], atol=1e-14)
    np.testing.assert_allclose(found[:, 1], [0, -Z, Z], atol=1e-14)


# -- laws ----------------------------------------------------------------------------------------------------

tables = st.lists(st.tuples(st.floats(-1e9, 1e9), st.sampled_from("abc"), st.booleans()), min_size=2, max_size=12).map(
    lambda rows: pl.DataFrame(rows, schema=["x", "kind", "flag"], orient="row").with_row_index("id")
)


def usable(table: pl.DataFrame) -> bool:
    return any(table[name].n_unique() > 1 for name in ("x", "kind", "flag"))


@given(tables.filter(usable), st.randoms(use_true_random=False))
def test_neither_the_order_of_rows_nor_other_ids_matter(table, random):
    ids = Vocabulary.range(len(table))
    strange = table.with_columns(pl.col("id") + 1000, kind=pl.lit("other"), x=pl.lit(None, pl.Float64))
    order = list(range(2 * len(table)))
    random.shuffle(order)
    mixed = pl.concat([table, strange])[order]
    a, b = covariates(table, ids), covariates(mixed, ids)
    assert same(a, b)
    assert any(re.search(facts("source", f"{len(table)} rows", "other ids"), note) for note in b.notes)


@given(tables.filter(usable))
def test_numbers_have_mean_0_and_deviation_1_and_levels_sum_to_1(table):
    found = covariates(table, Vocabulary.range(len(table)))
    assert np.isfinite(found.values).all()
    for name, column in zip(found.names, found.values.T, strict=True):
        if name == "x" and not set(column) <= {0.0, 1.0}:
            np.testing.assert_allclose([column.mean(), column.std()], [0, 1], atol=1e-6)
        else:
            assert set(column) == {0.0, 1.0}
    levels = [at for at, name in enumerate(found.names) if name.startswith("kind=")]
    if levels:
        assert (found.values[:, levels].sum(axis=1) == 1).all()


@settings(max_examples=30)
@given(tables.filter(usable))
def test_a_file_gives_what_the_frame_gives(tmp_path_factory, table):
    folder, ids = tmp_path_factory.mktemp("features", numbered=True), Vocabulary.range(len(table))
    table.write_csv(folder / "t.csv")
    table.write_parquet(folder / "t.parquet")
    expected = covariates(table, ids)
    assert same(covariates(folder / "t.csv", ids), expected)
    assert same(covariates(folder / "t.parquet", ids), expected)


# -- all formats, all engines --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "tsv", "csv.gz", "dat", "parquet", "jsonl"])
def test_all_formats_give_the_same(tmp_path, kind):
    path = tmp_path / f"users.{kind}"
    match kind:
        case "csv":
            TABLE.write_csv(path)
        case "tsv":
            TABLE.write_csv(path, separator="\t")
        case "csv.gz":
            path.write_bytes(gzip.compress(TABLE.write_csv().encode()))
        case "dat":
            path.write_text("\n".join("::".join(map(str, row)) for row in [TABLE.columns, *TABLE.rows()]) + "\n")
        case "parquet":
            TABLE.write_parquet(path)
        case "jsonl":
            TABLE.write_ndjson(path)
    assert same(covariates(path, USERS), covariates(TABLE, USERS))
    assert same(covariates(str(path), USERS, id="user_id"), covariates(TABLE, USERS))


@pytest.mark.parametrize("engine", ["lazy", "pandas", "pyarrow", "duckdb"])
def test_all_engines_give_the_same(engine):
    arrow = TABLE.to_arrow()
    frame = {
        "lazy": TABLE.lazy(),
        "pandas": pd.DataFrame(TABLE.to_dict(as_series=False)),
        "pyarrow": arrow,
        "duckdb": duckdb.connect().from_arrow(arrow),
    }[engine]
    assert same(covariates(frame, USERS), covariates(TABLE, USERS))


# -- delimited text ------------------------------------------------------------------------------------------


def test_text_that_parses_entirely_as_numbers_is_numeric(tmp_path):
    path = saved(tmp_path, "id,age,zip,old,flag\n10,10,a1,True,1\n20,30,7,False,0\n30,50,8,False,1\n")
    found = covariates(path, USERS)
    assert found.names == ("age", "zip=7", "zip=8", "zip=a1", "old", "flag")
    assert found.values[:, 4].tolist() == [1, 0, 0]
    np.testing.assert_allclose(found.values[:, 0], [-Z, 0, Z], atol=1e-14)


def test_numbers_written_as_text_in_a_frame_stay_text():
    assert covariates(TABLE.select("user_id", pl.col("age").cast(pl.String)), USERS).names == (
        "age=10", "age=30", "age=50",
    )  # fmt: skip


def test_blanks_around_text_do_not_count(tmp_path):
    path = saved(tmp_path, "id,job\n10, cook\n20,nurse \n30,nurse\n")
    assert covariates(path, USERS).names == ("job=cook", "job=nurse")


def test_without_a_header_the_first_column_holds_the_ids(tmp_path):
    path = saved(tmp_path, "30|50|nurse|1\n10|10|cook|0\n20|30|nurse|1\n", "u.data")
    found = covariates(path, USERS)
    assert found.names == ("column_2", "column_3=cook", "column_3=nurse", "column_4")
    np.testing.assert_allclose(found.values, np.array(VALUES)[:, :4], atol=1e-14)
    assert covariates(path, USERS, columns=[1]).names == ("column_2",)
    assert covariates(path, USERS, id=0, columns=["column_3"]).names == ("column_3=cook", "column_3=nurse")


def test_a_header_is_known_by_a_name_that_was_asked_for_or_by_having_no_numbers(tmp_path):
    numbered = saved(tmp_path, "user,1,2\n10,1,5\n20,1,6\n30,1,8\n")
    assert covariates(numbered, USERS).names == ("2",)
    asked = saved(tmp_path, "who,1,2\n10,1,5\n20,1,6\n30,1,8\n")
    assert covariates(asked, USERS, id="who").names == ("2",)
    words = saved(tmp_path, "who,kind\nann,x\nbob,y\n")
    assert covariates(words, Vocabulary.of(["ann", "bob"]), id=0).names == ("kind=x", "kind=y")
    names = Vocabulary.of(["ann", "bob", "who"])
    assert covariates(words, names, id=0, header=False).names == ("column_2=kind", "column_2=x", "column_2=y")


def test_columns_without_a_name_are_left_out(tmp_path):
    path = tmp_path / "pandas.csv"
    TABLE.to_pandas().to_csv(path)  # the index has no name
    found = covariates(path, USERS)
    assert found.names == NAMES
    (note,) = found.notes
    assert re.search(facts(path, 1, "name"), note)


def test_movielens_users(data_dir):
    log = ol.read(data_dir("ml-100k") / "u.data")
    found = covariates(data_dir("ml-100k") / "u.user", log.users, separator="|")
    assert found.names[:3] == ("column_2", "column_3=F", "column_3=M")
    assert len([name for name in found.names if name.startswith("column_4=")]) == 21  # u.occupation has 21 lines
    assert len(found.names) == 24
    assert any(re.search(facts("'column_5'", "50 levels"), note) for note in found.notes)  # zip codes
    assert found.values[0, 2] == 1  # the first user: 24, M, technician


# -- ids -----------------------------------------------------------------------------------------------------


def test_leading_zeros_of_a_file_are_kept(tmp_path):
    path = saved(tmp_path, "id,x\n007,1\n7,2\n")
    assert covariates(path, Vocabulary.of(["007", "7"]), columns="x").values[:, 0].tolist() == [-1, 1]
    with pytest.raises(UnknownIdError, match=facts("users.csv", "'id'", "1 of 2 ids", "no row", 8)):
        covariates(path, Vocabulary.of([7, 8]))


def test_uuids_are_their_text():
    names = [uuid.UUID(int=n * 10**30) for n in (2, 1)]
    found = covariates(pd.DataFrame({"id": names, "x": [5, 3]}), Vocabulary.of(sorted(map(str, names))))
    assert found.values[:, 0].tolist() == [-1, 1]


@pytest.mark.parametrize("name", ["id", "ID", "User ID", "userId", "uid", "movie_id", "item", "isbn"])
def test_ids_are_found_by_an_obvious_name(name):
    assert covariates(TABLE.rename({"user_id": name}).drop("member"), USERS).names == (*NAMES[:3], "north")


def test_a_name_that_ends_in_id_goes_before_other_obvious_ones():
    assert "member" in covariates(TABLE, USERS).names


def test_the_column_of_ids_can_be_asked_for_alone(tmp_path):
    (tmp_path / "headed.csv").write_text("age,movie_id,artist\n1,7,x\n")
    (tmp_path / "bare.csv").write_text("7,1\n8,2\n")
    assert id_column(tmp_path / "headed.csv") == "movie_id"
    assert id_column(tmp_path / "bare.csv") == "column_1"


def test_missing_ids_are_counted_and_listed():
    with pytest.raises(UnknownIdError, match=facts("source", "'user_id'", "2 of 5 ids", "no row", "5, 40")):
        covariates(TABLE, Vocabulary.of([5, 10, 20, 30, 40]))


def test_integers_and_text_do_not_match_across_frames():
    with pytest.raises(UnknownIdError, match=facts("'user_id'", "3 of 3 ids", "no row", "integers", "text")):
        covariates(TABLE.with_columns(pl.col("user_id").cast(pl.String)), USERS)


def test_an_id_that_stands_twice():
    with pytest.raises(DuplicateError, match=facts("'user_id'", "1 of 3 ids", 20, "one row")):
        covariates(pl.concat([TABLE, TABLE.tail(1)]), USERS)


def test_ids_that_are_none():
    with pytest.raises(InputError, match=facts("'user_id'", "1 of 3 ids", "missing", "row 1")):
        covariates(TABLE.with_columns(user_id=pl.Series([None, 10, 20])), USERS)
    with pytest.raises(InputError, match=facts("'user_id'", "1 of 3 ids", "whole numbers", 0.5, "row 1")):
        covariates(TABLE.with_columns(user_id=pl.Series([0.5, 10, 20])), USERS)


@pytest.mark.parametrize("ids", [[10, 20, 30], 3, None, "users"])
def test_ids_must_be_a_vocabulary(ids):
    with pytest.raises(InputError, match=facts("Vocabulary", type(ids).__name__, "log.users", "log.items")):
        covariates(TABLE, ids)


# -- what is left out ----------------------------------------------------------------------------------------


def test_what_carries_nothing_is_left_out_and_said():
    many = Vocabulary.range(60)
    table = pl.DataFrame({
        "id": range(60),
        "x": np.arange(60.0),
        "one": [1.5] * 60,
        "word": ["same"] * 60,
        "title": [f"title {n}" for n in range(60)],
        "gone": [None] * 60,
        "day": [dt.date(2020, 1, 1)] * 60,
        "tags": [["a"]] * 60,
    })  # fmt: skip
    found = covariates(table, many)
    assert found.names == ("x",)
    constant, *others = found.notes
    assert re.search(facts("source", "'one', 'word'", "same"), constant)
    reasons = {"title": "50 levels", "gone": "any value", "day": "Date", "tags": "List(String)"}
    for (name, reason), note in zip(reasons.items(), others, strict=True):
        assert re.search(facts("source", f"'{name}'", reason), note)
        with pytest.raises(InputError, match=facts("source", f"'{name}'", reason, "columns=")):
            covariates(table, many, columns=["x", name])
    (note,) = covariates(table, many, columns=["x", "one"]).notes
    assert re.search(facts("source", "'one'", "same"), note)


def test_fifty_levels_are_used_and_one_more_is_not():
    ids = Vocabulary.range(51)
    kinds = [f"k{n:02}" for n in range(51)]
    table = pl.DataFrame({"id": range(51), "x": range(51), "kind": [*kinds[:50], kinds[0]]})
    assert len(covariates(table, ids).names) == 51
    assert covariates(table.with_columns(kind=pl.Series(kinds)), ids).names == ("x",)


def test_titles_may_have_gaps_because_they_are_left_out():
    table = pl.DataFrame({"id": range(60), "x": range(60), "title": [None, *(f"t{n}" for n in range(59))]})
    assert covariates(table, Vocabulary.range(60)).names == ("x",)


def test_nothing_left():
    with pytest.raises(EmptyError, match=facts("source", "no column", "'a'", "same")):
        covariates(pl.DataFrame({"id": [10, 20, 30], "a": [7, 7, 7]}), USERS)
    with pytest.raises(EmptyError, match=facts("source", "no column")):
        covariates(TABLE.select("user_id"), USERS)
    with pytest.raises(EmptyError, match=facts("source", "no column")):
        covariates(TABLE, USERS, columns=[])


# -- missing values ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hole", [None, float("nan"), float("inf")])
def test_missing_numbers_are_named(hole):
    table = pl.DataFrame({"id": [30, 20, 10], "age": [hole, 5.0, hole]}, strict=False)
    with pytest.raises(InputError, match=facts("source", "'age'", "2 of 3 values", "missing", "id 10", "columns=")):
        covariates(table, USERS)


@pytest.mark.parametrize("hole", [None, "", "  "])
def test_missing_text_is_named(hole):
    table = pl.DataFrame({"id": [10, 20, 30], "job": ["cook", "nurse", hole]})
    with pytest.raises(InputError, match=facts("source", "'job'", "1 of 3 values", "missing", "id 30", "columns=")):
        covariates(table, USERS)


@pytest.mark.parametrize("hole", ["", "NA", "NaN", "null", '""', "inf"])
def test_missing_fields_of_a_file_are_named(tmp_path, hole):
    path = saved(tmp_path, f"id,age,job\n10,1,cook\n20,{hole},cook\n30,3,nurse\n")
    with pytest.raises(InputError, match=facts("users.csv", "'age'", "1 of 3 values", "missing", "id 20")):
        covariates(path, USERS)


def test_none_is_an_answer(tmp_path):
    path = saved(tmp_path, "id,job\n10,none\n20,cook\n30,None\n")
    assert covariates(path, USERS).names == ("job=None", "job=cook", "job=none")


def test_missing_booleans_are_named():
    with pytest.raises(InputError, match=facts("source", "'b'", "1 of 3 values", "missing", "id 20")):
        covariates(pl.DataFrame({"id": [10, 20, 30], "b": [True, None, False]}), USERS)


# -- other errors --------------------------------------------------------------------------------------------


def test_no_obvious_column_of_ids():
    with pytest.raises(ColumnError, match=facts("no column", "'who', 'age'", "id=")):
        covariates(TABLE.select(who="user_id", age="age"), USERS)
    with pytest.raises(ColumnError, match=facts("'user_id', 'item_id'", "id=")):
        covariates(TABLE.with_columns(item_id="user_id"), USERS)
    with pytest.raises(ColumnError, match=facts("'user', 'member'", "id=")):
        covariates(TABLE.rename({"user_id": "user"}), USERS)


def test_columns_that_do_not_exist():
    with pytest.raises(ColumnError, match=facts("'agee'", "columns=", "'age'")):
        covariates(TABLE, USERS, columns=["agee"])
    with pytest.raises(ColumnError, match=facts("'usr'", "id=")):
        covariates(TABLE, USERS, id="usr")
    with pytest.raises(ColumnError, match=facts("id=9", "5 columns")):
        covariates(TABLE, USERS, id=9)
    with pytest.raises(ColumnError, match=facts("id=1.5", "name", "integer")):
        covariates(TABLE, USERS, id=1.5)


@pytest.mark.parametrize("columns", [["age", "age"], ["age", "user_id"], ["age", 1]])
def test_each_column_once_and_not_the_ids(columns):
    with pytest.raises(ColumnError, match=facts("columns=", "once", "'user_id'", "'age'")):
        covariates(TABLE, USERS, columns=columns)


def test_names_that_stand_twice(tmp_path):
    path = saved(tmp_path, "id,x,x\n10,1,2\n20,2,1\n30,3,3\n")
    with pytest.raises(ColumnError, match=facts("users.csv", "2 columns", "'x'", "rename")):
        covariates(path, USERS)
    table = pl.DataFrame({"id": [10, 20, 30], "a": ["b", "c", "c"], "a=b": [1, 2, 3]})
    with pytest.raises(InputError, match=facts("distinct", "'a=b', 'a=c', 'a=b'", "rename")):
        covariates(table, USERS)


def test_no_rows(tmp_path):
    with pytest.raises(EmptyError, match=facts("source", "no rows", "3 ids")):
        covariates(TABLE.head(0), USERS)
    with pytest.raises(EmptyError, match=facts("users.csv", "no rows")):
        covariates(saved(tmp_path, "id,x\n"), USERS)


def test_a_source_that_is_no_table(tmp_path):
    with pytest.raises(InputError, match=facts("source", "ndarray", "dataframe")):
        covariates(np.ones((3, 2)), USERS)
    with pytest.raises(InputError, match=facts("none.csv", "no such")):
        covariates(tmp_path / "none.csv", USERS)
    with pytest.raises(FormatError, match=facts("users.xlsx", "'.xlsx'")):
        covariates(saved(tmp_path, "x", "users.xlsx"), USERS)
    with pytest.raises(InputError, match=facts("separator=", "header=", "dataframe")):
        covariates(TABLE, USERS, header=True)


def test_decimals_of_a_frame_keep_their_value():
    table = pd.DataFrame({"id": [10, 20, 30], "price": [Decimal("1.5"), Decimal("2.5"), Decimal("3.5")]})
    np.testing.assert_allclose(covariates(table, USERS).values[:, 0], [-Z, 0, Z], atol=1e-14)
