"""Models to outcomes: what a recommender, an array or a table of predictions says about the scored rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Feedback, Floats, Vocabulary
from openloop.core.protocols import FactorModel
from openloop.errors import ColumnError, InputError, PredictionError, did_you_mean, listing
from openloop.estimators.array_rows import Outcome

MAX_DENSE = 2**27  # cells of a grid made from a table of scores: 1 GiB


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Exclusion:
    """The cells that leave the ranking, by user: items of user u are item[ptr[u] : ptr[u + 1]]."""

    ptr: npt.NDArray[np.int64]
    item: npt.NDArray[np.int32]
    n_items: int

    @classmethod
    def of(cls, exclude: Feedback | None, scored: Feedback) -> Exclusion:
        """The cells of `exclude`, less those that are scored: the item being ranked always is a candidate."""
        if exclude is None:
            return cls(ptr=np.zeros(scored.n_users + 1, np.int64), item=np.empty(0, np.int32), n_items=scored.n_items)
        if exclude.users != scored.users or exclude.items != scored.items:
            msg = "exclude: its users and items are not the scored log's; read it with like=log, or split one log."
            raise InputError(msg)
        kept = ~np.isin(exclude.cell, scored.cell, assume_unique=True)
        counts = np.bincount(exclude.user[kept], minlength=scored.n_users)
        return cls(ptr=np.concatenate([[0], np.cumsum(counts)]), item=exclude.item[kept], n_items=scored.n_items)

    @property
    def candidates(self) -> Floats:
        """|C_u| of each user."""
        return self.n_items - np.diff(self.ptr).astype(np.float64)

    @property
    def cells(self) -> npt.NDArray[np.int64]:
        """Flat positions in the grid."""
        return np.repeat(np.arange(len(self.ptr) - 1), np.diff(self.ptr)) * self.n_items + self.item


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """Predictions given as a table: codes of user and item, and a score or a rank."""

    user: npt.NDArray[np.int32]
    item: npt.NDArray[np.int32]
    value: Floats
    kind: str  # "score" or "rank"
    shape: tuple[int, int]

    @property
    def depth(self) -> int:
        """The deepest rank of a top-k list."""
        return int(self.value.max())

    def at(self, cells: npt.NDArray[np.int64]) -> Floats:
        """The value of each cell, NaN where the table has none."""
        own = self.user.astype(np.int64) * self.shape[1] + self.item
        order = np.argsort(own, kind="stable")
        place = np.minimum(np.searchsorted(own, cells, sorter=order), len(own) - 1)
        found = order[place]
        return np.where(own[found] == cells, self.value[found], np.nan)


def prepare(name: str, model: Any, log: Feedback) -> Any:
    """A model as it will be asked: a Table, a U × I array, or the recommender itself."""
    if hasattr(model, "predict") or hasattr(model, "scores"):
        return model
    if isinstance(model, np.ndarray):
        if model.shape != (log.n_users, log.n_items):
            msg = f"model {name!r}: the array has shape {model.shape}, the grid {(log.n_users, log.n_items)}."
            raise PredictionError(msg)
        return model
    return _table(name, model, log)


def predictions(name: str, model: Any, log: Feedback) -> Floats:
    """The predicted rating of each row; NaN where a table has none."""
    if isinstance(model, Table):
        if model.kind == "rank":
            msg = f"model {name!r}: a table of ranks has no predicted ratings; give user, item, score."
            raise PredictionError(msg)
        return model.at(log.cell)
    if isinstance(model, np.ndarray):
        found = np.asarray(model[log.user, log.item], np.float64)
    elif hasattr(model, "predict"):
        found = np.asarray(model.predict(log.user, log.item), np.float64)
    else:
        msg = f"model {name!r}: {type(model).__name__} has scores but no predict, which metrics on ratings need."
        raise PredictionError(msg)
    return _finite(name, found, len(log))


def ranks(name: str, model: Any, log: Feedback, exclusion: Exclusion, depth: int | None) -> Outcome:
    """How many candidates stand above and tie with each row's item; `depth` is the largest k asked for."""
    if isinstance(model, Table) and model.kind == "rank":
        return _listed(name, model, log, exclusion, depth)
    from openloop.kernels import ranking

    wanted, excluded = (log.user_ptr, log.item), (exclusion.ptr, exclusion.item)
    if isinstance(model, FactorModel):
        above, tied = ranking.factor_ranks(*model.factor_arrays(), *wanted, *excluded)
    else:
        scores = _dense(name, model) if isinstance(model, Table) else model
        above, tied = ranking.ranks(_scorer(scores, name, log), *wanted, log.n_items, *excluded)
    return Outcome(above=above.astype(np.int64), tied=tied.astype(np.int64))


def _listed(name: str, table: Table, log: Feedback, exclusion: Exclusion, depth: int | None) -> Outcome:
    """Ranks from a top-k list: what it does not list stands below it."""
    if depth is None or depth > table.depth:
        asked = "the whole ranking" if depth is None else f"rank {depth}"
        msg = (
            f"model {name!r}: a top-{table.depth} list cannot serve a metric that needs {asked}; use @k with "
            f"k ≤ {table.depth}, or give scores of all items."
        )
        raise PredictionError(msg)
    own = table.user.astype(np.int64) * table.shape[1] + table.item
    out = int(np.isin(own, exclusion.cells).sum())
    if out:
        msg = f"model {name!r}: its list ranks {out:,} excluded cells; make it without them, or pass exclude=None."
        raise PredictionError(msg)
    rank = table.at(log.cell)
    above = np.where(np.isnan(rank), table.depth, rank - 1).astype(np.int64)
    return Outcome(above=above, tied=np.ones_like(above))


