"""The join of one block: a log with what models' tables say of its rows, and with the pairs that leave the rankings.

What a table must not hold is found on the way, and told of all blocks together, so that no error depends on hashing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

import numpy as np
import polars as pl

from openloop.blocks.block import Block, Outcome, Pairs
from openloop.blocks.population import IdIndex, Population
from openloop.blocks.tables import table_ranks
from openloop.core.vocabulary import Array, Bools, Int64s, Ints
from openloop.data.cells import one_of_each
from openloop.kernels.joining import meet, order_of_pairs

SHOWN = 3  # pairs or users that an error names
LARGEST = 2**31  # no list is longer
TICKED, ROOM = 8, 1_000_000  # ranks of users are ticked off in a table of so many places for each row, and more
UNLISTED = -1  # in the place of the candidates above an item that a list does not hold

Examples = tuple[tuple[Any, ...], ...]


class Rows(Protocol):
    """Rows by bucket, wherever they are."""

    rows: Int64s  # of each bucket, or of some of them together

    def frame(self, first: int, last: int) -> pl.DataFrame:
        """Those of the buckets first … last - 1."""
        ...

    def release(self, first: int, last: int) -> None:
        """Keep those of these buckets no longer."""
        ...

    def close(self) -> None:
        """Keep nothing."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dealt:
    """The rows of a table by bucket of their users; `coded`: their users and items are codes of the population."""

    store: Rows
    coded: bool = False

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.store.rows.sum())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableFacts:
    """What a model's table holds, as far as a block tells; facts of blocks add up."""

    pairs: int = 0  # rows whose user and item are known
    repeats: int = 0  # rows that repeat a pair
    repeated: Examples = ()
    bad_ranks: int = 0
    bad_counts: int = 0
    depth: int = 0  # the deepest rank
    excluded: int = 0  # rows that leave the rankings
    strange_users: int = 0  # rows of users that the population lacks
    strange_items: int = 0
    lacking: int = 0  # scored rows without a score
    lacking_users: Examples = ()
    masked: int = 0  # scored rows with a score of -inf
    uncounted: int = 0  # scored rows without counts
    most: int = 0  # the most items that a row's counts tell of, with those that its user has excluded
    listed: int = 0  # scored rows that are in a list
    unlisted_rows: int = 0  # scored rows whose users have no list
    unlisted_users: int = 0
    gaps: int = 0  # users with gaps in their ranks
    short: int = 0  # users with scored rows of whom some candidate is missing
    incomplete: int = 0  # users of whom some item is missing
    hidden: int = 0  # cells with a score of -inf, as of a masked history
    hidden_users: int = 0
    hidden_candidates: int = 0  # those that nothing excludes
    hidden_levels: tuple[pl.DataFrame, ...] = ()  # the ratings of scored rows among them, as in `JoinFacts.levels`

    def __add__(self, other: TableFacts) -> TableFacts:
        added: dict[str, Any] = {}
        for name in (f.name for f in fields(self)):
            own, more = getattr(self, name), getattr(other, name)
            if name in ("depth", "most"):
                added[name] = max(own, more)
            elif name == "hidden_levels":
                added[name] = own + more
            else:
                added[name] = tuple(sorted(own + more)[:SHOWN]) if isinstance(own, tuple) else own + more
        return TableFacts(**added)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogFaults:
    """Pairs that a log has more than once, and the rows of the first of them; rows of ids that the population lacks."""

    pairs: int = 0
    first: tuple[Any, ...] = ()
    rows: tuple[int, ...] = ()
    strange: tuple[int, ...] = ()  # the first rows with unknown ids
    n_strange: int = 0

    def __add__(self, other: LogFaults) -> LogFaults:
        earlier = min((x for x in (self, other) if x.pairs), key=lambda x: x.rows, default=self)
        return LogFaults(
            pairs=self.pairs + other.pairs, first=earlier.first, rows=earlier.rows,
            n_strange=self.n_strange + other.n_strange, strange=tuple(sorted(self.strange + other.strange)[:SHOWN]),
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JoinFacts:
    """What a join tells, of a block or of all so far."""

    log: LogFaults = field(default_factory=LogFaults)
    exclude: LogFaults = field(default_factory=LogFaults)
    tables: Mapping[str, TableFacts] = field(default_factory=dict[str, TableFacts])
    overlap: int = 0  # scored rows that are excluded, too
    excluded: int = 0  # pairs that are excluded and not scored
    rows_of_items: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))  # of the log
    excluded_of_items: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))  # of all that is excluded
    users: int = 0  # with scored rows
    excluded_of_scored: int = 0  # excluded rows of users with scored ones
    levels: tuple[pl.DataFrame, ...] = ()  # of each block its distinct ratings, "value", and their "rows"

    def __add__(self, other: JoinFacts) -> JoinFacts:
        empty = TableFacts()
        return JoinFacts(
            log=self.log + other.log, exclude=self.exclude + other.exclude,
            tables={n: self.tables.get(n, empty) + t for n, t in other.tables.items()},
            overlap=self.overlap + other.overlap, excluded=self.excluded + other.excluded,
            rows_of_items=_added(self.rows_of_items, other.rows_of_items),
            excluded_of_items=_added(self.excluded_of_items, other.excluded_of_items),
            users=self.users + other.users, excluded_of_scored=self.excluded_of_scored + other.excluded_of_scored,
            levels=self.levels + other.levels,
        )  # fmt: skip


