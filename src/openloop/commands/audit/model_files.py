"""Candidate models from files: tables of scores or ranks, matrices and model files, in a log's codes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from openloop import learners
from openloop.commands.table_files import suffix
from openloop.core.feedback import Array, Feedback, Floats, Ints, Vocabulary
from openloop.core.protocols import predicted_block
from openloop.data.columns import Column, InputTable, names_a, shared
from openloop.data.formats import open_file
from openloop.errors import AlignmentError, ColumnError, DuplicateError, FormatError, PredictionError, listing
from openloop.sources.predictions import Predictions, codes, read_predictions, together
from openloop.sources.rules import RANK, SCORE, SIDES
from openloop.support.atomic import FilePath

MODEL, MATRIX = ".safetensors", ".npy"


def candidate(name: str, paths: Sequence[FilePath], log: Feedback, named: Mapping[str, Column]) -> tuple[Any, str]:
    """A model as `ol.evaluate` takes it, and a note on how its file was read, empty where there is none to make.

    `named` are the log's columns of user and item, which a table may share.
    """
    what = f"model {name!r} ({paths[0]})"
    if len(paths) > 1:
        return together(f"model {name!r}", [_second(name, path, log, named) for path in paths]), ""
    if suffix(paths[0]) == MODEL:
        return _model(what, learners.load(paths[0]), log)
    if suffix(paths[0]) == MATRIX:
        return _matrix(what, Path(paths[0])), f"{what}: rows and columns are the users and items in order of id"
    return _table(what, paths[0], log, named), ""


def _second(name: str, path: FilePath, log: Feedback, named: Mapping[str, Column]) -> Predictions:
    """One of several files of a model, which must be a table."""
    found = None if suffix(path) in (MODEL, MATRIX) else _table(f"model {name!r} ({path})", path, log, named)
    if not isinstance(found, Predictions):
        raise PredictionError(
            f"model {name!r}: is given more than once, and {path} is no table of pairs; only a table of scores and a "
            "list with ranks go together, so give other models other names."
        )
    return found


def _table(what: str, path: FilePath, log: Feedback, named: Mapping[str, Column]) -> Predictions | Floats:
    """A table of pairs, or the matrix that a table without items is."""
    table = table_of(what, path, named)
    if is_matrix(table, named):
        return _wide(what, table.fetch(table.columns), log)
    return read_predictions(table, log, shared(table, ids_of(named)))


def table_of(what: str, path: FilePath, named: Mapping[str, Column]) -> InputTable:
    """A model's file as a table, which errors call `what`."""
    return replace(open_file(path, {**named, "rating": None}), name=what)


def ids_of(named: Mapping[str, Column]) -> dict[str, Column]:
    """The log's columns of user and item."""
    return {side: named.get(side) for side in SIDES}


# -- matrices ------------------------------------------------------------------------------------------------


def is_matrix(table: InputTable, named: Mapping[str, Column]) -> bool:
    """Whether a typed table has neither items nor scores: its first column is users, the others are items."""
    names = list(table.columns)
    known = {*SCORE, RANK, named.get("item")}
    return not table.text and len(names) > 1 and not any(n in known or names_a("item", n) for n in names)


def _wide(what: str, rows: pl.DataFrame, log: Feedback) -> Floats:
    """The scores (U, I) of a table with a row per user and a column per item, its ids mapped."""
    first, *items = rows.columns
    odd = [name for name in items if not rows.schema[name].is_numeric()]
    if odd:
        raise ColumnError(
            f"{what}: has no item column, and as a matrix its columns after {first!r} must be numbers, which "
            f"{listing(odd)} are not; give user, item and score, or users × items."
        )
    user = codes(what, "user", rows[first], log.users, text=False)
    item = codes(what, "item", pl.Series("items", items), log.items, text=True)
    for role, found, ids in (("user", user, log.users), ("item", item, log.items)):
        _refuse_other_cover(what, role, found, ids)
    grid = np.empty((log.n_users, log.n_items))
    for code, name in zip(item, items, strict=True):
        grid[user, code] = rows[name].cast(pl.Float64).fill_null(np.nan).to_numpy()
    return grid


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
        raise FormatError(f"{what}: no such file.")
    try:
        found: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError, SyntaxError, TokenError) as error:  # a header is Python text
        raise FormatError(f"{what}: is no array that numpy.save wrote ({error}); write it again.") from error
    if found.dtype.kind not in "fiu":
        raise PredictionError(f"{what}: must hold numbers, got {found.dtype}; save scores as floats.")
    return found


# -- model files ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recoded:
    """A recommender of other users and items than the log's, asked in the log's codes.

    `user` and `item` are its own codes, -1 for what it does not know: such items rank below all others, all items of
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
        return self._known(self.model.scores, users)

    def predictions(self, users: Ints) -> Array:
        """What it predicts of all items of the population, -inf where they are not known."""
        return self._known(partial(predicted_block, self.model), users)

    def _known(self, asked: Callable[[Ints], Any], users: Ints) -> Array:
        found = np.asarray(asked(np.maximum(self.user[users], 0)))[:, np.maximum(self.item, 0)]  # (B, I)
        found[self.user[users] < 0] = -np.inf
        found[:, self.item < 0] = -np.inf
        return found


def _model(what: str, model: Any, log: Feedback) -> tuple[Any, str]:
    if model.users_ == log.users and model.items_ == log.items:
        return model, ""
    found = Recoded(model=model, user=model.users_.find(log.users.ids), item=model.items_.find(log.items.ids))
    lacking: dict[str, str] = {}
    for role, known, own, ids in (
        ("user", found.user, model.users_, log.users),
        ("item", found.item, model.items_, log.items),
    ):
        number = int((known < 0).sum())
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
    made = {"user": "all items of such users are tied", "item": "such items rank below all others"}
    return (
        f"{what}: does not know {' and '.join(lacking.values())}; {', '.join(made[role] for role in lacking)}, and "
        "such ratings are not predicted"
    )
