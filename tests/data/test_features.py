"""A table of users or items as numbers: by hand, by law, in all formats, and what is refused."""

from __future__ import annotations

import datetime as dt
import gzip
import re

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openloop.core.covariates import Covariates
from openloop.core.feedback import Vocabulary
from openloop.data.features import covariates
from openloop.errors import DuplicateError, InputError, UnknownIdError
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


# -- by hand -------------------------------------------------------------------------------------------------


def test_a_table_becomes_numbers_in_the_order_of_the_ids():
    found = covariates(TABLE, USERS)
    assert found.names == NAMES
    np.testing.assert_allclose(found.values, VALUES, rtol=1e-14, atol=1e-14)
    assert found.ids is USERS
    assert found.notes == ()


@pytest.mark.parametrize("values", [[0, 0, 1], [1.0, 0.0, 0.0], [True, False, False]])
def test_zeros_and_ones_stay_as_they_are(values):
    table = pl.DataFrame({"id": [10, 20, 30], "x": values})
    assert covariates(table, USERS).values[:, 0].tolist() == [float(v) for v in values]


def test_categories_are_text_and_only_levels_in_use_count():
    kinds = pl.Enum(["nurse", "cook", "pilot"])
    found = covariates(TABLE.select("user_id", pl.col("job").cast(kinds)), USERS)
    assert found.names == ("job=cook", "job=nurse")
    found = covariates(TABLE.select("user_id", pl.col("job").cast(pl.Categorical)).to_pandas(), USERS)
    assert found.names == ("job=cook", "job=nurse")


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


# -- ids -----------------------------------------------------------------------------------------------------


def test_missing_ids_are_counted_and_listed():
    with pytest.raises(UnknownIdError, match=facts("source", "'user_id'", "2 of 5 ids", "no row", "5, 40")):
        covariates(TABLE, Vocabulary.of([5, 10, 20, 30, 40]))


def test_an_id_that_stands_twice():
    with pytest.raises(DuplicateError, match=facts("'user_id'", "1 of 3 ids", 20, "one row")):
        covariates(pl.concat([TABLE, TABLE.tail(1)]), USERS)


def test_ids_that_are_none():
    with pytest.raises(InputError, match=facts("'user_id'", "1 of 3 ids", "missing", "row 1")):
        covariates(TABLE.with_columns(user_id=pl.Series([None, 10, 20])), USERS)
    with pytest.raises(InputError, match=facts("'user_id'", "1 of 3 ids", "whole numbers", 0.5, "row 1")):
        covariates(TABLE.with_columns(user_id=pl.Series([0.5, 10, 20])), USERS)


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


# -- missing values ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hole", [None, float("nan"), float("inf")])
def test_missing_numbers_are_named(hole):
    table = pl.DataFrame({"id": [30, 20, 10], "age": [hole, 5.0, hole]}, strict=False)
    with pytest.raises(InputError, match=facts("source", "'age'", "2 of 3 values", "missing", "id 10", "columns=")):
        covariates(table, USERS)
