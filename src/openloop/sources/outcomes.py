"""Models to outcomes: what a recommender, an array or a table of predictions says about the scored rows."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Feedback, Floats, Ints
from openloop.core.grids import check_shape
from openloop.core.protocols import FactorModel, on_host, predicted_block
from openloop.data.columns import Column
from openloop.errors import InputError, PredictionError, UndefinedError
from openloop.sources.arrays.rows import Outcome
from openloop.sources.functions import OfIds
from openloop.sources.masks import Masks
from openloop.sources.plan import Answers
from openloop.sources.predictions import Predictions, from_frames
from openloop.sources.recoding import by_id
from openloop.sources.rules import ranks_excluded
from openloop.support.frames import is_frame


def answers_of(values: Floats, rating: Array, filled: float) -> Answers | None:
    """What a model says of the scored rows, by its predictions of them, NaN where it has none."""
    known = ~np.isnan(values)
    if not known.any():
        return None
    copied = np.isclose(values[known], rating[known], rtol=1e-6, atol=1e-9)
    low, high = values[known].min(), values[known].max()
    return Answers(low=float(low), high=float(high), copied=float(copied.mean()), filled=filled)


def places(scored: Feedback, exclude: Feedback) -> npt.NDArray[np.int64]:
    """Where `exclude` holds scored cells; both are sorted."""
    ours, theirs = scored.cell, exclude.cell
    return np.searchsorted(theirs, ours[held(theirs, ours)])


def held(ordered: npt.NDArray[np.int64], cells: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which of the cells are among some that are sorted."""
    from openloop.kernels.merging import positions

    return ordered[np.minimum(positions(ordered, cells), len(ordered) - 1)] == cells


@dataclass(frozen=True, kw_only=True, eq=False)
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
            msg = "exclude: its users and items differ from the scored log's; read it with like=log, or split one log."
            raise InputError(msg)
        gone, ptr = places(scored, exclude), exclude.user_ptr
        item = np.delete(exclude.item, gone)
        return cls(ptr=ptr - np.searchsorted(gone, ptr), item=item, n_items=scored.n_items)

    @property
    def candidates(self) -> Floats:
        """|C_u| of each user."""
        return self.n_items - np.diff(self.ptr).astype(np.float64)

    @property
    def user(self) -> npt.NDArray[np.int64]:
        """The user of each cell."""
        return np.repeat(np.arange(len(self.ptr) - 1), np.diff(self.ptr))

    @cached_property
    def cells(self) -> npt.NDArray[np.int64]:
        """Flat positions in the grid."""
        return self.user * self.n_items + self.item


@runtime_checkable
class Partial(Protocol):
    """A recommender that lacks some users or items: its predictions are NaN there, and its scores -inf."""

    def knows(self, user: Ints, item: Ints) -> npt.NDArray[np.bool_]:
        """Whether it knows both the user and the item of each pair."""
        ...


def prepare(name: str, model: Any, log: Feedback, columns: Mapping[str, Column]) -> Any:
    """A model as it will be asked: Predictions, a U × I array, or the recommender; `columns` are its tables'."""
    if isinstance(model, Predictions):
        check_shape(f"model {name!r}", model.shape, log)
        return model
    if isinstance(model, type):
        msg = f"model {name!r}: {model.__name__} is a class; give a fitted model, {model.__name__}().fit(train)."
        raise PredictionError(msg)
    if hasattr(model, "predict") or hasattr(model, "scores"):
        refuse_unwrapped(f"model {name!r}", model)
        return by_id(f"model {name!r}", model, log.users, log.items)
    if isinstance(model, np.ndarray):
        check_shape(f"model {name!r}", model.shape, log)
        return model
    if not (isinstance(model, list | tuple) or is_frame(model)):
        return _array_or_function(f"model {name!r}", model, log)
    frames: Any = model if isinstance(model, list | tuple) and model else [model]
    return from_frames(f"model {name!r}", frames, log, columns)


def refuse_unwrapped(what: str, model: Any) -> None:
    """Refuse a model of a library that numbers users and items in its own way: its positions are not a log's codes."""
    from openloop.learners.adapters.wrapping import family_of

    family = None if hasattr(model, "scores") else family_of(model)
    if family is not None:
        raise PredictionError(
            f"{what}: {type(model).__name__} is a model of {family.name}, which has users and items in an order of its "
            "own; pass ol.wrap(model, users=, items=), with the ids of its rows."
        )


def _array_or_function(what: str, model: Any, log: Feedback) -> Any:
    """A model that is neither recommender, array nor frame: a tensor, a function of ids, or nothing that is known."""
    if hasattr(model, "__array__") or hasattr(model, "detach"):
        scores = on_host(model)
        check_shape(what, scores.shape, log)
        return scores
    refuse_unwrapped(what, model)
    if callable(model):
        return OfIds(what=what, function=model, users=log.users, items=log.items)
    return from_frames(what, [model], log, {})