def _added(a: Int64s, b: Int64s) -> Int64s:
    return a + b if len(a) else b


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelTables:
    """The tables of one model: columns of the log by role, or rows of its own, or both scores and a list."""

    scores: Dealt | None = None
    ranking: Dealt | None = None  # the same as `scores` where one table serves both
    columns: Mapping[str, str] = field(default_factory=dict[str, str])  # of the log, by role


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Join:
    """What every block joins; `kinds` says whether predictions are looked at, or ranks, or both.

    `keep` has the models' tables stay beside the rows, where whole lists or scores of all cells are asked for.
    """

    population: Population
    log: Dealt
    models: Mapping[str, ModelTables]
    exclude: Dealt | None = None
    columns: Sequence[str] = ()  # of the log, beside user, item and rating
    kinds: frozenset[str] = frozenset({"prediction", "rank"})
    keep: bool = False
    duplicates: str = "error"  # what happens to a pair that the log has more than once

    @property
    def dealt(self) -> list[Dealt]:
        """All tables, each once."""
        of_models = (d for tables in self.models.values() for d in (tables.scores, tables.ranking))
        return [d for d in dict.fromkeys((self.log, self.exclude, *of_models)) if d is not None]

    def __call__(self, first: int, last: int) -> tuple[Block, JoinFacts]:
        """The block of the buckets first … last - 1, and what it tells."""
        return _BlockJoin(self, first, last).joined()


