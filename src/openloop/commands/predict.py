"""What a saved recommender says: scores of given pairs, the best items of each user, or its vectors, in a file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from threadpoolctl import threadpool_limits

from openloop import learners
from openloop.commands.table_files import (
    WRITERS,
    check_extension,
    holdable,
    open_list,
    open_to_extend,
    refuse_overwriting,
    suffix,
    write,
    write_blocks,
)
from openloop.core.feedback import Array, Ints, Vocabulary, distinct
from openloop.data import values
from openloop.data.columns import Column, InputTable, choose
from openloop.data.encoding import find, refuse_unknown
from openloop.data.formats import open_file
from openloop.errors import ColumnError, EmptyError, InputError, PredictionError, UndefinedError, did_you_mean, quoted
from openloop.learners.model_files.vector_files import WRITERS as VECTOR_FILES
from openloop.moments.table_rules import SIDES
from openloop.support.atomic import FilePath, Recorded
from openloop.support.progress import Step, silent

UNKNOWN = ("error", "drop", "null")
BLOCK = 2**20  # scores at a time, for each thread


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictRequest:
    """A model, what to ask it, and where to write the answer; whatever cannot work is refused here.

    Either `pairs`, a table with users and items, or `top`, the number of items for each user: of all, or of those in
    the table `users`, without the pairs in the table `exclude`. `user` and `item` are the columns of all tables. Or
    `vectors`: those of users and items, with their ids.
    """

    model: FilePath
    out: FilePath
    pairs: FilePath | None = None
    top: int | None = None
    users: FilePath | None = None
    exclude: FilePath | None = None
    vectors: bool = False
    user: Column = None
    item: Column = None
    column: str = "score"
    unknown: str = "error"
    safe_csv: bool = False

    def __post_init__(self) -> None:
        _check_question(self)
        _check_columns(self)
        check_extension(self.out, VECTOR_FILES if self.vectors else WRITERS, safe_csv=self.safe_csv)
        refuse_overwriting([self.out], self.inputs)

    @property
    def inputs(self) -> list[FilePath]:
        """The files to read."""
        return [path for path in (self.model, self.pairs, self.users, self.exclude) if path is not None]

    @property
    def columns(self) -> dict[str, Column]:
        """The columns of users and items in tables."""
        return {"user": self.user, "item": self.item}

    @property
    def names(self) -> tuple[str, str]:
        """What the columns of users and items are called in a table of best items."""
        named = [given if isinstance(given, str) else role for role, given in self.columns.items()]
        return named[0], named[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted(Recorded):
    """What was asked and written; `unknown` counts the rows with ids that the model does not know."""

    model: str
    kind: str
    users: int
    items: int
    out: str
    rows: int
    unknown: int = 0
    top: int | None = None
    asked: int | None = None  # users
    excluded: int = 0  # pairs
    short: int = 0  # users with fewer items left than were asked for
    factors: int | None = None  # numbers in a vector

    def summary(self) -> str:
        """The same in a few lines."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"read {self.model}: {self.kind} of {self.users:,} users × {self.items:,} items"
        if self.factors is not None:
            yield f"wrote {self.rows:,} vectors of {self.factors:,} numbers"
            return
        unknown = f"; {self.unknown:,} rows have ids that the model does not know" if self.unknown else ""
        if self.top is None:
            yield f"scored {self.rows:,} pairs{unknown}"
            return
        excluded = f", {self.excluded:,} pairs left out" if self.excluded else ""
        yield f"ranked the {self.top:,} best items of {self.asked:,} users: {self.rows:,} rows{excluded}{unknown}"
        if self.short:
            yield f"- {self.short:,} users have fewer than {self.top:,} items to choose from"


def predict(wanted: PredictRequest, step: Step = silent) -> Predicted:
    """Ask the model, and write the answer; the file appears whole, or not at all."""
    step("reading the model", 0.0)
    model = learners.load(wanted.model)
    facts = {"model": str(wanted.model), "kind": type(model).__name__, "out": str(wanted.out)}
    facts |= {"users": len(model.users_), "items": len(model.items_)}
    answer = _vectors if wanted.vectors else _score_pairs if wanted.pairs is not None else _rank
    return Predicted(**facts, **answer(wanted, model, step))


# -- pairs ---------------------------------------------------------------------------------------------------


