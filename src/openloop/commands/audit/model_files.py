"""Candidate models from files: tables of scores or ranks, matrices and model files, in a log's codes.

This module knows nothing about terminals; its messages speak of the options of `openloop audit`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from openloop import learners
from openloop.commands.table_files import suffix
from openloop.core.feedback import Array, Feedback, Floats, Ints, Vocabulary
from openloop.data import columns, values
from openloop.data.columns import Column, choose, names_a
from openloop.data.encoding import find
from openloop.data.formats import open_file
from openloop.errors import (
    AlignmentError,
    ColumnError,
    DuplicateError,
    FormatError,
    PredictionError,
    UnknownIdError,
    did_you_mean,
    listing,
)
from openloop.sources.predictions import SCORE, Table, checked, finite, holds_text, together
from openloop.support.atomic import FilePath

SIDES = ("user", "item")
MODEL, MATRIX = ".safetensors", ".npy"


def candidate(name: str, paths: Sequence[FilePath], log: Feedback, named: Mapping[str, Column]) -> tuple[Any, str]:
    """A model as `ol.evaluate` takes it, and a note on how its file was read, empty where there is none to make.

    `named` are the log's columns of user and item, which a table may share.
    """
    if len(paths) > 1:
        pair = together(name, [_second(name, path, log, named) for path in paths])
        return pair, pair.remarks(name, log)
    what = f"model {name!r} ({paths[0]})"
    if suffix(paths[0]) == MODEL:
        return _model(what, learners.load(paths[0]), log)
    if suffix(paths[0]) == MATRIX:
        return _matrix(what, Path(paths[0]), log), f"{what}: rows and columns are the users and items in order of id"
    found = _table(name, paths[0], log, named)
    return found, found.remarks(name, log) if isinstance(found, Table) else ""


def _second(name: str, path: FilePath, log: Feedback, named: Mapping[str, Column]) -> Table:
    """One of several files of a model, which must be a table."""
    found = None if suffix(path) in (MODEL, MATRIX) else _table(name, path, log, named)
    if not isinstance(found, Table):
        raise PredictionError(
            f"model {name!r}: is given more than once, and {path} is no table of pairs; only a table of scores and a "
            "list with ranks go together, so give other models other names."
        )
    return found


# -- tables --------------------------------------------------------------------------------------------------


def shared(table: columns.InputTable, named: Mapping[str, Column]) -> dict[str, str]:
    """Those of the log's columns that a table has under the same name."""
    return {role: name for role, name in named.items() if isinstance(name, str) and name in table.columns}


def pair_columns(what: str, table: columns.InputTable, named: Mapping[str, Column]) -> dict[str, str]:
    """The columns of user, item, and score or rank or both."""
    chosen = choose(table, shared(table, {role: named.get(role) for role in SIDES}), required=SIDES)
    numbers = {"score": next((c for c in SCORE if c in table.columns), None)}
    numbers["rank"] = "rank" if "rank" in table.columns else None
    if not any(numbers.values()):
        raise ColumnError(
            f"{what}: has no column 'score' or 'rank' beside {listing(list(chosen.values()))}; name it so."
            f"{did_you_mean('score', [c for c in table.columns if c not in chosen.values()])}"
        )
    return chosen | {role: column for role, column in numbers.items() if column is not None}


def _table(name: str, path: FilePath, log: Feedback, named: Mapping[str, Column]) -> Table | Floats:
    """A table of pairs, or the matrix that a table without items is."""
    what = f"model {name!r} ({path})"
    table = open_file(path, {**named, "rating": None})
    if is_matrix(table, named):
        return _wide(what, table.fetch(table.columns), log)
    chosen = pair_columns(what, table, named)
    rows = table.fetch(list(chosen.values()))
    if rows.height == 0:
        raise PredictionError(f"{what}: has no rows; give a score for each pair of the log.")
    user, item = (
        _codes(what, role, rows[chosen[role]], ids, text=table.text)
        for role, ids in zip(SIDES, (log.users, log.items), strict=True)
    )
    found = Table(user=user, item=item, score=None, rank=None, shape=(log.n_users, log.n_items))
    score, rank = (
        finite(what, role, _numbers(what, rows[chosen[role]]), found, log) if role in chosen else None
        for role in ("score", "rank")
    )
    return checked(name, replace(found, score=score, rank=rank), log)


