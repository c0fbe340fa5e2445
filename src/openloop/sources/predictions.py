"""Predictions given as a table of user, item and score or rank: read, checked and looked up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Feedback, Floats, Ints, Vocabulary, distinct
from openloop.core.metric import Metric
from openloop.errors import ColumnError, PredictionError, did_you_mean, listing

USER = ("user", "user_id", "userId", "uid")
ITEM = ("item", "item_id", "itemId", "iid", "mid", "movieId")
SCORE = ("score", "prediction")
UNPREDICTED = 'lacks predictions of some scored rows; give them, or pass missing="drop".'
MAX_DENSE = 2**28  # cells of a grid made from a table of scores: 2 GiB
LARGEST = 2**31  # no list is longer


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """Predictions given as a table: codes of user and item, with scores, ranks, or both; ordered by cell.

    `listed` is a table of ranks that goes with one of scores: the first serves rankings, the second ratings.
    """

    user: npt.NDArray[np.int32]
    item: npt.NDArray[np.int32]
    score: Floats | None
    rank: Floats | None
    shape: tuple[int, int]
    listed: Table | None = None

    @property
    def cell(self) -> npt.NDArray[np.int64]:
        """Flat positions in the grid."""
        return self.user.astype(np.int64) * self.shape[1] + self.item

    @property
    def depth(self) -> int:
        """The deepest rank of a list."""
        return 0 if self.rank is None else int(self.rank.max())

    @property
    def ranking(self) -> Table:
        """The table that rankings are asked of."""
        return self if self.listed is None else self.listed

    def at(self, values: Floats, cells: npt.NDArray[np.int64]) -> Floats:
        """The value of each cell, NaN where the table has none."""
        from openloop.kernels.merging import positions

        own = self.cell
        found = np.minimum(positions(own, cells), len(own) - 1)
        return np.where(own[found] == cells, values[found], np.nan)

    def lists_none(self, cells: npt.NDArray[np.int64]) -> bool:
        """Whether this is a list that has none of these cells."""
        own = self.ranking
        return own.rank is not None and bool(np.isnan(own.at(own.rank, cells)).all())

    def remarks(self, name: str, log: Feedback) -> str:
        """What is odd about a list, on whose account items stand below it; empty where nothing is."""
        own = self.ranking
        if own.rank is None:
            return ""
        first = np.flatnonzero(np.diff(own.user, prepend=-1))  # of each user's rows, which stand together
        length = np.diff(first, append=len(own.user))
        gaps = int(np.sum(np.maximum.reduceat(own.rank, first) > length))
        without = int(np.isin(distinct(log.user), own.user[first], invert=True).sum())
        found = [f"{without:,} users with scored rows have no list, so their items stand below it"] if without else []
        found += [f"the lists of {gaps:,} users have gaps in their ranks"] if gaps else []
        return f"model {name!r}: {'; '.join(found)}" if found else ""

    def refusal(self, metric: Metric, candidates: float, *, everywhere: bool, predicted: bool = True) -> str | None:
        """Why the table cannot serve a metric; `everywhere`: on every cell, as imputation needs.

        `predicted` says that its scores are those of the scored rows, which a top-k list has only by chance.
        """
        full = len(self.user) == self.shape[0] * self.shape[1]
        if (everywhere or metric.on == "prediction") and self.score is None:
            return "is a table of ranks, which has no scores."
        if metric.on == "prediction" and not predicted:
            return UNPREDICTED if self.rank is None else f"is a top-{self.depth} list, and {UNPREDICTED}"
        if everywhere and not full:
            return f"has scores of {len(self.user):,} cells, and imputation needs those of every cell."
        return None if metric.on == "prediction" else self.ranking.unranked(metric, candidates)

    def unranked(self, metric: Metric, candidates: float) -> str | None:
        """Why this table cannot serve a metric on rankings."""
        full = len(self.user) == self.shape[0] * self.shape[1]
        if self.rank is None and full:
            return None
        if self.rank is None:
            return (
                f"has scores of {len(self.user):,} of {self.shape[0]:,} × {self.shape[1]:,} cells; rankings need all, "
                "or a rank column."
            )
        whole = len(self.user) == candidates
        if whole or (metric.k is not None and metric.k <= self.depth):
            return None
        return f"is a top-{self.depth} list, which serves only @k with k ≤ {self.depth}."

    def grid(self, name: str) -> Floats:
        """The scores of all cells (U, I)."""
        n_users, n_items = self.shape
        if self.score is None or len(self.user) < n_users * n_items:
            msg = f"model {name!r}: needs scores of all {n_users:,} × {n_items:,} cells, has {len(self.user):,}."
            raise PredictionError(msg)
        if n_users * n_items > MAX_DENSE:
            msg = f"model {name!r}: {n_users:,} × {n_items:,} scores are too many for a table; give an array or ranks."
            raise PredictionError(msg)
        found = np.empty(self.shape)
        found[self.user, self.item] = self.score
        return found


def read_tables(
    name: str, frames: Sequence[Any], log: Feedback, user: str | None = None, item: str | None = None
) -> Table:
    """Two dataframes of one model: scores of the scored pairs, and a list with a rank column."""
    return together(name, [read_table(name, frame, log, user, item) for frame in frames])


def together(name: str, tables: Sequence[Table]) -> Table:
    """One table, or a table of scores with its list."""
    scores, ranks = apart(name, tables)
    return scores if scores is ranks else replace(scores, listed=ranks)


def apart(name: str, tables: Sequence[Any]) -> tuple[Any, Any]:
    """The table that ratings are asked of and the one that rankings are, told apart by ranks; one serves both."""
    if len(tables) == 1:
        return tables[0], tables[0]
    scores, lists = ([t for t in tables if (t.rank is not None) == ranked] for ranked in (False, True))
    if (len(scores), len(lists)) != (1, 1):
        raise PredictionError(
            f"model {name!r}: several tables of one model must be two, the scores of the log's pairs and a list with a "
            f"rank column, got {len(scores)} without and {len(lists)} with ranks; number each user's list 1, 2, 3 …"
        )
    return scores[0], lists[0]


def read_table(name: str, frame: Any, log: Feedback, user: str | None = None, item: str | None = None) -> Table:
    """A dataframe of predictions, its ids as the log's codes."""
    import narwhals as nw

    try:
        table = nw.from_native(frame)
    except TypeError as error:
        msg = (
            f"model {name!r}: {type(frame).__name__} is neither a recommender (predict, scores), a "
            f"{log.n_users} × {log.n_items} array, nor a dataframe."
        )
        raise PredictionError(msg) from error
    columns = table.collect_schema().names()
    ids = [
        _column(name, columns, options if given is None else (given,))
        for given, options in ((user, USER), (item, ITEM))
    ]
    rank = "rank" if "rank" in columns else None
    score = next((c for c in SCORE if c in columns), None) if rank else _column(name, columns, SCORE)
    eager = table.select(*ids, *(c for c in (score, rank) if c is not None))
    eager = eager.collect() if isinstance(eager, nw.LazyFrame) else eager
    codes = [_codes(name, eager[c], v) for c, v in zip(ids, (log.users, log.items), strict=True)]
    found = Table(user=codes[0], item=codes[1], score=None, rank=None, shape=(log.n_users, log.n_items))
    score, rank = (
        None if c is None else finite(f"model {name!r}", c, _floats(name, eager[c]), found, log) for c in (score, rank)
    )
    return checked(name, replace(found, score=score, rank=rank), log)