def _score_pairs(wanted: PredictRequest, model: Any, step: Step) -> dict[str, Any]:
    """All columns and the order of the rows stay as they are."""
    step("reading the pairs", 0.1)
    table = open_to_extend(wanted.pairs or "", wanted.columns, wanted.column)
    chosen = choose(table, wanted.columns, required=SIDES)
    rows = table.fetch(table.columns)
    user, item, known = _pair_codes(table, rows, chosen, model, refuse=wanted.unknown == "error")
    step("scoring the pairs", 0.3)
    scores = _finite(model, np.asarray(model.predict(user[known], item[known])))
    step("writing", 0.8)
    rows = holdable(table, rows, suffix(wanted.out))
    if wanted.unknown == "null":
        column = pl.Series(wanted.column, np.zeros(len(known), scores.dtype)).set(pl.Series(~known), None)
        column = column.scatter(np.flatnonzero(known), scores)
    else:
        rows, column = rows.filter(known), pl.Series(wanted.column, scores)
    write(wanted.out, rows.with_columns(column), safe_csv=wanted.safe_csv)
    return {"rows": len(rows), "unknown": int((~known).sum())}


def _pair_codes(
    table: InputTable, rows: pl.DataFrame, chosen: Mapping[str, str], model: Any, *, refuse: bool
) -> tuple[Ints, Ints, npt.NDArray[np.bool_]]:
    """The codes of users and items, and which rows have both; a table of which the model knows no row is refused."""
    user = _codes(table, rows[chosen["user"]], "user", model.users_, refuse=refuse)
    item = _codes(table, rows[chosen["item"]], "item", model.items_, refuse=refuse)
    return user, item, _known(table, (user >= 0) & (item >= 0))


def _codes(table: InputTable, column: pl.Series, role: str, ids: Vocabulary, *, refuse: bool) -> Ints:
    """The code of each row's id, -1 where the model does not know it; ids are matched as `ol.read` does."""
    what = f"{table.name}: {role} column {quoted(column.name)}"
    if len(column) == 0:
        raise EmptyError(f"{table.name}: no rows; give at least one {role}.")
    checked = values.ids(column, what, text=table.text, keep_text=ids.ids.dtype.kind != "i")
    codes = find(checked, ids, text=table.text)
    if refuse:
        refuse_unknown(checked, codes, ids, what)
    return codes


