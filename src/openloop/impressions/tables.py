"""Tables of rankers: lists of requests or of users, as ranks, scores or probabilities, dealt and joined with blocks.

A table names the request or the user of each of its rows. Items that the log never showed keep their place in a list:
their code is I, one above the log's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.blocks.dealing import ReadIds, deal_table
from openloop.blocks.joining import Dealt
from openloop.blocks.population import IdIndex
from openloop.blocks.store import Budget
from openloop.core.feedback import Array, Floats, Ints, Vocabulary
from openloop.data.columns import InputTable, choose, names_a, shared
from openloop.data.frames import open_frame
from openloop.data.impressions import IDS
from openloop.errors import ColumnError, InputError, PredictionError, UnknownIdError, listing, quoted
from openloop.impressions.logs import DealtLog, ShownBlock
from openloop.impressions.question import ShownQuestion
from openloop.kernels.joining import match
from openloop.moments import table_rules
from openloop.moments.inputs import Gaps, Table

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
    """What the rows of a table have in common with a block."""

    items: int  # rows of known items
    lacking: int  # requests without a list
    examples: list[Any]  # whose lists are lacking


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankerTable:
    """A ranker's table by bucket of the clusters of its requests or users."""

    what: str
    side: str  # "request" or "user"
    numbers: frozenset[str]
    dealt: Dealt

    def rows(self, log: DealtLog, block: ShownBlock) -> TableRows:
        """The rows that belong to the requests of a block."""
        frame, names = self.dealt.store.frame(*block.buckets), block.names(self.side)
        key = block.log.cluster if self.side == log.by else np.arange(block.log.n_requests, dtype=np.int32)
        owner = IdIndex(names.ids).find(frame[self.side])
        frame, owner = frame.filter(owner >= 0), owner[owner >= 0]
        item = log.population.item_index.find(frame["item"])
        lacking = ~np.isin(key, owner)
        return TableRows(
            what=self.what, side=self.side, names=names, key=key, owner=owner, n_items=block.log.n_items,
            item=np.where(item < 0, block.log.n_items, item).astype(np.int32),
            numbers={name: frame[name].to_numpy() for name in self.numbers},
            facts=TableFacts(
                items=int(np.count_nonzero(item >= 0)), lacking=int(np.count_nonzero(lacking)),
                examples=names.ids[np.unique(key[lacking])[:EXAMPLES]].tolist(),
            ),
        )  # fmt: skip

    def refuse(self, facts: Sequence[TableFacts], n_requests: int) -> None:
        """Refuse a table of other ids, or one that lacks lists, where lists are what it has."""
        lacking = sum(part.lacking for part in facts)
        if lacking and "probability" not in self.numbers:
            examples = sorted(example for part in facts for example in part.examples)[:EXAMPLES]
            raise PredictionError(
                f"{self.what}: {lacking:,} of {n_requests:,} requests have no list, such as those of {self.side} "
                f"{listing(examples)}; give a list for every {self.side}."
            )
        if not any(part.items for part in facts):
            raise UnknownIdError(f"{self.what}: it has none of the log's items, or none for its {self.side}s.")


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
    """A table, read once."""
    if isinstance(frame, Table):  # whose columns `ol.predictions` named
        question = replace(question, columns={**question.columns, **frame.columns})
        frame = frame.table
    try:
        table = replace(frame if isinstance(frame, InputTable) else open_frame(frame), name=what)
    except InputError as error:
        raise PredictionError(
            f"{what}: {type(frame).__name__} is not a ranker; give a table (request or user, item, rank or score), a "
            "function of users and items, a recommender, or ranks of the shown rows."
        ) from error
    side, columns = _id_columns(table, question)
    if side not in log.kinds:
        raise PredictionError(f"{what}: has lists of {side}s, and the log names none; give other lists.")
    numbers, ids = _value_columns(table, question), ReadIds()
    gaps = {role: Gaps(what=what, column=column) for role, column in numbers.items()}
    dealt = deal_table(table, columns | numbers, gaps, budget, ids, buckets_of=partial(log.buckets, side))
    if not dealt.n_rows:
        raise table_rules.no_rows(what)
    for role, gap in gaps.items():
        gap.refuse(role)
    for role in columns:
        if not table.text and ids.kinds[role] != log.kinds[role]:
            kinds = log.kinds[role], ids.kinds[role]
            raise UnknownIdError(f"{what}: the log's {role} ids are {kinds[0]} and these {kinds[1]}; cast one side.")
    return RankerTable(what=what, side=side, numbers=frozenset(numbers), dealt=dealt)