def _column(name: str, columns: list[str], options: tuple[str, ...]) -> str:
    for option in options:
        if option in columns:
            return option
    msg = f"model {name!r}: the table has no column {options[0]!r}.{did_you_mean(options[0], columns)}"
    raise ColumnError(msg)


def _codes(name: str, series: Any, vocabulary: Vocabulary) -> npt.NDArray[np.int32]:
    values: Array = series.to_numpy()
    if values.dtype.kind in "UOT" and len(values) and not isinstance(values[0], str):
        values = np.array([str(v) for v in values], dtype=object)
    return vocabulary.codes(values.astype(object) if values.dtype.kind in "UT" else values, f"model {name!r}")


def _floats(name: str, series: Any) -> Floats:
    """The numbers of a column, which text may write."""
    import narwhals as nw

    if series.dtype not in (nw.String, nw.Object, nw.Categorical, nw.Enum):
        return series.cast(nw.Float64()).to_numpy()
    fields: list[Any] = series.to_list()
    try:
        return np.array(fields, np.float64)
    except (TypeError, ValueError) as error:
        words = [str(field) for field in fields if not _is_number(field)]
        raise holds_text(f"model {name!r}", series.name, words, len(fields)) from error


def _is_number(field: Any) -> bool:
    try:
        float(field)
    except (TypeError, ValueError):
        return field is None
    return True


