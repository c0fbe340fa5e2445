"""What models say of a block: recommenders, arrays and functions are asked about its users, tables are looked up."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from openloop.blocks.block import Block, Outcome, Pairs
from openloop.blocks.tables import best_lists, table_scorer
from openloop.core.feedback import Array, Floats
from openloop.core.protocols import FactorModel, asking, check_numbers, on_host, predicted_block
from openloop.core.vocabulary import Int64s, Ints
from openloop.errors import PredictionError
from openloop.kernels import ranking
from openloop.support.wording import counted


@runtime_checkable
class Partial(Protocol):
    """A recommender that lacks some users or items: its predictions are NaN there, and its scores -inf."""

    def knows(self, user: Ints, item: Ints) -> npt.NDArray[np.bool_]:
        """Whether it knows both the user and the item of each pair."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Masked:
    """Scores of -inf, as of a masked history: how many cells, of how many users, and how many that were ranked."""

    cells: int = 0
    users: int = 0
    candidates: int = 0  # cells that nothing excludes
    rows: int = 0  # ranked rows among them
    ranked: int = 0

    def __add__(self, other: Masked) -> Masked:
        names = ("cells", "users", "candidates", "rows", "ranked")
        return Masked(**{name: getattr(self, name) + getattr(other, name) for name in names})

    def check(self, name: str) -> None:
        """Refuse scores that leave out every row that was ranked."""
        if self.ranked and self.rows >= self.ranked:
            raise PredictionError(
                f"model {name!r}: the scores of all {self.ranked:,} rows that are ranked are -inf; mask what it was "
                "trained on, and not the rows that are scored."
            )

    def remark(self, name: str) -> str:
        """What the reader should know; empty where nothing is masked."""
        if not self.cells:
            return ""
        hidden = (
            f"; {self.rows:,} of {self.ranked:,} RANKED ROWS are among them: was the mask made with scored rows in it?"
        )
        return (
            f"model {name!r}: has the score -inf for {counted(self.cells, 'cell')} of {counted(self.users, 'user')}, "
            "masked or not known to it: such items rank below all others"
        ) + (hidden if self.rows else "")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Asked:
    """A recommender, an array (U, I) or a function of ids, which is asked in the codes of the population.

    It need not be made for several threads, so one asks at a time.
    """

    name: str
    model: Any
    n_items: int
    device: Any = None  # where ranks are counted
    turn: Any = field(default_factory=Lock, repr=False)

    def __getstate__(self) -> tuple[str, Any, int, Any]:
        return self.name, self.model, self.n_items, self.device

    def __setstate__(self, state: tuple[str, Any, int, Any]) -> None:
        for name, value in zip(("name", "model", "n_items", "device", "turn"), (*state, Lock()), strict=True):
            object.__setattr__(self, name, value)

    # -- ratings ---------------------------------------------------------------------------------------------

    def predictions(self, block: Block) -> Floats:
        """The predicted rating of each row, NaN where the model has none."""
        user = block.users[block.user]
        if isinstance(self.model, np.ndarray):
            values = np.asarray(self.model[user, block.item], np.float64)
        elif hasattr(self.model, "predict"):
            with self._asking(f"{len(user):,} pairs"):
                values = on_host(self.model.predict(user, block.item)).astype(np.float64)
        else:
            kind = type(self.model).__name__
            raise PredictionError(
                f"model {self.name!r}: {kind} has scores but no predict, which metrics on ratings need."
            )
        return self._finite(values, user, block.item)

    def _finite(self, values: Floats, user: Ints, item: Ints) -> Floats:
        """The predictions, of which those of pairs that the model knows must be numbers."""
        if values.shape != user.shape:
            raise PredictionError(
                f"model {self.name!r}: predict gave shape {values.shape} for {len(user):,} rows; return one value per "
                "pair."
            )
        bad = ~(np.isfinite(values) | np.isneginf(values))
        if bad.any() and isinstance(self.model, Partial):
            bad &= self.model.knows(user, item)
        if bad.any():
            raise PredictionError(
                f"model {self.name!r}: {int(bad.sum()):,} of {len(user):,} predictions are not finite; repair the "
                "model."
            )
        return values

    # -- ranks -----------------------------------------------------------------------------------------------

    def ranks(self, block: Block, rows: Int64s) -> tuple[Outcome, Masked]:
        """How many candidates rank above and tie with each of some rows' items; and what is masked."""
        lists = self._lists(block, rows)
        if isinstance(self.model, FactorModel):
            users, items, bias = self.model.factor_arrays()
            kernels, where = self._kernels(users)
            (wanted, item), _, excluded = lists
            with self._naming():
                above, tied = kernels.factor_ranks(users[block.users], items, bias, wanted, item, *excluded, **where)
            return _counts(above, tied), Masked()
        masks = _Masks(block, rows)
        first = None if self.device is not None or not len(rows) else self._first(block)
        kernels, where = self._kernels(first)
        see = None if getattr(self.model, "lacks", False) else masks.see
        scores_of = self.scorer(block, "tensor" if where else "rank", see)
        (wanted, item), n_items, excluded = lists
        with self._naming():
            above, tied = kernels.ranks(scores_of, wanted, item, n_items, *excluded, **where)
        return _counts(above, tied), masks.found

    def _lists(self, block: Block, rows: Int64s) -> Any:
        wanted = np.searchsorted(block.user[rows], np.arange(block.n_users + 1)).astype(np.int64)
        return (wanted, block.item[rows]), self.n_items, (block.excluded_ptr, block.excluded.item)

    def _first(self, block: Block) -> Any:
        """The scores of one user, which tell where scores are."""
        if isinstance(self.model, np.ndarray) or not hasattr(self.model, "scores"):
            return None
        with self._asking("1 user"):
            return self.model.scores(block.users[:1].astype(np.int64))

    def _kernels(self, scores: Any) -> tuple[Any, dict[str, Any]]:
        """The kernels that count, and their options: a GPU's where it is asked for or holds the scores."""
        where = scores.device if getattr(scores, "is_cuda", False) else self.device
        if where is None:
            return ranking, {}
        from openloop.kernels.cuda import ranking as on_gpu

        return on_gpu, {"device": where}

    # -- lists -----------------------------------------------------------------------------------------------

    def lists(self, block: Block, k: int) -> tuple[Ints, int]:
        """The k best candidates of every user (u, k), -1 where there are fewer; and of how many users the last ties."""
        if isinstance(self.model, FactorModel):
            users, items, bias = self.model.factor_arrays()
            step = ranking.block_users(self.n_items, block.n_users)
            scores_of = ranking.factor_scorer(users[block.users], items, bias, step)
        else:
            scores_of = self.scorer(block)
        return best_lists(self.name, scores_of, block, self.n_items, k)

    # -- scores ----------------------------------------------------------------------------------------------

    def scorer(self, block: Block, on: str = "rank", see: Any = None) -> Any:
        """The scores or predictions of some users of a block, in their own precision: rounding would make ties.

        `on` is "rank" or "prediction"; "tensor": scores wherever they are. `see` is shown each slice and its users.
        """
        if not isinstance(self.model, np.ndarray) and not hasattr(self.model, "scores"):
            kind = type(self.model).__name__
            raise PredictionError(f"model {self.name!r}: {kind} has predict but no scores, which rankings and dr need.")
        ask = {"prediction": partial(predicted_block, self.model), "rank": self._scores, "tensor": self._tensor}[on]

        def scores(users: Int64s) -> Array:
            codes = block.users[users].astype(np.int64)
            if isinstance(self.model, np.ndarray):
                values = self.model[codes]
            else:
                with self._asking(counted(len(codes), "user")):
                    values = ask(codes)
            if tuple(values.shape) != (len(users), self.n_items):
                raise PredictionError(
                    f"model {self.name!r}: scores(users) gave shape {tuple(values.shape)}, want "
                    f"{(len(users), self.n_items)}."
                )
            check_numbers(f"model {self.name!r}", values)
            if see is not None:
                see(users, values)
            return values  # (B, I)

        return scores

    def _scores(self, users: Int64s) -> Array:
        return on_host(self.model.scores(users))

    def _tensor(self, users: Int64s) -> Any:
        return self.model.scores(users)

    @contextmanager
    def _asking(self, about: str) -> Generator[None]:
        """One thread at a time asks the model."""
        with self._naming(), self.turn, asking(f"model {self.name!r}", about):
            yield

    @contextmanager
    def _naming(self) -> Generator[None]:
        """Errors of what does not know the model's name get it."""
        try:
            yield
        except PredictionError as error:
            if f"model {self.name!r}" in str(error):
                raise
            raise PredictionError(f"model {self.name!r}: {error}") from error


