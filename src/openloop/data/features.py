"""`covariates`: a table of users or items, from a file or any dataframe, becomes Covariates."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from openloop.core.covariates import Covariates
from openloop.core.feedback import Array, Floats, Ints, Vocabulary
from openloop.data import values
from openloop.data.columns import Column, InputTable, named, names_a
from openloop.data.delimited import FOUND, TextForm
from openloop.data.encoding import find
from openloop.data.formats import open_file, open_source
from openloop.errors import (
    ColumnError,
    DuplicateError,
    EmptyError,
    InputError,
    UnknownIdError,
    listing,
    quoted,
)

MAX_LEVELS = 50  # a text column of more is a title or another id

CONSTANT = "the same for every id"
EMPTY = "without any value"
MANY = f"text of more than {MAX_LEVELS} levels, as titles and ids are"

# How programs write a missing field. "None" is not among them: it is also an answer.
MISSING = ("", "NA", "N/A", "NaN", "nan", "NULL", "null")


def covariates(
    source: Any,
    ids: Vocabulary,
    *,
    id: Column = None,  # noqa: A002, the word that tables use
    columns: Sequence[str | int] | str | int | None = None,
    separator: str | None = None,
    header: bool | None = None,
) -> Covariates:
    """Covariates of users or items from a table with one row per id.

    Numbers are standardised to mean 0 and standard deviation 1 over `ids`. Booleans become 0 and 1, and a column of 0
    and 1 stays as it is. Text becomes one column of 0 and 1 per level, named "column=level". In delimited text a column
    is numeric if each of its fields is a number; empty fields, NA, NaN and NULL are missing there.

    Columns that carry no information are left out and listed in `.notes`: those that are constant over `ids`, have no
    value or no name, are neither numbers nor text, or hold text of more than 50 levels. Where `columns` asks for them,
    all but constant columns are errors. Rows of other ids are ignored and counted in `.notes`.

    Args:
        source: A path, or a dataframe of any engine.
        ids: The ids to describe, `log.users` or `log.items`. They are matched as `ol.read` does: "007" is not 7.
        id: The column of ids, a name or a position from 0. By default an obvious name (id, userId, movie_id …), or the
            first column of a file without a header.
        columns: The columns to use; by default all others.
        separator: What separates the fields of delimited text; by default its first lines tell.
        header: Whether delimited text has a header; by default its first lines tell.

    Returns:
        One row of numbers for each id, in the order of `ids`.

    Raises:
        InputError: A value is missing, or a column that `columns` asks for cannot be used.
        UnknownIdError: An id of `ids` has no row.

    Examples:
        >>> import polars as pl
        >>> films = pl.DataFrame({"id": [7, 9], "genre": ["horror", "romance"], "year": [1980, 2001]})
        >>> about = ol.covariates(films, ol.Vocabulary.of([7, 9]))
        >>> about
        Covariates(2 × 3: 'genre=horror', 'genre=romance', 'year')
        >>> about.values.tolist()
        [[1.0, 0.0, -1.0], [0.0, 1.0, 1.0]]
    """
    _refuse_other(ids)
    asked = [columns] if isinstance(columns, str | int) else columns
    table = _open(source, [id, *(asked or ())], TextForm(separator=separator, header=header))
    key = _id_column(table, id)
    chosen = _chosen(table, key, asked)
    frame = table.fetch([key, *chosen])
    rows, others = _rows(table, frame[key], ids)
    parts, left = _parts(table, frame[rows].select(chosen), ids, every=asked is None)
    notes = [
        *_left_out_notes(table, others),
        *(f"{table.name}: {listing(names)} left out: {why}" for why, names in left.items()),
    ]
    if not parts:
        raise EmptyError(f"{table.name}: no column is left to use ({'; '.join(notes)}); add one that varies.")
    return Covariates(
        values=np.column_stack([column for _, column in parts]),  # (ids, columns)
        names=tuple(name for name, _ in parts),
        ids=ids,
        notes=tuple(notes),
    )


def features_beside(role: str, path: str | os.PathLike[str], ids: Vocabulary, named: Column) -> Covariates:
    """Covariates of the users or items of a log, from the file that an option of a command names.

    Ids are in the column `named`, as in the log, if there is one, else in the obvious one.
    """
    shared = isinstance(named, str) and named in open_file(path, {"id": named}).columns
    if not shared:
        _refuse_other_side(role, path)
    return covariates(path, ids, id=named if shared else None)


def _refuse_other_side(role: str, path: str | os.PathLike[str]) -> None:
    """Where ids of users and items are both small integers, nothing else tells that the tables were mixed up."""
    found, other = id_column(path), "item" if role == "user" else "user"
    if names_a(other, found) and not names_a(role, found):
        raise ColumnError(
            f"--{role}-features {path}: its column of ids is called {quoted(found)}, as {other}s are; pass it as "
            f"--{other}-features, or rename the column."
        )


def _refuse_other(ids: Any) -> None:
    if not isinstance(ids, Vocabulary):
        raise InputError(
            f"covariates: ids must be a Vocabulary, got {type(ids).__name__}; pass log.users or log.items."
        )


def id_column(source: Any) -> str:
    """The column of ids that `covariates` finds where none is given."""
    return _id_column(_open(source, [], FOUND), None)


# -- opening -------------------------------------------------------------------------------------------------


def _open(source: Any, asked: Sequence[Column], form: TextForm) -> InputTable:
    table = open_source(source, {}, form)
    if not table.text:
        return table
    headed = open_file(source, {}, replace(form, header=True))  # its columns are the fields of the first line
    if _is_header(headed.columns, asked) if form.header is None else form.header:
        return headed
    return _nameless(open_file(source, {}, replace(form, header=False)))


def _is_header(first: Sequence[str], asked: Sequence[Column]) -> bool:
    """A line is a header if it has a name that was asked for, an obvious one, or no number."""
    if any(name in asked or _is_id_name(name) for name in first):
        return True
    return bool(pl.Series(first).cast(pl.Float64, strict=False).is_null().all())


def _nameless(table: InputTable) -> InputTable:
    """The same without the names that a log's columns have: column_1, column_2 …"""
    inner = {f"column_{at + 1}": name for at, name in enumerate(table.columns)}

    def batches(wanted: Sequence[str], size: int | None) -> Iterator[pl.DataFrame]:
        pieces = table.batches([inner[name] for name in wanted], size)
        return (piece.rename({inner[name]: name for name in wanted}) for piece in pieces)

    return replace(table, columns=list(inner), batches=batches)