def holds_text(what: str, column: str, words: Sequence[str], rows: int) -> PredictionError:
    """The error of a column that should hold numbers."""
    some = listing(list(dict.fromkeys(words))[:3])
    return PredictionError(
        f"{what}: column {column!r} holds text in {len(words):,} of {rows:,} rows, as {some}; write numbers."
    )


def finite(what: str, noun: str, values: Floats, table: Table, log: Feedback) -> Floats:
    """The scores or ranks of a table's pairs, once it is known that all are numbers."""
    if not len(values):
        raise PredictionError(f"{what}: the table is empty; give a {noun} for each (user, item) pair.")
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        user, item = log.users.ids[table.user[bad[0]]], log.items.ids[table.item[bad[0]]]
        raise PredictionError(
            f"{what}: {len(bad):,} of {len(values):,} {noun}s are missing or not finite, first that of user "
            f"{listing([user])} and item {listing([item])}; repair them."
        )
    return values


def checked(name: str, table: Table, log: Feedback) -> Table:
    """The table ordered by cell, once it is known that no pair stands twice and that ranks are ranks."""
    table = _ordered(table)
    own = table.cell
    cells = distinct(own[1:][own[1:] == own[:-1]])
    if len(cells):
        user, item = np.divmod(cells[:3], table.shape[1])
        pairs = list(zip(log.users.ids[user].tolist(), log.items.ids[item].tolist(), strict=True))
        msg = f"model {name!r}: {len(cells):,} pairs stand twice, as {listing(pairs)}; keep one of each."
        raise PredictionError(msg)
    if table.rank is not None:
        _check_ranks(name, table, table.rank)
    return table


def _ordered(table: Table) -> Table:
    own = table.cell
    if bool(np.all(own[1:] >= own[:-1])):
        return table
    order = np.argsort(own, kind="stable")
    values = (None if v is None else v[order] for v in (table.score, table.rank))
    score, rank = values
    return replace(table, user=table.user[order], item=table.item[order], score=score, rank=rank)


def _check_ranks(name: str, table: Table, rank: Floats) -> None:
    odd = bool(np.any((rank < 1) | (rank > LARGEST) | (rank != np.floor(rank))))
    if odd or not _each_once(table.user, rank.astype(np.int64), table.shape[0]):
        msg = f"model {name!r}: ranks must be whole numbers from 1, each once a user; number each list 1, 2, 3 …"
        raise PredictionError(msg)


def _each_once(user: Ints, rank: npt.NDArray[np.int64], n_users: int) -> bool:
    """Whether no user has a rank twice; short lists are ticked off, which is quicker than sorting them."""
    width = int(rank.max()) + 1
    places = user * np.int64(width) + rank
    if n_users * width > MAX_DENSE:
        return len(distinct(places)) == len(places)
    seen = np.zeros(n_users * width, bool)
    seen[places] = True
    return int(np.count_nonzero(seen)) == len(places)