class _BlockJoin:
    """The join of one block, step by step."""

    def __init__(self, join: Join, first: int, last: int) -> None:
        self.join, self.first, self.last = join, first, last
        self.users, self.user_start = join.population.block_users(first, last)
        self.n_items = len(join.population.items)
        self.ids = join.population.users.ids[self.users]
        self.user_index = IdIndex(self.ids)

    def joined(self) -> tuple[Block, JoinFacts]:
        """The block and its facts."""
        rows, frame, repeats = self._log()
        excluded, every_excluded, again = self._excluded(rows)
        block = Block(
            users=self.users, user_start=self.user_start, rows=rows, rating=frame["rating"].to_numpy(),
            columns={name: frame[name].to_numpy() for name in self.join.columns}, excluded=excluded,
        )  # fmt: skip
        outcomes: dict[str, Outcome] = {}
        tables: dict[str, Pairs] = {}
        facts: dict[str, TableFacts] = {}
        for name, tables_of_model in self.join.models.items():
            answer = _Answer(self, block)
            if tables_of_model.columns:
                answer.of_columns({role: frame[column] for role, column in tables_of_model.columns.items()})
            for dealt in dict.fromkeys(d for d in (tables_of_model.scores, tables_of_model.ranking) if d is not None):
                answer.of_table(self._pairs(dealt), serves_ratings=dealt is tables_of_model.scores,
                                serves_ranks=dealt is tables_of_model.ranking)  # fmt: skip
            outcomes[name], facts[name] = answer.outcome(), answer.facts
            if self.join.keep and answer.kept is not None:
                tables[name] = answer.kept
        found = JoinFacts(
            log=repeats, exclude=again, tables=facts, overlap=len(every_excluded) - len(excluded),
            excluded=len(excluded), rows_of_items=np.bincount(rows.item, minlength=self.n_items),
            excluded_of_items=np.bincount(every_excluded.item, minlength=self.n_items),
            users=int(np.count_nonzero(np.diff(block.user_ptr))),
            excluded_of_scored=int(np.count_nonzero(np.isin(every_excluded.user, rows.user))),
            levels=(counts_of(block.rating),),
        )  # fmt: skip
        return Block(
            users=block.users, user_start=block.user_start, rows=rows, rating=block.rating, columns=block.columns,
            excluded=excluded, outcomes=outcomes, tables=tables,
        ), found  # fmt: skip

    # -- the log and what is excluded ------------------------------------------------------------------------

    def _log(self) -> tuple[Pairs, pl.DataFrame, LogFaults]:
        """The rows by user and item, without those that repeat a pair."""
        frame = self.join.log.store.frame(self.first, self.last)
        pairs = self._coded(frame, self.join.log)
        rows, order, faults = self._sorted(pairs, frame, self.join.duplicates)
        ordered = frame.select(pl.exclude("user", "item", "row"))[pl.Series(order)]
        if self.join.duplicates == "mean" and len(order) < len(frame):
            ratings = _mean_ratings(pairs.cell(self.n_items), frame, rows.cell(self.n_items))
            ordered = ordered.with_columns(rating=ratings)
        return rows, ordered, faults

    def _excluded(self, rows: Pairs) -> tuple[Pairs, Pairs, LogFaults]:
        """The excluded pairs less the scored ones: the item being ranked always is a candidate; and all of them."""
        if self.join.exclude is None:
            none = Pairs(user=np.zeros(0, np.int32), item=np.zeros(0, np.int32))
            return none, none, LogFaults()
        frame = self.join.exclude.store.frame(self.first, self.last)
        pairs, _, repeats = self._sorted(self._coded(frame, self.join.exclude), frame, "first")
        place = meet(rows.cell(self.n_items), pairs.cell(self.n_items))
        return pairs.take(place < 0), pairs, repeats

    def _coded(self, frame: pl.DataFrame, dealt: Dealt) -> Pairs:
        """Users as places in the block, items as codes; -1 where the population has no such id."""
        if not dealt.coded:
            user = self.user_index.find(frame["user"])
            return Pairs(user=user, item=self.join.population.item_index.find(frame["item"]))
        population = self.join.population
        place = population.place_of_code[frame["user"].to_numpy()] - np.int32(population.by_bucket[1][self.first])
        return Pairs(user=place, item=frame["item"].to_numpy())

    def _sorted(self, pairs: Pairs, frame: pl.DataFrame, duplicates: str) -> tuple[Pairs, Ints, LogFaults]:
        """The pairs by user and item, each once; where they were; and what is wrong with them."""
        order = order_of_pairs(pairs.user, pairs.item, len(self.users), self.n_items)
        ordered = pairs.take(order)
        is_repeat = np.diff(ordered.cell(self.n_items)) == 0
        if len(order) == len(pairs) and not is_repeat.any():
            return ordered, order, LogFaults()
        row = frame["row"].to_numpy() if "row" in frame.columns else np.arange(len(pairs))
        strange = np.sort(row[(pairs.user < 0) | (pairs.item < 0)])
        faults = LogFaults(n_strange=len(strange), strange=tuple(strange[:SHOWN].tolist()))
        if not is_repeat.any():
            return ordered, order, faults
        if duplicates == "error":
            faults = faults + self._repeats(ordered, row[order])
        cell = ordered.cell(self.n_items)
        by_row = np.lexsort((row[order], cell))  # rows of a pair in the order of the input
        time = frame["time"].to_numpy() if "time" in frame.columns else None
        once = order[by_row][one_of_each(cell, order[by_row], time, last=duplicates != "first")]
        return pairs.take(once), once, faults

    def _repeats(self, ordered: Pairs, row: Int64s) -> LogFaults:
        """The pairs that are there more than once; `row` are the rows of the input."""
        cell = ordered.cell(self.n_items)
        twice = np.unique(cell[1:][cell[1:] == cell[:-1]])
        there = np.flatnonzero(np.isin(cell, twice))
        here = np.flatnonzero(cell == cell[there[np.argmin(row[there])]])
        name = self.named(ordered.take(here[:1]))[0]
        return LogFaults(pairs=len(twice), first=name, rows=tuple(np.sort(row[here]).tolist()))

    # -- tables of models ------------------------------------------------------------------------------------

    def _pairs(self, dealt: Dealt) -> Pairs:
        frame = dealt.store.frame(self.first, self.last)
        numbers = {name: frame[name].to_numpy() for name in frame.columns if name not in ("user", "item", "row")}
        pairs = self._coded(frame, dealt)
        return Pairs(user=pairs.user, item=pairs.item, numbers=numbers)

    def named(self, pairs: Pairs) -> list[tuple[Any, Any]]:
        """The ids of pairs."""
        items = self.join.population.items.ids
        return list(zip(self.ids[pairs.user].tolist(), items[pairs.item].tolist(), strict=True))