def predicts(model: Any) -> bool:
    """Whether a model says anything about ratings; some rank only."""
    if isinstance(model, Predictions):
        return model.score is not None
    return isinstance(model, np.ndarray) or hasattr(model, "predict")


def predictions(name: str, model: Any, log: Feedback, *, partly: bool = True, lenient: bool = False) -> Floats | None:
    """The predicted rating of each row, NaN if the model has none; None if predictions are ranks alone.

    Without `partly`, also None if a list with scores and ranks lacks a row, because it was made for rankings. With
    `lenient`, also None if scores are masked, as -inf; otherwise masked scores are an error.
    """
    found = _predictions(name, model, log, partly=partly)
    masked = 0 if found is None else int(np.isneginf(found).sum())
    if masked and not lenient:
        msg = (
            f"model {name!r}: the scores of {masked:,} of {len(log):,} scored rows are -inf, as of a masked history, "
            "and metrics on ratings need a number; give the scores before they are masked, or metrics of rankings."
        )
        raise PredictionError(msg)
    return None if masked else found


def _predictions(name: str, model: Any, log: Feedback, *, partly: bool) -> Floats | None:
    if isinstance(model, Predictions):
        found = None if model.score is None else model.at(model.score, log.cell)
        lacking = found is not None and model.rank is not None and bool(np.isnan(found).any())
        return None if lacking and not partly else found
    if isinstance(model, np.ndarray):
        found = np.asarray(model[log.user, log.item], np.float64)
    elif hasattr(model, "predict"):
        with _naming(name):
            found = on_host(model.predict(log.user, log.item)).astype(np.float64)
    else:
        msg = f"model {name!r}: {type(model).__name__} has scores but no predict, which metrics on ratings need."
        raise PredictionError(msg)
    return _finite(name, found, model, log)


def ranks(
    name: str, model: Any, log: Feedback, exclusion: Exclusion, device: Any = None, masks: Masks | None = None
) -> Outcome:
    """How many candidates rank above and tie with each row's item; counted on `device`, or where the scores are.

    `masks` receives which scores are -inf, unless the model itself marks missing items this way.
    """
    if isinstance(model, Predictions):
        model = model.ranking
        if model.rank is not None:
            return _listed(name, model, log.cell, exclusion)
    wanted, excluded = (log.user_ptr, log.item), (exclusion.ptr, exclusion.item)
    if isinstance(model, FactorModel):
        factors = model.factor_arrays()
        kernels, where = _kernels(factors[0], device)
        above, tied = kernels.factor_ranks(*factors, *wanted, *excluded, **where)
    else:
        scores: Any = model.grid(name) if isinstance(model, Predictions) else model
        told = hasattr(scores, "scores") and device is None and len(log) > 0
        with _naming(name):
            kernels, where = _kernels(scores.scores(log.user[:1].astype(np.int64)) if told else None, device)
        lacks = getattr(model, "lacks", False)
        see = None if masks is None or lacks else partial(masks.see, log=log, excluded=excluded)
        scores_of = _scorer(scores, name, log, "rank" if not where else "tensor", see)
        with _naming(name):
            above, tied = kernels.ranks(scores_of, *wanted, log.n_items, *excluded, **where)
    return Outcome(above=above.astype(np.int64), tied=tied.astype(np.int64))


@contextmanager
def _naming(name: str) -> Generator[None]:
    """Errors of what does not know the model's name get it."""
    try:
        yield
    except PredictionError as error:
        if f"model {name!r}" in str(error):
            raise
        raise PredictionError(f"model {name!r}: {error}") from error


def _kernels(scores: Any, device: Any) -> tuple[Any, dict[str, Any]]:
    """The kernels that count, and their options: a GPU's where it is asked for or holds the scores, or the CPU's."""
    where = scores.device if getattr(scores, "is_cuda", False) else device
    if where is None:
        from openloop.kernels import ranking

        return ranking, {}
    from openloop.kernels.cuda import ranking as on_gpu

    return on_gpu, {"device": where}


def _listed(name: str, table: Predictions, cells: npt.NDArray[np.int64], exclusion: Exclusion) -> Outcome:
    """Ranks of cells from a list: what it does not hold ranks below it."""
    _refuse_excluded(name, table, exclusion)
    found = np.full(len(cells), np.nan) if table.rank is None else table.at(table.rank, cells)
    above = np.where(np.isnan(found), table.depth, found - 1).astype(np.int64)
    return Outcome(above=above, tied=np.ones_like(above))


def _refuse_excluded(name: str, table: Predictions, exclusion: Exclusion) -> None:
    excluded = exclusion.cells
    out = int(held(excluded, table.cell).sum()) if len(excluded) else 0
    if out:
        raise ranks_excluded(f"model {name!r}", out)