def _scorer(model: Any, name: str, log: Feedback) -> Any:
    """The scores of some users as a block, in their own precision: rounding would make ties."""
    if not isinstance(model, np.ndarray) and not hasattr(model, "scores"):
        msg = f"model {name!r}: {type(model).__name__} has predict but no scores, which rankings and dr need."
        raise PredictionError(msg)

    def scores(users: npt.NDArray[np.int64]) -> Array:
        block = model[users] if isinstance(model, np.ndarray) else np.asarray(model.scores(users))
        if block.shape != (len(users), log.n_items):
            msg = f"model {name!r}: scores(users) gave shape {block.shape}, want {(len(users), log.n_items)}."
            raise PredictionError(msg)
        return block  # (B, I)

    return scores


def _finite(name: str, values: Floats, rows: int) -> Floats:
    if values.shape != (rows,):
        msg = f"model {name!r}: predict gave shape {values.shape} for {rows:,} rows; return one value a pair."
        raise PredictionError(msg)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        msg = f"model {name!r}: {len(bad):,} of {rows:,} predictions are not finite; repair the model."
        raise PredictionError(msg)
    return values


def _dense(name: str, table: Table) -> Floats:
    n_users, n_items = table.shape
    if len(table.user) < n_users * n_items:
        msg = (
            f"model {name!r}: ranking metrics need scores of all {n_users:,} × {n_items:,} cells or a rank column; "
            f"the table has {len(table.user):,} scores."
        )
        raise PredictionError(msg)
    if n_users * n_items > MAX_DENSE:
        msg = f"model {name!r}: {n_users:,} × {n_items:,} scores are too many for a table; give an array or ranks."
        raise PredictionError(msg)
    grid = np.empty(table.shape)
    grid[table.user, table.item] = table.value
    return grid


def _table(name: str, frame: Any, log: Feedback) -> Table:
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
    user, item = (_column(name, columns, options) for options in (USER, ITEM))
    kind = "rank" if "rank" in columns else _column(name, columns, ("score", "prediction"))
    eager = table.select(user, item, kind)
    eager = eager.collect() if isinstance(eager, nw.LazyFrame) else eager
    codes = [_codes(name, eager[c], v) for c, v in ((user, log.users), (item, log.items))]
    value = eager[kind].cast(nw.Float64()).to_numpy()
    return _checked(name, Table(
        user=codes[0], item=codes[1], value=value, kind="rank" if kind == "rank" else "score",
        shape=(log.n_users, log.n_items),
    ))  # fmt: skip


USER = ("user", "user_id", "userId", "uid")
ITEM = ("item", "item_id", "itemId", "iid", "mid", "movieId")


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


def _checked(name: str, table: Table) -> Table:
    if not len(table.value):
        msg = f"model {name!r}: the table is empty; give a {table.kind} for each (user, item) pair."
        raise PredictionError(msg)
    bad = np.flatnonzero(~np.isfinite(table.value))
    if len(bad):
        msg = f"model {name!r}: {len(bad):,} {table.kind}s are missing or not finite, first in row {bad[0]:,}."
        raise PredictionError(msg)
    own = table.user.astype(np.int64) * table.shape[1] + table.item
    distinct, count = np.unique(own, return_counts=True)
    if len(distinct) < len(own):
        cells = distinct[count > 1]
        pairs = [divmod(int(c), table.shape[1]) for c in cells[:3]]
        msg = f"model {name!r}: {len(cells):,} pairs stand twice, as codes {listing(pairs)}; keep one of each."
        raise PredictionError(msg)
    if table.kind == "rank":
        _check_ranks(name, table)
    return table


def _check_ranks(name: str, table: Table) -> None:
    rank = table.value
    places = table.user.astype(np.int64) * (table.shape[1] + 1) + rank.astype(np.int64)
    if np.any(rank < 1) or np.any(rank != np.floor(rank)) or len(np.unique(places)) < len(rank):
        msg = f"model {name!r}: ranks must be whole numbers from 1, each once a user; number each list 1, 2, 3 …"
        raise PredictionError(msg)


def dense_outcome(
    name: str, model: Any, log: Feedback, exclusion: Exclusion, start: int, stop: int, on: str
) -> tuple[Outcome, npt.NDArray[np.int64]]:
    """The outcome of every candidate of users start … stop, and its flat position in their block."""
    if isinstance(model, Table):
        model = _dense(name, model)
    scores = _scorer(model, name, log)(np.arange(start, stop))  # (B, I)
    if np.isnan(scores).any() or (on == "prediction" and np.isinf(scores).any()):
        msg = f"model {name!r}: its scores of all cells, which dr needs, are not all finite; repair the model."
        raise PredictionError(msg)
    kept = np.ones(scores.shape, bool)
    a, b = exclusion.ptr[start], exclusion.ptr[stop]
    kept[np.repeat(np.arange(stop - start), np.diff(exclusion.ptr[start : stop + 1])), exclusion.item[a:b]] = False
    flat = np.flatnonzero(kept.ravel())
    if on == "prediction":
        return Outcome(prediction=scores.ravel()[flat].astype(np.float64)), flat
    above, tied = np.zeros(scores.shape, np.int64), np.zeros(scores.shape, np.int64)
    for u, row in enumerate(scores):
        ordered = np.sort(row[kept[u]])
        below_or_tied = np.searchsorted(ordered, row, side="right")
        above[u] = len(ordered) - below_or_tied
        tied[u] = below_or_tied - np.searchsorted(ordered, row, side="left")
    return Outcome(above=above.ravel()[flat], tied=tied.ravel()[flat]), flat