def _id_column(table: InputTable, id: Column) -> str:  # noqa: A002, as above
    if id is not None:
        return named(table, "id", id)
    if table.text and table.columns[0] == "column_1":
        return "column_1"
    found = [name for name in table.columns if _is_id_name(name)]
    # A table of tracks may name their artist, and one of users say who is a member.
    found = [name for name in found if name.lower().endswith("id")] or found
    if len(found) == 1:
        return found[0]
    several = f"{listing(found)} may each be the column of ids"
    none = f"no column of ids found among {listing(list(table.columns), limit=20)}"
    raise ColumnError(f"{table.name}: {several if found else none}; pass id= with its name.{table.note}")


def _is_id_name(name: str) -> bool:
    return "".join(c for c in name.lower() if c.isalnum()) == "id" or names_a("user", name) or names_a("item", name)


def _chosen(table: InputTable, key: str, asked: Sequence[str | int] | None) -> list[str]:
    if asked is None:
        return [named(table, "columns", name) for name in table.columns if name not in {key, ""}]
    chosen = [named(table, "columns", name) for name in asked]
    if key in chosen or len(set(chosen)) < len(chosen):
        raise ColumnError(
            f"{table.name}: columns= must name each column once, and not the ids' {quoted(key)}, got "
            f"{listing(chosen)}; leave the others out."
        )
    return chosen


# -- ids -----------------------------------------------------------------------------------------------------


def _rows(table: InputTable, column: pl.Series, ids: Vocabulary) -> tuple[Array, int]:
    """The row of each id, in the vocabulary's order, and the number of rows of other ids."""
    if len(column) == 0:
        raise EmptyError(f"{table.name}: no rows; covariates need one row for each of {len(ids):,} ids.")
    what = f"{table.name}: id column {quoted(column.name)}"
    numbers = ids.ids.dtype.kind == "i"
    checked = values.ids(column, what, text=table.text, keep_text=not numbers)
    codes = find(checked, ids, text=table.text)  # (rows,), -1 for another id
    known = np.flatnonzero(codes >= 0)
    rows = np.full(len(ids), -1, np.int64)
    rows[codes[known]] = known
    alike = table.text or numbers == (checked.dtype == pl.Int64)
    cast = "one side holds integers and the other text, so cast one of them"
    _refuse_missing(rows, ids, what, "give each a row, or leave them out of the log" if alike else cast)
    _refuse_twice(codes, ids, what)
    return rows, len(codes) - len(known)