class _Answer:
    """What one model says of the rows of a block, and what its tables are like."""

    def __init__(self, owner: _BlockJoin, block: Block) -> None:
        self._owner, self._block, self._n_items = owner, block, owner.n_items
        self._kinds = owner.join.kinds
        self._scored = np.diff(block.user_ptr) > 0  # users with scored rows
        self._values: dict[str, Array] = {}
        self.facts = TableFacts()
        self.kept: Pairs | None = None

    def outcome(self) -> Outcome:
        """What was found."""
        return Outcome(**self._values)

    def of_columns(self, columns: Mapping[str, pl.Series]) -> None:
        """A model that is columns of the log."""
        values = {role: column.fill_null(float("nan")).to_numpy() for role, column in columns.items()}
        if "score" in values and "prediction" in self._kinds:
            self._predict(values["score"])
        if "above" in values:
            self._count(values["above"], values["tied"], np.ones(len(self._block), bool))
        elif "rank" in values:
            rank = values["rank"]
            listed = ~np.isnan(rank)
            pairs = Pairs(user=self._block.user[listed], item=self._block.item[listed], numbers={"rank": rank[listed]})
            self._list(pairs, rank)

    def of_table(self, pairs: Pairs, *, serves_ratings: bool, serves_ranks: bool) -> None:
        """A model's own table, which serves ratings, or ranks, or both."""
        known = pairs.user >= 0
        strange = TableFacts(
            strange_users=int(np.count_nonzero(~known)), strange_items=int(np.count_nonzero(pairs.item[known] < 0))
        )
        pairs = _ordered(pairs if known.all() else pairs.take(known))
        within = pairs.take(pairs.item >= 0) if strange.strange_items else pairs
        cell = within.cell(self._n_items)
        place = meet(cell, self._block.rows.cell(self._n_items))
        repeats = np.flatnonzero(cell[1:] == cell[:-1]) + 1
        again = self._owner.named(within.take(repeats)) if len(repeats) else []
        self.facts = (
            self.facts
            + strange
            + TableFacts(pairs=len(within), repeats=len(repeats), repeated=tuple(sorted(set(again))[:SHOWN]))
        )

        def beside(name: str) -> Array:
            numbers = within.numbers[name]
            return np.where(place >= 0, numbers[place], np.nan) if len(numbers) else np.full(len(place), np.nan)

        if serves_ratings and "score" in pairs.numbers and "prediction" in self._kinds:
            self._predict(beside("score"))
        if not serves_ranks:
            return
        if "rank" not in self._kinds:
            if self._owner.join.keep and "score" in pairs.numbers and not len(repeats):
                self._keep_scores(within)
            return
        if "above" in pairs.numbers:
            self._count(beside("above"), beside("tied"), place >= 0, pairs)
        elif "rank" in pairs.numbers:
            self._list(pairs, beside("rank"), whole=True)
            self.kept = pairs if self._owner.join.keep else None
        elif not len(repeats):
            self._rank_scores(within)

    def _predict(self, scores: Array) -> None:
        gaps = np.isnan(scores)
        users = np.unique(self._owner.ids[self._block.user[gaps]])[:SHOWN].tolist()
        self.facts = self.facts + TableFacts(
            lacking=int(gaps.sum()), lacking_users=tuple((u,) for u in users), masked=int(np.isneginf(scores).sum())
        )
        self._values["prediction"] = scores.astype(np.float64)

    def _count(self, above: Array, tied: Array, there: Bools, pairs: Pairs | None = None) -> None:
        """Candidates above and tied, counted where all were ranked: only scored rows need them."""
        h, e = (above, tied) if pairs is None else (pairs.numbers["above"], pairs.numbers["tied"])
        with np.errstate(invalid="ignore"):
            odd = ~((h >= 0) & (e >= 1) & (h == np.floor(h)) & (e == np.floor(e)) & (h + e <= LARGEST))
        odd &= ~(np.isnan(h) & np.isnan(e))
        gone = np.isnan(above) | np.isnan(tied) | ~there
        others = np.diff(self._block.excluded_ptr)[self._block.user]
        counts = np.where(gone, 0, above + tied + others)
        self.facts = self.facts + TableFacts(
            bad_counts=int(odd.sum()), uncounted=int(gone.sum()), most=int(counts.max(initial=0))
        )
        self._values["above"] = np.where(gone, 0, above).astype(np.int64)
        self._values["tied"] = np.where(gone, 1, tied).astype(np.int64)

    def _list(self, pairs: Pairs, rank: Array, *, whole: bool = False) -> None:
        """Ranks from a column; what a list does not hold ranks below it."""
        own, users = pairs.numbers["rank"], self._block.n_users
        with np.errstate(invalid="ignore"):
            odd = ~((own >= 1) & (own <= LARGEST) & (own == np.floor(own)))
        length = np.bincount(pairs.user, minlength=users)
        deepest = np.zeros(users)
        np.maximum.at(deepest, pairs.user, np.where(odd, 0, own))
        bad = int(odd.sum()) or _repeated_ranks(pairs.user, own)
        place = meet(self._block.excluded.cell(self._n_items), pairs.take(pairs.item >= 0).cell(self._n_items))
        candidates = self._owner.join.population.n_items - np.diff(self._block.excluded_ptr)
        without = (length == 0) & self._scored
        self.facts = self.facts + TableFacts(
            bad_ranks=bad, depth=int(deepest.max(initial=0)), excluded=int(np.count_nonzero(place >= 0)),
            listed=int(np.count_nonzero(~np.isnan(rank))), unlisted_users=int(without.sum()),
            unlisted_rows=int(np.diff(self._block.user_ptr)[without].sum()), gaps=int(np.sum(deepest > length)),
            short=int(np.count_nonzero((length < candidates) & self._scored)) if whole else 0,
            incomplete=int(np.count_nonzero(length < candidates)),
        )  # fmt: skip
        self._values["above"] = np.where(np.isnan(rank), UNLISTED, rank - 1).astype(np.int64)
        self._values["tied"] = np.ones(len(rank), np.int64)

    def _rank_scores(self, pairs: Pairs) -> None:
        """Scores of all candidates: ranks, ties in expectation."""
        block = self._block
        place = meet(block.excluded.cell(self._n_items), pairs.cell(self._n_items))
        inside = np.bincount(pairs.user[place < 0], minlength=block.n_users)
        n_items = self._owner.join.population.n_items
        candidates = n_items - np.diff(block.excluded_ptr)
        short = int(np.count_nonzero((inside < candidates) & self._scored))
        self.facts = self.facts + TableFacts(short=short) + self._hidden(pairs, place >= 0)
        self._keep_scores(pairs)
        if not short:
            self._values["above"], self._values["tied"] = table_ranks(block, pairs, self._n_items)

    def _hidden(self, pairs: Pairs, excluded: Bools) -> TableFacts:
        """What is masked by a score of -inf."""
        hidden = np.isneginf(pairs.numbers["score"])
        if not hidden.any():
            return TableFacts()
        place = meet(pairs.take(hidden).cell(self._n_items), self._block.rows.cell(self._n_items))
        return TableFacts(
            hidden=int(hidden.sum()), hidden_users=len(np.unique(pairs.user[hidden])),
            hidden_candidates=int(np.count_nonzero(hidden & ~excluded)),
            hidden_levels=(counts_of(self._block.rating[place >= 0]),),
        )  # fmt: skip

    def _keep_scores(self, pairs: Pairs) -> None:
        """Scores stay beside the rows; what is asked of all cells needs those of every item."""
        length = np.bincount(pairs.user, minlength=self._block.n_users)
        incomplete = int(np.count_nonzero(length < self._owner.join.population.n_items))
        self.facts = self.facts + TableFacts(incomplete=incomplete)
        self.kept = pairs


