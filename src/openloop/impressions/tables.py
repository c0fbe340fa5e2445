"""Tables of rankers: lists of requests or of users, as ranks, scores or probabilities, in a log's codes.

A table names the request or the user of each of its rows. Items that the log never showed keep their place in a list:
their code is I, one above the log's own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Floats, Ints, Vocabulary
from openloop.core.impressions import Impressions
from openloop.data import values
from openloop.data.columns import InputTable, choose, names_a, shared
from openloop.data.encoding import find
from openloop.data.frames import open_frame
from openloop.errors import ColumnError, InputError, PredictionError, listing, quoted
from openloop.sources import rules
from openloop.impressions.question import ShownQuestion
from openloop.sources.predictions import unknown_ids, written_numbers

if TYPE_CHECKING:
    import polars as pl

NONE = -1  # the code of no item


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankedLists:
    """`lists` (M, L) are item codes by rank, -1 where a list is shorter; request n uses lists[key[n]]."""

    lists: Ints
    key: Ints  # (N,)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableRows:
    """The rows of a table: which list each belongs to, its item, and its numbers by name."""

    what: str
    side: str  # "request" or "user"
    owner: Ints
    item: Ints
    numbers: dict[str, Floats]
    key: Ints  # (N,) the owner of each request of the log
    names: Vocabulary  # of the owners


def read_table(what: str, frame: Any, log: Impressions, asked: ShownQuestion) -> TableRows:
    """The rows of a table that belong to the log's requests; unknown requests and users are left out."""
    try:
        table = replace(frame if isinstance(frame, InputTable) else open_frame(frame), name=what)
    except InputError as error:
        raise PredictionError(
            f"{what}: {type(frame).__name__} is not a ranker; give a table (request or user, item, rank or score), a "
            "function of users and items, a recommender, or ranks of the shown rows."
        ) from error
    side, owner, item = id_columns(table, asked)
    numbers = value_columns(table, asked)
    rows = table.fetch([owner, item, *numbers.values()])
    if rows.height == 0:
        raise rules.no_rows(what)
    names, key = _owners(what, side, log)
    codes = _codes(what, side, rows[owner], names, text=table.text)
    if not bool((codes >= 0).any()):
        raise unknown_ids(what, side, rows[owner].unique(), rows.height, integers=names.ids.dtype.kind == "i")
    kept = codes >= 0
    items = _codes(what, "item", rows[item], log.items, text=table.text)[kept]
    if not bool((items >= 0).any()):
        raise unknown_ids(what, "item", rows[item].unique(), rows.height, integers=log.items.ids.dtype.kind == "i")
    return TableRows(
        what=what, side=side, owner=codes[kept], item=np.where(items < 0, log.n_items, items).astype(np.int32),
        numbers={role: _numbers(what, rows[column])[kept] for role, column in numbers.items()}, key=key, names=names,
    )  # fmt: skip


def id_columns(table: Any, asked: ShownQuestion) -> tuple[str, str, str]:
    """Whether a table has lists of requests or of users, and its columns of these and of items."""
    known = shared(table, {"request": asked.request, "user": asked.user, "item": asked.item})
    request = known.get("request") or next((name for name in table.columns if names_a("request", name)), None)
    side = "user" if request is None else "request"
    given = {"item": known.get("item"), side: known.get("user") if request is None else request}
    chosen = choose(table, given, required=("user", "item") if request is None else ("item",))
    return side, chosen[side], chosen["item"]


def value_columns(table: Any, asked: ShownQuestion) -> dict[str, str]:
    """The columns of rank, or score, or of position and probability."""
    if "probability" in table.columns:
        if "position" not in table.columns:
            raise ColumnError(f"{table.name}: probabilities need the position that each is of; add column 'position'.")
        return {"probability": "probability", "position": "position"}
    found = rules.number_columns(table, {"score": asked.score, "rank": asked.rank})
    return {"rank": found["rank"]} if "rank" in found else {"score": found["score"]}


def _owners(what: str, side: str, log: Impressions) -> tuple[Vocabulary, Ints]:
    """The ids of requests or users, and the owner of each request."""
    if side == "request":
        if log.requests is None:
            raise PredictionError(f"{what}: has lists of requests, and the log names none; give lists of users.")
        return log.requests, np.arange(log.n_requests, dtype=np.int32)
    if log.users is None or log.user is None:
        raise PredictionError(f"{what}: has lists of users, and the log names none; give lists of requests.")
    return log.users, log.user


def _codes(what: str, side: str, column: pl.Series, known: Vocabulary, *, text: bool) -> Ints:
    integers = known.ids.dtype.kind == "i"
    ids = values.ids(column, f"{what}: {side} column {quoted(column.name)}", text=text, keep_text=not integers)
    return find(ids, known, text=text)


