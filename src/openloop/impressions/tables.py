"""Tables of rankers: lists of requests or of users, as ranks, scores or probabilities, dealt and joined with blocks.

A table names the request or the user of each of its rows. Items that the log never showed keep their place in a list:
their code is I, one above the log's own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from openloop.blocks.dealing import ReadIds
from openloop.blocks.population import IdIndex
from openloop.blocks.readers import batches
from openloop.blocks.store import Budget, Store
from openloop.core.feedback import Array, Floats, Ints, Vocabulary
from openloop.data.columns import InputTable, choose, names_a, shared
from openloop.data.frames import open_frame
from openloop.errors import ColumnError, InputError, PredictionError, UnknownIdError, listing, quoted
from openloop.impressions.logs import DealtLog, ShownBlock
from openloop.impressions.question import ShownQuestion
from openloop.sources import rules
from openloop.sources.predictions import written_numbers

NONE = -1  # the code of no item
EXAMPLES = 3  # ids that an error names
ROOM = 1e-6  # that sums of probabilities may be above 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankedLists:
    """`lists` (M, L) are item codes by rank, -1 where a list is shorter; request n uses lists[key[n]]."""

    lists: Ints
    key: Ints  # (N,)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableFacts:
    """What the rows of a table have in common with a log, as far as blocks tell; facts of blocks add up."""

    owners: int = 0  # rows of known requests or users
    items: int = 0  # of these, rows of known items
    lacking: int = 0  # requests without a list
    examples: tuple[Any, ...] = ()  # whose lists are lacking

    def __add__(self, other: TableFacts) -> TableFacts:
        return TableFacts(
            owners=self.owners + other.owners, items=self.items + other.items, lacking=self.lacking + other.lacking,
            examples=tuple(sorted(self.examples + other.examples)[:EXAMPLES]),
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankerTable:
    """A ranker's table by bucket of the clusters of its requests or users."""

    what: str
    side: str  # "request" or "user"
    numbers: frozenset[str]
    store: Store
    some_ids: dict[str, list[Any]]

    def rows(self, log: DealtLog, block: ShownBlock) -> TableRows:
        """The rows that belong to the requests of a block."""
        frame = self.store.frame(*block.buckets)
        names = block.names(self.side)
        key = block.log.cluster if self.side == log.by else np.arange(block.log.n_requests, dtype=np.int32)
        owner = IdIndex(names.ids).find(frame["owner"])
        frame, owner = frame.filter(owner >= 0), owner[owner >= 0]
        item = log.population.item_index.find(frame["item"])
        owned = np.zeros(len(names), np.bool_)
        owned[owner] = True
        lacking = ~owned[key]
        return TableRows(
            what=self.what, side=self.side, names=names, key=key, owner=owner,
            item=np.where(item < 0, block.log.n_items, item).astype(np.int32), n_items=block.log.n_items,
            numbers={name: frame[name].to_numpy() for name in self.numbers},
            facts=TableFacts(
                owners=len(owner), items=int(np.count_nonzero(item >= 0)), lacking=int(np.count_nonzero(lacking)),
                examples=tuple(names.ids[np.unique(key[lacking])[:EXAMPLES]].tolist()),
            ),
        )  # fmt: skip

    def refuse(self, facts: TableFacts, n_requests: int) -> None:
        """Refuse a table of other ids, or one that lacks lists, where lists are what it has."""
        for side, known in ((self.side, facts.owners), ("item", facts.items)):
            if not known:
                raise UnknownIdError(
                    f"{self.what}: it has none of the log's {side}s; its own are as {listing(self.some_ids[side])}; "
                    "write both alike."
                )
        if facts.lacking and "probability" not in self.numbers:
            raise PredictionError(
                f"{self.what}: {facts.lacking:,} of {n_requests:,} requests have no list, such as those of "
                f"{self.side} {listing(list(facts.examples))}; give a list for every {self.side}."
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableRows:
    """Rows of a table in the codes of a block: which list each belongs to, its item, and its numbers by name."""

    what: str
    side: str
    names: Vocabulary  # of the owners
    key: Ints  # (N,) the owner of each request of the block
    owner: Ints
    item: Ints
    n_items: int
    numbers: dict[str, Floats]
    facts: TableFacts


# -- reading -------------------------------------------------------------------------------------------------


def deal_ranker(what: str, frame: Any, log: DealtLog, question: ShownQuestion, budget: Budget) -> RankerTable:
    """A table, read once; rows of requests that the log does not have are left out."""
    try:
        table = replace(frame if isinstance(frame, InputTable) else open_frame(frame), name=what)
    except InputError as error:
        raise PredictionError(
            f"{what}: {type(frame).__name__} is not a ranker; give a table (request or user, item, rank or score), a "
            "function of users and items, a recommender, or ranks of the shown rows."
        ) from error
    side, owner, item = _id_columns(table, question)
    if side not in log.kinds:
        raise PredictionError(f"{what}: has lists of {side}s, and the log names none; give other lists.")
    columns = _value_columns(table, question)
    return _read(table, log, {side: owner, "item": item}, columns, budget)


def _read(
    table: InputTable, log: DealtLog, names: dict[str, str], columns: dict[str, str], budget: Budget
) -> RankerTable:
    store, ids, some_ids = Store(budget), ReadIds(), dict[str, list[Any]]()
    side, n_rows, missing = next(iter(names)), 0, dict.fromkeys(columns, 0)
    for batch in batches(table, [*names.values(), *columns.values()]):
        made: dict[str, Any] = {}
        for role, column in names.items():
            made[role] = ids.add(role, batch[column], f"{table.name}: {role} column {quoted(column)}", text=table.text)
            some_ids.setdefault(role, made[role].head(EXAMPLES).to_list())
            _refuse_kind(table, role, ids.kinds[role], log)
        for role, column in columns.items():
            made[role] = written_numbers(table.name, batch[column])
            missing[role] += int(np.count_nonzero(~np.isfinite(made[role])))
        n_rows += batch.height
        _check(table.name, side, made)
        buckets = log.buckets(side, made[side])
        rows = pl.DataFrame(made | {"owner": made[side]}).drop(side)
        store.add(rows.filter(buckets >= 0), buckets[buckets >= 0].astype(np.uint8))
    store.finish()
    for role, number in missing.items():
        if number:
            raise PredictionError(
                f"{table.name}: {number:,} of {n_rows:,} values in column {quoted(columns[role])} are missing or not "
                "finite; repair them."
            )
    if not n_rows:
        raise rules.no_rows(table.name)
    return RankerTable(what=table.name, side=side, numbers=frozenset(columns), store=store, some_ids=some_ids)


def _refuse_kind(table: InputTable, side: str, kind: str, log: DealtLog) -> None:
    if not table.text and kind != log.kinds[side]:
        raise UnknownIdError(
            f"{table.name}: the log's {side} ids are {log.kinds[side]} and these {kind}; cast one side."
        )


def _check(what: str, side: str, numbers: dict[str, Floats]) -> None:
    """What can be said of ranks and probabilities row by row; what is missing is told later."""
    place = numbers.get("rank", numbers.get("position"))
    if place is None:
        return
    is_wrong = bool(np.any((place < 1) | (place > rules.LARGEST) | (np.isfinite(place) & (place != np.floor(place)))))
    if "rank" in numbers and is_wrong:
        raise _bad_ranks(what, side)
    p = numbers.get("probability", np.zeros(0))
    if is_wrong or bool(np.any((p < 0) | (p > 1))):
        raise PredictionError(f"{what}: probabilities must lie in [0, 1], and positions be whole numbers from 1.")


def _bad_ranks(what: str, side: str) -> PredictionError:
    return PredictionError(
        f"{what}: ranks must be integers starting at 1, unique within each {side}; number each list 1, 2, 3 …"
    )


def _id_columns(table: InputTable, question: ShownQuestion) -> tuple[str, str, str]:
    """Whether a table has lists of requests or of users, and its columns of these and of items."""
    names = {"request": question.request, "user": question.user, "item": question.item}
    columns = shared(table, {role: name if isinstance(name, str) else None for role, name in names.items()})
    request = columns.get("request") or next((name for name in table.columns if names_a("request", name)), None)
    side = "user" if request is None else "request"
    wanted = {"item": columns.get("item"), side: columns.get("user") if request is None else request}
    chosen = choose(table, wanted, required=("user", "item") if request is None else ("item",))
    return side, chosen[side], chosen["item"]


def _value_columns(table: InputTable, question: ShownQuestion) -> dict[str, str]:
    """The columns of rank, or score, or of position and probability."""
    if "probability" in table.columns:
        if "position" not in table.columns:
            raise ColumnError(f"{table.name}: probabilities need the position that each is of; add column 'position'.")
        return {"probability": "probability", "position": "position"}
    columns = rules.number_columns(table, {"score": question.score, "rank": question.rank})
    return {"rank": columns["rank"]} if "rank" in columns else {"score": columns["score"]}


# -- lists ---------------------------------------------------------------------------------------------------


def ranked_lists(rows: TableRows, depth: int | None) -> RankedLists:
    """The lists of a table, their first `depth` items, or all."""
    rank = _ranks(rows)
    longest = int(rank.max(initial=1))
    lists = np.full((len(rows.names), longest if depth is None else min(depth, longest)), NONE, np.int32)
    is_known = rows.item < rows.n_items
    if _repeats(rows.owner[is_known], rows.item[is_known]):
        raise PredictionError(
            f"{rows.what}: some ({rows.side}, item) pairs are in it more than once; keep one of each."
        )
    inside = rank <= lists.shape[1]
    lists[rows.owner[inside], rank[inside] - 1] = rows.item[inside]
    return RankedLists(lists=lists, key=rows.key)


def _ranks(rows: TableRows) -> npt.NDArray[np.int64]:
    """Ranks, or places by falling score, equal ones in the order of their items."""
    if "rank" in rows.numbers:
        rank = rows.numbers["rank"].astype(np.int64)
        if _repeats(rows.owner, rank):
            raise _bad_ranks(rows.what, rows.side)
        return rank
    order = np.lexsort((rows.item, -rows.numbers["score"], rows.owner))
    owner = rows.owner[order]
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order)))) + 1
    return rank