def _mean_ratings(cell: Int64s, frame: pl.DataFrame, kept: Int64s) -> pl.Series:
    """The mean rating of the rows of each pair."""
    means = (
        pl.DataFrame({"cell": cell, "rating": frame["rating"].cast(pl.Float64)}).group_by("cell").mean().sort("cell")
    )
    place = np.searchsorted(means["cell"].to_numpy(), kept)
    return means["rating"].gather(place).cast(pl.Float32)


def counts_of(values: Array) -> pl.DataFrame:
    """The distinct values, "value", and the "rows" of each."""
    return pl.Series("value", values).value_counts(name="rows")


def _ordered(pairs: Pairs) -> Pairs:
    """The pairs by user, then by item; first those of items that the population lacks."""
    n_users, n_items = int(pairs.user.max(initial=-1)) + 1, int(pairs.item.max(initial=-1)) + 1
    return pairs.take(order_of_pairs(pairs.user, pairs.item + np.int32(1), n_users, n_items + 1))


def _repeated_ranks(user: Ints, rank: Array) -> int:
    """How many ranks of a user are there more than once; short lists are ticked off, which is quicker than sorting."""
    width = int(rank.max(initial=0)) + 1
    place = user * np.int64(width) + rank.astype(np.int64)
    if int(user.max(initial=0)) * width > TICKED * len(place) + ROOM:
        place = np.sort(place)
        return int(np.count_nonzero(place[1:] == place[:-1]))
    return int(np.count_nonzero(np.bincount(place) > 1))