def top_lists(name: str, model: Any, log: Feedback, exclusion: Exclusion, k: int) -> tuple[npt.NDArray[np.int32], int]:
    """The k best candidates of every user (U, k), -1 where there are fewer; of equal scores the smaller code leads.

    Beside them the number of users of whom a candidate that was left out ties with the last of the list.
    """
    if isinstance(model, Predictions) and model.ranking.rank is not None:
        return _table_lists(name, model.ranking, exclusion, k), 0
    from openloop.kernels import ranking, selecting

    if isinstance(model, FactorModel):
        step = ranking.block_users(log.n_items, log.n_users)
        scores_of = ranking.factor_scorer(*model.factor_arrays(), step)
    else:
        scores_of = _scorer(model.grid(name) if isinstance(model, Predictions) else model, name, log)
    try:
        return selecting.best_lists(scores_of, (log.n_users, log.n_items), k, exclusion.ptr, exclusion.item)
    except UndefinedError as error:
        raise UndefinedError(f"model {name!r}: {error}") from error


def _table_lists(name: str, table: Predictions, exclusion: Exclusion, k: int) -> npt.NDArray[np.int32]:
    """A table with ranks as it is: a rank that a user's list leaves out is a gap."""
    _refuse_excluded(name, table, exclusion)
    rank = np.asarray(table.rank).astype(np.int64)
    near = rank <= k
    found = np.full((table.shape[0], k), -1, np.int32)
    found[table.user[near], rank[near] - 1] = table.item[near]
    return found


def _scorer(model: Any, name: str, log: Feedback, on: str = "rank", see: Callable[..., None] | None = None) -> Any:
    """The scores or predictions of some users as a block, in their own precision: rounding would make ties.

    `on` is "rank" or "prediction"; "tensor": scores wherever they are. `see` is shown each block and its users.
    """
    if not isinstance(model, np.ndarray) and not hasattr(model, "scores"):
        msg = f"model {name!r}: {type(model).__name__} has predict but no scores, which rankings and dr need."
        raise PredictionError(msg)

    def scores(users: npt.NDArray[np.int64]) -> Array:
        asked = {"prediction": predicted_block, "rank": _scores, "tensor": _tensor}[on]
        with _naming(name):
            block = model[users] if isinstance(model, np.ndarray) else asked(model, users)
        if block.shape != (len(users), log.n_items):
            msg = f"model {name!r}: scores(users) gave shape {tuple(block.shape)}, want {(len(users), log.n_items)}."
            raise PredictionError(msg)
        if see is not None:
            see(users, block)
        return block  # (B, I)

    return scores


def _scores(model: Any, users: npt.NDArray[np.int64]) -> Array:
    return on_host(model.scores(users))


def _tensor(model: Any, users: npt.NDArray[np.int64]) -> Any:
    return model.scores(users)


def _finite(name: str, values: Floats, model: Any, log: Feedback) -> Floats:
    """The predictions, of which those of pairs that the model knows must be numbers."""
    if values.shape != (len(log),):
        msg = f"model {name!r}: predict gave shape {values.shape} for {len(log):,} rows; return one value per pair."
        raise PredictionError(msg)
    bad = ~(np.isfinite(values) | np.isneginf(values))
    if bad.any() and isinstance(model, Partial):
        bad &= model.knows(log.user, log.item)
    if bad.any():
        msg = f"model {name!r}: {int(bad.sum()):,} of {len(log):,} predictions are not finite; repair the model."
        raise PredictionError(msg)
    return values


def dense_outcome(
    name: str, model: Any, log: Feedback, exclusion: Exclusion, users: npt.NDArray[np.int64], on: str
) -> tuple[Outcome, npt.NDArray[np.int64]]:
    """The outcome of every candidate of consecutive users, and its flat position in their block."""
    kept = np.ones((len(users), log.n_items), bool)
    ptr = exclusion.ptr[users[0] : users[-1] + 2]
    kept[np.repeat(np.arange(len(users)), np.diff(ptr)), exclusion.item[ptr[0] : ptr[-1]]] = False
    flat = np.flatnonzero(kept.ravel())
    if on == "rank" and isinstance(model, Predictions) and model.ranking.rank is not None:
        return _listed(name, model.ranking, users[0] * log.n_items + flat, exclusion), flat
    scores = _scorer(model.grid(name) if isinstance(model, Predictions) else model, name, log, on)(users)  # (B, I)
    if np.isnan(scores).any() or (on == "prediction" and np.isinf(scores).any()):
        msg = f"model {name!r}: its scores of all cells, which dr and a rehearsal need, are not all finite; repair it."
        raise PredictionError(msg)
    if on == "prediction":
        return Outcome(prediction=scores.ravel()[flat].astype(np.float64)), flat
    above, tied = np.zeros(scores.shape, np.int64), np.zeros(scores.shape, np.int64)
    for u, row in enumerate(scores):
        ordered = np.sort(row[kept[u]])
        below_or_tied = np.searchsorted(ordered, row, side="right")
        above[u] = len(ordered) - below_or_tied
        tied[u] = below_or_tied - np.searchsorted(ordered, row, side="left")
    return Outcome(above=above.ravel()[flat], tied=tied.ravel()[flat]), flat