def _repeats(owner: Array, value: Array) -> bool:
    """Whether some owner has a value twice."""
    places = owner.astype(np.int64) * (int(value.max(initial=0)) + 1) + value
    places.sort()
    return bool(np.any(places[1:] == places[:-1]))


# -- probabilities -------------------------------------------------------------------------------------------


def row_probabilities(rows: TableRows, block: ShownBlock) -> Floats:
    """π_j(a) of each shown item at every position, (n, K); what a table does not hold has none."""
    position, p = rows.numbers["position"].astype(np.int64), rows.numbers["probability"]
    _refuse_sums(rows, position, p)
    log, width = block.log, rows.n_items + 1
    probability = np.zeros((len(log), log.depth))
    wanted = rows.key[log.request].astype(np.int64) * width + log.item
    cells = rows.owner.astype(np.int64) * width + rows.item
    for k in range(1, log.depth + 1):
        here = np.flatnonzero(position == k)
        here = here[np.argsort(cells[here])]
        cell = cells[here]
        if bool(np.any((cell[1:] == cell[:-1]) & (cell[1:] % width < rows.n_items))):
            raise PredictionError(f"{rows.what}: some items have two probabilities at position {k}; keep one of each.")
        if len(cell):
            place = np.minimum(np.searchsorted(cell, wanted), len(cell) - 1)
            probability[:, k - 1] = np.where(cell[place] == wanted, p[here][place], 0.0)
    return probability


def _refuse_sums(rows: TableRows, position: npt.NDArray[np.int64], p: Floats) -> None:
    depth = int(position.max(initial=1))
    sums = np.bincount(rows.owner * np.int64(depth) + position - 1, p, minlength=len(rows.names) * depth)
    if sums.max() > 1 + ROOM:
        owner, k = divmod(int(np.argmax(sums)), depth)
        raise PredictionError(
            f"{rows.what}: the probabilities of {rows.side} {quoted(rows.names.ids.tolist()[owner])} at position "
            f"{k + 1} add up to {sums.max():.4g}; one item is shown there, so at most to 1."
        )