def _numbers(what: str, column: pl.Series) -> Floats:
    found = written_numbers(what, column)
    bad = int(np.count_nonzero(~np.isfinite(found)))
    if bad:
        raise PredictionError(
            f"{what}: {bad:,} of {len(found):,} values in column {quoted(column.name)} are missing or not finite; "
            "repair them."
        )
    return found


# -- lists ---------------------------------------------------------------------------------------------------


def ranked_lists(rows: TableRows, n_items: int, depth: int | None) -> RankedLists:
    """The lists of a table, their first `depth` items, or all."""
    rank = rows.numbers.get("rank")
    found = _ranks_of_scores(rows) if rank is None else _checked_ranks(rows, rank)
    longest = int(found.max())
    length = longest if depth is None else min(depth, longest)
    lists = np.full((len(rows.names), length), NONE, np.int32)
    _refuse_repeats(rows, n_items)
    inside = found <= length
    lists[rows.owner[inside], found[inside] - 1] = rows.item[inside]
    owned = np.zeros(len(rows.names), np.bool_)
    owned[rows.owner] = True
    lacking = ~owned[rows.key]
    if lacking.any():
        ids = rows.names.ids[np.unique(rows.key[lacking])[:3]].tolist()
        raise PredictionError(
            f"{rows.what}: {int(lacking.sum()):,} of {len(rows.key):,} requests have no list, such as those of "
            f"{rows.side} {listing(ids)}; give a list for every {rows.side}."
        )
    return RankedLists(lists=lists, key=rows.key)


def _checked_ranks(rows: TableRows, rank: Floats) -> npt.NDArray[np.int64]:
    whole = rank.astype(np.int64)
    if bool(np.any((rank < 1) | (rank > rules.LARGEST) | (rank != whole))) or _repeats(rows.owner, whole):
        raise PredictionError(
            f"{rows.what}: ranks must be integers starting at 1, unique within each {rows.side}; number each list "
            "1, 2, 3 …"
        )
    return whole


def _ranks_of_scores(rows: TableRows) -> npt.NDArray[np.int64]:
    """Places by falling score, equal ones in the order of their items."""
    order = np.lexsort((rows.item, -rows.numbers["score"], rows.owner))
    owner = rows.owner[order]
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order)))) + 1
    return rank


def _refuse_repeats(rows: TableRows, n_items: int) -> None:
    known = rows.item < n_items
    if _repeats(rows.owner[known], rows.item[known]):
        raise PredictionError(
            f"{rows.what}: some ({rows.side}, item) pairs are in it more than once; keep one of each."
        )


def _repeats(owner: Array, value: Array) -> bool:
    """Whether some owner has a value twice."""
    places = owner.astype(np.int64) * (int(value.max(initial=0)) + 1) + value
    places.sort()
    return bool(np.any(places[1:] == places[:-1]))


# -- probabilities -------------------------------------------------------------------------------------------


def row_probabilities(rows: TableRows, log: Impressions) -> Floats:
    """π_j(a) of each shown item at every position, (n, K); what a table does not hold has none."""
    position, p = rows.numbers["position"], rows.numbers["probability"]
    _check_probabilities(rows, position, p)
    K, width = log.depth, log.n_items + 1
    found = np.zeros((len(log), K))
    wanted = rows.key[log.request].astype(np.int64) * width + log.item
    cells = rows.owner.astype(np.int64) * width + rows.item
    for k in range(1, K + 1):
        at = np.flatnonzero(position == k)
        at = at[np.argsort(cells[at])]
        own = cells[at]
        if bool(np.any((own[1:] == own[:-1]) & (own[1:] % width < log.n_items))):
            raise PredictionError(f"{rows.what}: some items have two probabilities at position {k}; keep one of each.")
        if len(own):
            place = np.minimum(np.searchsorted(own, wanted), len(own) - 1)
            found[:, k - 1] = np.where(own[place] == wanted, p[at][place], 0.0)
    return found


def _check_probabilities(rows: TableRows, position: Floats, p: Floats) -> None:
    whole = position.astype(np.int64)
    if bool(np.any((p < 0) | (p > 1) | (position < 1) | (position != whole))):
        raise PredictionError(f"{rows.what}: probabilities must lie in [0, 1], and positions be whole numbers from 1.")
    depth = int(whole.max())
    sums = np.bincount(rows.owner * np.int64(depth) + whole - 1, p, minlength=len(rows.names) * depth)
    if sums.max() > 1 + 1e-6:
        at, k = divmod(int(np.argmax(sums)), depth)
        raise PredictionError(
            f"{rows.what}: the probabilities of {rows.side} {quoted(rows.names.ids.tolist()[at])} at position {k + 1} "
            f"add up to {sums.max():.4g}; one item is shown there, so at most to 1."
        )