def _codes(what: str, role: str, column: pl.Series, known: Vocabulary, *, text: bool) -> Ints:
    integers = known.ids.dtype.kind == "i"
    ids = values.ids(column, f"{what}: {role} column {column.name!r}", text=text, keep_text=not integers)
    codes = find(ids, known, text=text)
    if bool((codes < 0).any()):
        strange = ids.filter(pl.Series(codes < 0))
        raise UnknownIdError(unknown_ids(what, role, strange.unique(), len(strange), integers=integers))
    return codes


def unknown_ids(what: str, role: str, strange: pl.Series, rows: int, *, integers: bool | None) -> str:
    """The words about ids beyond the population, where `integers` says what those of the log are."""
    remedy = f"pass --{role}s FILE with all {role}s"
    if integers is not None and integers != (strange.dtype == pl.Int64):
        kinds = ("integers", "text") if integers else ("text", "integers")
        remedy = f"the log's are {kinds[0]} and these {kinds[1]}, so cast one of them"
    return (
        f"{what}: {len(strange):,} {role}s in {rows:,} rows are neither in the log nor in the files beside it, as "
        f"{listing(strange.sort().head(3).to_list())}; {remedy}."
    )


def _numbers(what: str, column: pl.Series) -> Floats:
    """Scores or ranks, NaN where they are missing; text may write them."""
    if isinstance(column.dtype, pl.String | pl.Categorical | pl.Enum):
        fields = column.cast(pl.String).str.strip_chars()
        numbers = fields.cast(pl.Float64, strict=False)
        words = fields.filter(numbers.is_null() & (fields != ""))
        if len(words):
            raise holds_text(what, column.name, words.to_list(), len(column))
        return numbers.to_numpy()
    if not (column.dtype.is_numeric() or isinstance(column.dtype, pl.Boolean | pl.Null)):
        raise PredictionError(f"{what}: column {column.name!r} must hold numbers, not {column.dtype}; cast it.")
    return column.cast(pl.Float64).to_numpy()


# -- matrices ------------------------------------------------------------------------------------------------


def is_matrix(table: columns.InputTable, named: Mapping[str, Column]) -> bool:
    """Whether a typed table has neither items nor scores: its first column is users, the others are items."""
    names = list(table.columns)
    known = {*SCORE, "rank", named.get("item")}
    return not table.text and len(names) > 1 and not any(n in known or names_a("item", n) for n in names)


def _wide(what: str, rows: pl.DataFrame, log: Feedback) -> Floats:
    """The scores (U, I) of a table with a row a user and a column an item, its ids mapped."""
    first, *items = rows.columns
    odd = [name for name in items if not rows.schema[name].is_numeric()]
    if odd:
        raise ColumnError(
            f"{what}: has no item column, and as a matrix its columns after {first!r} must be numbers, which "
            f"{listing(odd)} are not; give user, item and score, or users × items."
        )
    user = _codes(what, "user", rows[first], log.users, text=False)
    item = _codes(what, "item", pl.Series("items", items), log.items, text=True)
    for role, codes, ids in (("user", user, log.users), ("item", item, log.items)):
        _refuse_other_cover(what, role, codes, ids)
    grid = np.empty((log.n_users, log.n_items))
    for code, name in zip(item, items, strict=True):
        grid[user, code] = rows[name].cast(pl.Float64).fill_null(np.nan).to_numpy()
    return grid


