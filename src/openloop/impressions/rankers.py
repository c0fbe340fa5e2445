"""`Ranking`: what a ranker says about the shown rows; from a table, a function, a recommender or an array.

Without candidates="shown" the candidates of a function or a recommender are all items of the log's vocabulary; a table
brings its lists along. With it, a ranker of any kind orders the items of each request.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from openloop.core.feedback import Array, Floats, Ints
from openloop.core.impressions import Impressions
from openloop.errors import AlignmentError, PredictionError
from openloop.kernels.selecting import best
from openloop.kernels.shown_lists import ranks_in_lists, reordered
from openloop.sources.functions import OfIds
from openloop.impressions.question import ShownQuestion
from openloop.impressions.tables import RankedLists, ranked_lists, read_table, row_probabilities
from openloop.sources.outcomes import refuse_unwrapped
from openloop.sources.recoding import by_id, told

BLOCK_CELLS = 2**22  # scores that are looked at at once

Scorer = Callable[[Array, Array], Array]  # users and items, as the ranker knows them, pair by pair


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ranking:
    """The rank of each shown row, 0 where the ranker does not list it; its lists, where they are known.

    A random ranker has `probability` π_j(a) of each row at every position instead.
    """

    rank: Ints  # (n,)
    lists: RankedLists | None = None
    probability: Floats | None = None  # (n, K)
    notes: tuple[str, ...] = ()


def ranking(name: str, model: Any, log: Impressions, asked: ShownQuestion) -> Ranking:
    """What a ranker says of a log."""
    what = f"model {name!r}"
    if isinstance(model, type):
        raise PredictionError(f"{what}: {model.__name__} is a class; give a fitted model or a table.")
    if isinstance(model, np.ndarray):
        return _reordered_ranks(_row_ranks(what, model, log), log, asked)
    if hasattr(model, "predict") or hasattr(model, "scores"):
        refuse_unwrapped(what, model)
        scores, notes = _by_id(what, model, log)
        return replace(_scored(what, scores, log, asked), notes=notes)
    if callable(model):
        refuse_unwrapped(what, model)
        return _scored(what, _of_function(what, model, log), log, asked)
    rows = read_table(what, model, log, asked)
    if "probability" in rows.numbers:
        if asked.reorders:
            raise PredictionError(f'{what}: probabilities have no order; candidates="shown" needs ranks or scores.')
        return Ranking(rank=np.zeros(len(log), np.int32), probability=row_probabilities(rows, log))
    deep = asked.reorders or "dcg" in asked.measures
    lists = ranked_lists(rows, log.n_items, None if deep else log.depth)
    rank = ranks_in_lists(lists.lists, lists.key, log.request, log.item)
    return _reordered_ranks(Ranking(rank=rank, lists=lists), log, asked)


def _row_ranks(what: str, model: Array, log: Impressions) -> Ranking:
    if model.shape != (len(log),) or model.dtype.kind not in "iu":
        raise AlignmentError(
            f"{what}: an array must hold one whole rank per shown row, in the order of Impressions ({len(log):,},), "
            f"0 where the model does not list the item; got {model.dtype} of shape {model.shape}."
        )
    return Ranking(rank=model.astype(np.int32))


def _reordered_ranks(found: Ranking, log: Impressions, asked: ShownQuestion) -> Ranking:
    """With candidates="shown" the ranks among the shown items; what is not listed comes last, as shown."""
    if not asked.reorders:
        return found
    keys = np.where(found.rank > 0, found.rank, np.inf).astype(np.float64)
    return Ranking(rank=reordered(keys, log.request, log.position))


# -- rankers that score --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Scores:
    """How a ranker is asked: pair by pair, and for all items of some owners of lists."""

    pairs: Scorer  # codes of owners and items
    grid: Callable[[Array], Array]  # owners (B,) → (B, I)
    owners: int
    key: Ints  # (N,) the owner of each request


def _scored(what: str, scores: _Scores, log: Impressions, asked: ShownQuestion) -> Ranking:
    if asked.reorders:
        found = _finite(what, scores.pairs(scores.key[log.request], log.item), (len(log),))
        return Ranking(rank=reordered(-found, log.request, log.position))
    if log.pool is not None and bool(np.any(log.pool != log.n_items)):
        raise PredictionError(
            f"{what}: requests have other candidates than all {log.n_items:,} items, and the log does not say which; "
            'give its lists as a table, or ask for candidates="shown".'
        )
    depth = log.n_items if "dcg" in asked.measures else min(log.depth, log.n_items)
    lists, step = np.empty((scores.owners, depth), np.int32), max(1, BLOCK_CELLS // log.n_items)
    for start in range(0, scores.owners, step):
        owners = np.arange(start, min(start + step, scores.owners))
        block = np.asarray(scores.grid(owners), np.float64)
        if block.shape != (len(owners), log.n_items) or bool(np.isnan(block).any()):
            raise PredictionError(f"{what}: must score every item of {len(owners):,} users; got {block.shape} or NaN.")
        lists[owners] = best(block, depth)[0]
    found = RankedLists(lists=lists, key=scores.key)
    return Ranking(rank=ranks_in_lists(lists, scores.key, log.request, log.item), lists=found)


def _by_id(what: str, model: Any, log: Impressions) -> tuple[_Scores, tuple[str, ...]]:
    """A recommender in the log's codes, and what there is to know about it."""
    if log.users is None or log.user is None:
        raise PredictionError(f"{what}: a recommender ranks for users, and the log names none; give lists of requests.")
    found = by_id(what, model, log.users, log.items)
    return _of_recommender(what, found, len(log.users), log.user), tuple(told(what, found))


def _of_recommender(what: str, model: Any, owners: int, key: Ints) -> _Scores:
    missing = PredictionError(f"{what}: {type(model).__name__} lacks predict or scores, which lists need.")

    def ask(method: str, *given: Array) -> Array:
        if not hasattr(model, method):
            raise missing
        return getattr(model, method)(*given)

    by_pair = "linear" if getattr(model, "linked", False) else "predict"  # where predictions may tie, scores rank
    return _Scores(
        pairs=lambda owner, item: ask(by_pair, owner, item), grid=lambda owners: ask("scores", owners),
        owners=owners, key=key,
    )  # fmt: skip


def _of_function(what: str, function: Any, log: Impressions) -> _Scores:
    """f(users, items) -> scores of ids; where the log names no users, f gets requests."""
    users = log.requests if log.user is None else log.users
    if users is None:
        raise PredictionError(
            f"{what}: the log names neither users nor requests, so a function has nothing to rank for."
        )
    key = np.arange(log.n_requests, dtype=np.int32) if log.user is None else log.user
    asked = OfIds(what=what, function=function, users=users, items=log.items)
    return _Scores(pairs=asked.predict, grid=asked.scores, owners=len(users), key=key)


def _finite(what: str, found: Array, shape: tuple[int, ...]) -> Floats:
    scores = np.asarray(found, np.float64)
    if scores.shape != shape or bool(np.isnan(scores).any()):
        raise PredictionError(
            f"{what}: must give one score per pair, {shape}, and no NaN; got shape {scores.shape} with "
            f"{int(np.isnan(scores).sum()):,} NaN."
        )
    return scores