def _id_columns(table: InputTable, question: ShownQuestion) -> tuple[str, dict[str, str]]:
    """Whether a table has lists of requests or of users, and its columns of these and of items."""
    columns = shared(table, {role: question.columns.get(role) for role in IDS})
    request = columns.get("request") or next((name for name in table.columns if names_a("request", name)), None)
    side = "user" if request is None else "request"
    names_of_ids = {"item": columns.get("item"), side: columns.get("user") if request is None else request}
    chosen = choose(table, names_of_ids, required=("user", "item") if request is None else ("item",))
    return side, {side: chosen[side], "item": chosen["item"]}


def _value_columns(table: InputTable, question: ShownQuestion) -> dict[str, str]:
    """The columns of rank, or score, or of position and probability."""
    if "probability" in table.columns:
        if "position" not in table.columns:
            raise ColumnError(f"{table.name}: probabilities need the position that each is of; add column 'position'.")
        return {"probability": "probability", "position": "position"}
    columns = table_rules.number_columns(table, {role: question.columns.get(role) for role in ("score", "rank")})
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
        rank = rows.numbers["rank"]
        if _is_wrong(rank) or _repeats(rows.owner, rank.astype(np.int64)):
            raise PredictionError(
                f"{rows.what}: ranks must be integers starting at 1, unique within each {rows.side}; number each list "
                "1, 2, 3 …"
            )
        return rank.astype(np.int64)
    order = np.lexsort((rows.item, -rows.numbers["score"], rows.owner))
    owner = rows.owner[order]
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order)))) + 1
    return rank


def _is_wrong(place: Floats) -> bool:
    return bool(np.any((place < 1) | (place > table_rules.LARGEST) | (place != np.floor(place))))


def _repeats(owner: Ints, value: Array) -> bool:
    """Whether some owner has a value twice."""
    cells = owner * np.int64(int(value.max(initial=0)) + 1) + value
    return len(match(cells, cells[:0])[1]) > 0


# -- probabilities -------------------------------------------------------------------------------------------


def row_probabilities(rows: TableRows, block: ShownBlock) -> Floats:
    """π_j(a) of each shown item at every position, (n, K); what a table does not hold has none."""
    position, p = rows.numbers["position"], rows.numbers["probability"]
    if _is_wrong(position) or bool(np.any((p < 0) | (p > 1))):
        raise PredictionError(f"{rows.what}: probabilities must lie in [0, 1], and positions be whole numbers from 1.")
    _refuse_sums(rows, position.astype(np.int64), p)
    log, K = block.log, block.log.depth
    cells = (rows.owner * np.int64(rows.n_items) + rows.item) * K + position.astype(np.int64) - 1
    cells[(rows.item == rows.n_items) | (position > K)] = -1
    shown = (rows.key[log.request] * np.int64(rows.n_items) + log.item) * K
    place, repeats = match(cells, (shown[:, None] + np.arange(K)).ravel())
    if len(repeats):
        raise PredictionError(
            f"{rows.what}: some items have two probabilities at position {position[repeats[0]]:g}; keep one of each."
        )
    return np.append(p, 0.0)[place].reshape(-1, K)


def _refuse_sums(rows: TableRows, position: npt.NDArray[np.int64], p: Floats) -> None:
    depth = int(position.max(initial=1))
    sums = np.bincount(rows.owner * np.int64(depth) + position - 1, p, minlength=len(rows.names) * depth)
    if sums.max() > 1 + ROOM:
        owner, k = divmod(int(np.argmax(sums)), depth)
        raise PredictionError(
            f"{rows.what}: the probabilities of {rows.side} {quoted(rows.names.ids.tolist()[owner])} at position "
            f"{k + 1} add up to {sums.max():.4g}; one item is shown there, so at most to 1."
        )