class _Masks:
    """Scores of -inf, counted while slices of a block's scores are ranked."""

    def __init__(self, block: Block, rows: Int64s) -> None:
        self._block = block
        self._ptr = np.searchsorted(block.user[rows], np.arange(block.n_users + 1))
        self._item = block.item[rows]
        self._lock = Lock()
        self.found = Masked(ranked=len(rows))

    def see(self, users: Int64s, scores: Any) -> None:
        """Count what is -inf in a slice (B, I)."""
        if bool(scores.min() > -np.inf):  # the rule, and quick wherever the scores are
            return
        masked = on_host(scores == -np.inf)
        cells, block = masked.sum(axis=1), self._block
        excluded = _among(users, masked, block.excluded_ptr, block.excluded.item)
        more = Masked(
            cells=int(cells.sum()), users=int(np.count_nonzero(cells)), candidates=int(cells.sum()) - excluded,
            rows=_among(users, masked, self._ptr, self._item),
        )  # fmt: skip
        with self._lock:
            self.found = self.found + more


def _among(users: Int64s, masked: Array, start: Array, item: Array) -> int:
    """How many of these users' items are masked."""
    lengths = start[users + 1] - start[users]
    owner = np.repeat(np.arange(len(users)), lengths)
    place = np.repeat(start[users] - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
    return int(masked[owner, item[place]].sum())


def _counts(above: Array, tied: Array) -> Outcome:
    return Outcome(above=above.astype(np.int64), tied=tied.astype(np.int64))


# -- every candidate -----------------------------------------------------------------------------------------


def dense_outcome(
    models: Mapping[str, Asked], name: str, block: Block, n_items: int, users: Int64s, on: str
) -> tuple[Outcome, Int64s]:
    """The outcome of every candidate of consecutive users of a block, and its flat place in their slice."""
    candidate = np.ones((len(users), n_items), bool)
    if on == "rank":
        ptr = block.excluded_ptr[users[0] : users[-1] + 2]
        candidate[np.repeat(np.arange(len(users)), np.diff(ptr)), block.excluded.item[ptr[0] : ptr[-1]]] = False
    flat = np.flatnonzero(candidate.ravel())
    table = block.tables.get(name)
    if on == "rank" and table is not None and "rank" in table.numbers:
        return _listed(table, users, n_items, flat), flat
    score = models[name].scorer(block, on) if table is None else table_scorer(table, n_items, np.nan)
    scores = score(users)  # (B, I)
    if np.isnan(scores).any() or (on == "prediction" and np.isinf(scores).any()):
        raise PredictionError(
            f"model {name!r}: its scores of all cells, which dr and a rehearsal need, are not all finite; repair it."
        )
    if on == "prediction":
        return Outcome(prediction=scores.ravel()[flat].astype(np.float64)), flat
    above, tied = np.zeros(scores.shape, np.int64), np.zeros(scores.shape, np.int64)
    for u, row in enumerate(scores):
        ordered = np.sort(row[candidate[u]])
        below_or_tied = np.searchsorted(ordered, row, side="right")
        above[u] = len(ordered) - below_or_tied
        tied[u] = below_or_tied - np.searchsorted(ordered, row, side="left")
    return Outcome(above=above.ravel()[flat], tied=tied.ravel()[flat]), flat


def _listed(table: Pairs, users: Int64s, n_items: int, flat: Int64s) -> Outcome:
    """Ranks of candidates from a list: what it does not hold ranks below it."""
    start, end = np.searchsorted(table.user, [users[0], users[-1] + 1])
    rank, depth = table.numbers["rank"], table.numbers["rank"].max(initial=0)
    above = np.full(len(users) * n_items, depth)
    near = np.arange(start, end)[table.item[start:end] >= 0]
    above[(table.user[near] - users[0]).astype(np.int64) * n_items + table.item[near]] = rank[near] - 1
    chosen = above[flat].astype(np.int64)
    return Outcome(above=chosen, tied=np.ones_like(chosen))