def _refuse_other_cover(what: str, role: str, codes: Ints, ids: Vocabulary) -> None:
    """A matrix has each user and item of the population once."""
    times = np.bincount(codes, minlength=len(ids))
    if bool((times > 1).any()):
        raise DuplicateError(f"{what}: {role} {listing([ids.ids[times.argmax()]])} stands more than once; keep one.")
    absent = np.flatnonzero(times == 0)
    if len(absent):
        some = listing(ids.ids[absent[:3]].tolist())
        raise PredictionError(
            f"{what}: the matrix lacks {len(absent):,} of {len(ids):,} {role}s, as {some}; give all, or a table of "
            "user, item and score."
        )


def _matrix(what: str, path: Path, log: Feedback) -> Array:
    """The scores (U, I) of an array file, left on disk until they are looked at."""
    if not path.is_file():
        raise FormatError(f"{what}: no such file.")
    try:
        found: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise FormatError(f"{what}: is no array that numpy.save wrote ({error}); write it again.") from error
    if found.dtype.kind not in "fiu":
        raise PredictionError(f"{what}: must hold numbers, got {found.dtype}; save scores as floats.")
    if found.shape != (log.n_users, log.n_items):
        raise PredictionError(
            f"{what}: has shape {found.shape}, and the population is {log.n_users:,} users × {log.n_items:,} items, in "
            "order of id; save a row for each user and a column for each item, or pass users= and items= with all ids."
        )
    return found


# -- model files ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recoded:
    """A recommender of other users and items than the log's, asked in the log's codes.

    `user` and `item` are its own codes, -1 for what it does not know: such items stand below all others, all items of
    such users are tied, and their ratings are not predicted.
    """

    model: Any
    user: npt.NDArray[np.int32]
    item: npt.NDArray[np.int32]

    def knows(self, user: Ints, item: Ints) -> npt.NDArray[np.bool_]:
        """Whether it knows both the user and the item of each pair."""
        return (self.user[user] >= 0) & (self.item[item] >= 0)

    def predict(self, user: Ints, item: Ints) -> Array:
        """The predicted rating of each pair, NaN where it is not known."""
        # Some code must be asked for in place of -1.
        found = self.model.predict(np.maximum(self.user[user], 0), np.maximum(self.item[item], 0))
        return np.where(self.knows(user, item), found, np.nan)

    def scores(self, users: Ints) -> Array:
        """The scores of all items of the population, -inf where they are not known."""
        found = np.asarray(self.model.scores(np.maximum(self.user[users], 0)))[:, np.maximum(self.item, 0)]  # (B, I)
        found[self.user[users] < 0] = -np.inf
        found[:, self.item < 0] = -np.inf
        return found


def _model(what: str, model: Any, log: Feedback) -> tuple[Any, str]:
    if model.users_ == log.users and model.items_ == log.items:
        return model, ""
    found = Recoded(model=model, user=model.users_.find(log.users.ids), item=model.items_.find(log.items.ids))
    lacking: dict[str, str] = {}
    for role, codes, own, ids in (
        ("user", found.user, model.users_, log.users),
        ("item", found.item, model.items_, log.items),
    ):
        number = int((codes < 0).sum())
        if number == len(ids):
            raise AlignmentError(
                f"{what}: knows none of the log's {len(ids):,} {role}s; its own are {listing(own.ids[:3].tolist())} …, "
                f"the log's {listing(ids.ids[:3].tolist())} …; train it on a log with the same ids."
            )
        if number:
            lacking[role] = f"{number:,} of {len(ids):,} {role}s"
    return found, _unknown(what, lacking)


def _unknown(what: str, lacking: Mapping[str, str]) -> str:
    """The note on what a model does not know, and what is made of that."""
    if not lacking:
        return ""
    made = {"user": "all items of such users are tied", "item": "such items stand below all others"}
    return (
        f"{what}: does not know {' and '.join(lacking.values())}; {', '.join(made[role] for role in lacking)}, and "
        "such ratings are not predicted"
    )
