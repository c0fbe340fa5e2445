"""Candidate models from files: tables of scores or ranks, matrices and model files, in a log's codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
import polars as pl

from openloop import learners
from openloop.blocks.population import IdIndex, Population
from openloop.commands.table_files import suffix
from openloop.core.feedback import Array, Floats, Ints, Vocabulary
from openloop.data import values
from openloop.data.columns import Column, InputTable, names_a
from openloop.data.formats import open_file
from openloop.errors import (
    ColumnError,
    DuplicateError,
    FormatError,
    PredictionError,
    UnknownIdError,
    listing,
    quoted,
)
from openloop.learners.model_files.vector_tables import is_vector_table
from openloop.moments.inputs import Answerer, Table, checked_shape
from openloop.moments.inputs import table_of as opened_table
from openloop.moments.recoding import partly_by_id
from openloop.support.atomic import FilePath

MODELS, MATRIX = (".safetensors", ".npz"), ".npy"
ROLES = ("item", "score", "rank")  # a table with a column of one of these is no matrix


def is_model_file(path: FilePath) -> bool:
    """Whether a file holds a model or vectors, which `ol.load` reads."""
    return suffix(path) in MODELS or is_vector_table(path)


def candidate(name: str, paths: Sequence[FilePath], named: Mapping[str, Column], notes: list[str]) -> Any:
    """A model as `ol.evaluate` takes it, and in `notes` how its file is read.

    `named` are the log's columns of user and item, which a table may share, and a table's of score and rank.
    """
    what = f"model {name!r} ({paths[0]})"
    if len(paths) > 1:
        return [_second(name, path, named) for path in paths]
    if is_model_file(paths[0]):
        model = learners.load(paths[0])
        return Answerer(of=lambda population: _placed(what, model, population, notes))
    if suffix(paths[0]) == MATRIX:
        notes.append(f"{what}: rows and columns are the users and items in order of id")
        matrix = _matrix(what, Path(paths[0]))
        return Answerer(of=lambda population: checked_shape(what, matrix, population))
    table = table_of(what, paths[0], named)
    if is_matrix(table, named):
        return Answerer(of=lambda population: _wide(what, table.fetch(table.columns), population))
    return opened_table(what, table, named)


def _placed(what: str, model: Any, population: Population, notes: list[str]) -> Any:
    """A model in the codes of a population, some of whose users and items it may lack."""
    placed, note = partly_by_id(what, model, population.users, population.items)
    if note:
        notes.append(note)
    return placed


def _second(name: str, path: FilePath, named: Mapping[str, Column]) -> Table:
    """One of several files of a model, which must be a table."""
    what = f"model {name!r} ({path})"
    if (
        suffix(path) != MATRIX
        and not is_model_file(path)
        and not is_matrix(table := table_of(what, path, named), named)
    ):
        return opened_table(what, table, named)
    raise PredictionError(
        f"model {name!r}: is given more than once, and {path} is not a table of pairs; only a table of scores and a "
        "list with ranks go together, so give other models other names."
    )


def table_of(what: str, path: FilePath, named: Mapping[str, Column]) -> InputTable:
    """A model's file as a table, which errors call `what`."""
    return replace(open_file(path, {**named, "rating": None}), name=what)


# -- matrices ------------------------------------------------------------------------------------------------


def is_matrix(table: InputTable, named: Mapping[str, Column]) -> bool:
    """Whether a typed table has neither items nor scores: its first column is users, the others are items."""
    names = list(table.columns)
    given = {named.get(role) for role in ROLES}
    return not table.text and len(names) > 1 and not any(n in given or names_a(r, n) for n in names for r in ROLES)


def _wide(what: str, rows: pl.DataFrame, log: Population) -> Floats:
    """The scores (U, I) of a table with a row per user and a column per item, its ids mapped."""
    first, *items = rows.columns
    odd = [name for name in items if not rows.schema[name].is_numeric()]
    if odd:
        raise ColumnError(
            f"{what}: has no item column, and as a matrix its columns after {quoted(first)} must be numbers, which "
            f"{listing(odd)} are not; give user, item and score, or users × items."
        )
    user = _codes(what, "user", values.ids(rows[first], f"{what}: user column {quoted(first)}"), log.users)
    item = _codes(what, "item", pl.Series("items", items), log.items)
    for role, found, ids in (("user", user, log.users), ("item", item, log.items)):
        _refuse_other_cover(what, role, found, ids)
    grid = np.empty((len(log.users), len(log.items)))
    for code, name in zip(item, items, strict=True):
        grid[user, code] = rows[name].cast(pl.Float64).fill_null(np.nan).to_numpy()
    return grid


def _codes(what: str, side: str, ids: pl.Series, known: Vocabulary) -> Ints:
    """The codes of ids, all of which the population has."""
    codes = IdIndex(known.ids).find(ids)
    if bool((codes < 0).any()):
        strange = ids.filter(pl.Series(codes < 0)).unique()
        raise UnknownIdError(
            f"{what}: the population lacks {len(strange):,} {side}s, such as "
            f"{listing(strange.sort().head(3).to_list())}; leave them out, or pass {side}s= with all "
            f"{side}s where the log is read."
        )
    return codes


def _refuse_other_cover(what: str, role: str, found: Ints, ids: Vocabulary) -> None:
    """A matrix has each user and item of the population once."""
    times = np.bincount(found, minlength=len(ids))
    if bool((times > 1).any()):
        raise DuplicateError(f"{what}: {role} {listing([ids.ids[times.argmax()]])} is there more than once; keep one.")
    absent = np.flatnonzero(times == 0)
    if len(absent):
        some = listing(ids.ids[absent[:3]].tolist())
        raise PredictionError(
            f"{what}: the matrix lacks {len(absent):,} of {len(ids):,} {role}s, as {some}; give all, or a table of "
            "user, item and score."
        )


def _matrix(what: str, path: Path) -> Array:
    """The scores of an array file, left on disk until they are looked at."""
    if not path.is_file():
        raise FormatError(f"{what}: is no ordinary file; name one." if path.exists() else f"{what}: no such file.")
    try:
        found: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError, SyntaxError, TokenError) as error:  # a header is Python text
        raise FormatError(f"{what}: is not an array that numpy.save wrote ({error}); write it again.") from error
    if found.dtype.kind not in "fiu":
        raise PredictionError(f"{what}: must hold numbers, got {found.dtype}; save scores as floats.")
    return found