def _refuse_missing(rows: Array, ids: Vocabulary, what: str, remedy: str) -> None:
    missing = ids.ids[rows < 0].tolist()
    if missing:
        raise UnknownIdError(f"{what}: {len(missing):,} of {len(ids):,} ids have no row: {listing(missing)}; {remedy}.")


def _refuse_twice(codes: Ints, ids: Vocabulary, what: str) -> None:
    twice = ids.ids[np.bincount(codes[codes >= 0], minlength=len(ids)) > 1].tolist()
    if twice:
        raise DuplicateError(
            f"{what}: {len(twice):,} of {len(ids):,} ids occur more than once: {listing(twice)}; keep one row of each."
        )


def _left_out_notes(table: InputTable, others: int) -> list[str]:
    notes = [f"{table.name}: {others:,} rows of other ids are not used"] if others else []
    unnamed = list(table.columns).count("")
    return notes + [f"{table.name}: {unnamed} columns without a name left out"] * bool(unnamed)


# -- values --------------------------------------------------------------------------------------------------


def _parts(
    table: InputTable, frame: pl.DataFrame, ids: Vocabulary, *, every: bool
) -> tuple[list[tuple[str, Floats]], Mapping[str, list[str]]]:
    """Columns of numbers with their names, and the columns that have none by reason."""
    parts: list[tuple[str, Floats]] = []
    left: dict[str, list[str]] = {}
    for column in frame.iter_columns():
        what = f"{table.name}: column {quoted(column.name)}"
        found = _encoded(_typed(column, text=table.text), what, ids)
        if not isinstance(found, str):
            parts += found
        elif every or found == CONSTANT:
            left.setdefault(found, []).append(column.name)
        else:
            raise InputError(f"{what} cannot be used, being {found}; leave it out of columns=, or prepare it first.")
    return parts, left


def _typed(column: pl.Series, *, text: bool) -> pl.Series:
    """Float64 or String, null where a value is missing; what is neither stays as it is."""
    if isinstance(column.dtype, pl.Categorical | pl.Enum | pl.String):
        column = column.cast(pl.String).str.strip_chars()
        column = column.set(column.is_in(MISSING if text else [""]), None)
        return _numbers(column) if text else column
    if column.dtype.is_numeric() or isinstance(column.dtype, pl.Boolean | pl.Null):
        return column.cast(pl.Float64).fill_nan(None)
    return column


def _numbers(fields: pl.Series) -> pl.Series:
    """The numbers, or the truths as 0 and 1, if all fields are such; else the fields."""
    truths = {"false": 0.0, "true": 1.0}
    words = fields.str.to_lowercase().replace_strict(truths, default=None, return_dtype=pl.Float64)
    for read in (fields.cast(pl.Float64, strict=False), words):
        if read.null_count() == fields.null_count():
            return read
    return fields


def _encoded(column: pl.Series, what: str, ids: Vocabulary) -> list[tuple[str, Floats]] | str:
    """Columns of finite numbers with their names, or the reason why there are none."""
    if column.null_count() == len(column):
        return EMPTY
    if column.dtype == pl.Float64:
        _refuse_gaps(~column.is_finite().fill_null(value=False), what, ids)
        return CONSTANT if column.n_unique() == 1 else [(column.name, _scaled(column.to_numpy()))]
    if column.dtype != pl.String:
        return f"{quoted(column.dtype)}, neither numbers nor text"
    levels = column.drop_nulls().unique().sort().to_list()
    if len(levels) > MAX_LEVELS:
        return MANY
    _refuse_gaps(column.is_null(), what, ids)
    if len(levels) == 1:
        return CONSTANT
    return [(f"{column.name}={level}", (column == level).cast(pl.Float64).to_numpy()) for level in levels]


def _refuse_gaps(gaps: pl.Series, what: str, ids: Vocabulary) -> None:
    at = gaps.arg_true()
    if len(at):
        raise InputError(
            f"{what}: {len(at):,} of {len(gaps):,} values are missing or not finite, first for id "
            f"{quoted(ids.ids.tolist()[at[0]])}; fill them in, or name the columns to use with columns=."
        )


def _scaled(x: Floats) -> Floats:
    """Mean 0 and standard deviation 1; 0 and 1 stay as they are."""
    if bool(np.isin(x, (0.0, 1.0)).all()):
        return x
    _, power = np.frexp(np.abs(x).max())
    x = np.ldexp(x, -power)  # exact, and the squares of huge numbers stay finite
    return (x - x.mean()) / x.std()