def _known(table: InputTable, known: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    if not known.any():
        raise EmptyError(
            f"{table.name}: the model knows the ids of none of its {len(known):,} rows; check the columns, and the "
            "ids' type."
        )
    return known


def _finite(model: Any, scores: Array) -> Array:
    if not bool(np.isfinite(scores).all()):
        raise PredictionError(f"{type(model).__name__}: its scores are not all finite; train it again.")
    return scores


# -- the best items ------------------------------------------------------------------------------------------


def _rank(wanted: PredictRequest, model: Any, step: Step) -> dict[str, Any]:
    k, n_items = wanted.top or 1, len(model.items_)
    step("reading the tables", 0.1)
    users, strange_users = _asked(wanted, model)
    excluded, strange = _excluded(wanted, model)
    gone = np.bincount(excluded // n_items, minlength=len(model.users_))[users]  # (asked,)
    left = n_items - gone
    rows = int(np.minimum(left, k).sum())
    if rows == 0:
        raise EmptyError(f"--exclude {wanted.exclude}: leaves no item for any user; leave it out.")
    write_blocks(wanted.out, _best_items(wanted, model, users, excluded, step), safe_csv=wanted.safe_csv)
    return {
        "rows": rows, "unknown": strange_users + strange, "top": k, "asked": len(users),
        "excluded": int(gone.sum()), "short": int((left < k).sum()),
    }  # fmt: skip


def _asked(wanted: PredictRequest, model: Any) -> tuple[Array, int]:
    """The codes of the users to rank for, each once, and the number of rows with unknown ones."""
    if wanted.users is None:
        return np.arange(len(model.users_)), 0
    table = open_list(wanted.users, "user", wanted.user)
    name = table.columns[0] if len(table.columns) == 1 else choose(table, {"user": wanted.user}, ("user",))["user"]
    codes = _codes(table, table.fetch([name])[name], "user", model.users_, refuse=wanted.unknown == "error")
    known = codes[_known(table, codes >= 0)]
    _, first = np.unique(known, return_index=True)
    return known[np.sort(first)].astype(np.int64), len(codes) - len(known)


def _excluded(wanted: PredictRequest, model: Any) -> tuple[npt.NDArray[np.int64], int]:
    """The cells (user · n_items + item) that are left out, ascending, and the number of rows with unknown ids."""
    if wanted.exclude is None:
        return np.empty(0, np.int64), 0
    table = open_file(wanted.exclude, wanted.columns)
    chosen = choose(table, wanted.columns, required=SIDES)
    user, item, known = _pair_codes(table, table.fetch(list(chosen.values())), chosen, model, refuse=False)
    cells = user[known].astype(np.int64) * len(model.items_) + item[known]
    return distinct(cells), int((~known).sum())


def _best_items(
    wanted: PredictRequest, model: Any, users: Array, excluded: npt.NDArray[np.int64], step: Step
) -> Iterator[pl.DataFrame]:
    """Blocks of rows, users in the order asked for; as many blocks are held as there are threads."""
    user_ids, item_ids = pl.Series(model.users_.ids.tolist()), pl.Series(model.items_.ids.tolist())
    size, threads, (user, item) = max(1, BLOCK // len(item_ids)), os.cpu_count() or 1, wanted.names

    def ranked(start: int) -> pl.DataFrame:
        part = users[start : start + size]
        row, column, rank, score = _ranked(model, part, excluded, wanted.top or 1)
        ids = {user: user_ids.gather(part[row]), item: item_ids.gather(column)}
        return pl.DataFrame({**ids, wanted.column: score, "rank": rank.astype(np.int32)})

    with threadpool_limits(1, "blas"), ThreadPoolExecutor(threads) as pool:
        for first in range(0, len(users), threads * size):
            step("ranking the items", 0.2 + 0.8 * first / len(users))
            last = min(first + threads * size, len(users))
            yield from pool.map(ranked, range(first, last, size))


def _ranked(model: Any, users: Array, excluded: npt.NDArray[np.int64], k: int) -> tuple[Array, Array, Array, Array]:
    """Row (a position in `users`), column, rank and prediction of each user's k best items that are not excluded."""
    from openloop.kernels.selecting import best

    scores = np.array(model.scores(users), order="C")  # (B, I), a copy: it is written to
    row, column = _cells_of(users, excluded, scores.shape[1])
    scores[row, column] = -np.inf
    chosen, candidates = best(scores, k)  # (B, k), (B,)
    if np.any(candidates != scores.shape[1] - np.bincount(row, minlength=len(users))):
        raise PredictionError(f"{type(model).__name__}: its scores are not all finite; train it again.")
    row, place = np.nonzero(chosen >= 0)
    column = chosen[row, place]
    best_scores = scores[row, column]
    return row, column, place + 1, model.link(best_scores) if hasattr(model, "link") else best_scores


def _cells_of(users: Array, cells: npt.NDArray[np.int64], n_items: int) -> tuple[Array, Array]:
    """Row and column, in a block of these users, of the cells that are theirs."""
    low, high = (np.searchsorted(cells, (users + end) * n_items) for end in (0, 1))  # (B,) each
    counts = high - low
    before = np.repeat(np.cumsum(counts) - counts, counts)
    own = np.repeat(low, counts) + np.arange(counts.sum()) - before
    return np.repeat(np.arange(len(users)), counts), cells[own] % n_items


# -- vectors -------------------------------------------------------------------------------------------------


def _vectors(wanted: PredictRequest, model: Any, step: Step) -> dict[str, Any]:
    if not hasattr(model, "to_vectors"):
        raise UndefinedError(f"{type(model).__name__}: has no vectors of users and items; --top K writes lists.")
    step("writing", 0.5)
    found = model.to_vectors(wanted.out)
    V, W = found["user_factors"], found["item_factors"]
    return {"rows": len(V) + len(W), "factors": V.shape[1]}


# -- refusals ------------------------------------------------------------------------------------------------


def _check_question(wanted: PredictRequest) -> None:
    if (wanted.pairs is not None) + (wanted.top is not None) + wanted.vectors != 1:
        raise InputError(
            "pass one of --pairs FILE, for the scores of its rows, --top K, for the best items, and --vectors."
        )
    if wanted.unknown not in UNKNOWN:
        raise InputError(f"--unknown {wanted.unknown!r} is not an option.{did_you_mean(wanted.unknown, UNKNOWN)}")
    if wanted.vectors:
        _check_vectors(wanted)
    if wanted.top is None:
        for name in ("users", "exclude"):
            if getattr(wanted, name) is not None:
                given = "--vectors" if wanted.vectors else "--pairs"
                raise InputError(f"--{name} {getattr(wanted, name)}: is for --top, and {given} is given; leave it out.")
        return
    if not 1 <= wanted.top < 2**31:
        raise InputError(
            f"--top must be at least 1, and below 2³¹, got {wanted.top}; give the number of items for each user."
        )
    if wanted.unknown != "error" and wanted.users is None:
        raise InputError(f"--unknown {wanted.unknown}: with --top it is for the users in --users FILE; leave it out.")
    if wanted.unknown == "null":
        raise InputError("--unknown null: an unknown user has no list; pass --unknown drop to leave such users out.")


def _check_vectors(wanted: PredictRequest) -> None:
    """Vectors have names and ids of their own."""
    usual = {field.name: field.default for field in fields(PredictRequest)}
    for name in ("column", "unknown", "user", "item"):
        if getattr(wanted, name) != usual[name]:
            raise InputError(f"--{name} {getattr(wanted, name)}: is for tables, and --vectors is given; leave it out.")


def _check_columns(wanted: PredictRequest) -> None:
    if not wanted.column:
        raise InputError("--column must not be empty; leave it out for 'score'.")
    names = (*wanted.names, wanted.column, *(("rank",) if wanted.top is not None else ()))
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ColumnError(f"two columns of --out would be called {quoted(twice)}; change --user, --item or --column.")
