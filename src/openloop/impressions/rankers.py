"""`Ranking`: what a ranker says about the rows of a block; from a table, a function, a recommender, or ranks of rows.

Without candidates="shown" the candidates of a function or a recommender are all items of the log's vocabulary; a table
brings its lists along. With it, a ranker of any kind orders the items of each request.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from openloop.blocks.store import Budget
from openloop.core.feedback import Array, Floats, Ints
from openloop.core.impressions import Impressions
from openloop.errors import AlignmentError, PredictionError
from openloop.impressions.logs import DealtLog, ShownBlock
from openloop.impressions.question import ShownQuestion
from openloop.impressions.tables import (
    RankedLists,
    RankerTable,
    TableFacts,
    deal_ranker,
    ranked_lists,
    row_probabilities,
)
from openloop.kernels.selecting import best
from openloop.kernels.shown_lists import ranks_in_lists, reordered
from openloop.moments.inputs import refuse_unwrapped
from openloop.sources.functions import OfIds
from openloop.sources.recoding import by_id, told

CELLS = 2**22  # scores that are looked at at once


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ranking:
    """The rank of each shown row, 0 where the ranker does not list it; its lists, where they are known.

    A random ranker has `probability` π_j(a) of each row at every position instead.
    """

    rank: Ints  # (n,)
    lists: RankedLists | None = None
    probability: Floats | None = None  # (n, K)
    facts: TableFacts | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ranker:
    """A model as it is asked about blocks, and what there is to know about it."""

    ranking: Callable[[ShownBlock], Ranking]
    is_random: bool = False  # it has probabilities in the place of ranks
    has_lists: bool = False  # it says more than the ranks of shown rows
    table: RankerTable | None = None
    notes: tuple[str, ...] = ()


def is_row_ranks(model: Any) -> bool:
    """Whether a model is ranks of the log's rows: an array, or the name of a column."""
    return isinstance(model, np.ndarray | str)


def row_ranks(name: str, model: Any, log: Any) -> Any:
    """The ranks of rows that a model is: an array beside Impressions, a column beside a log that is scanned."""
    what = f"model {name!r}"
    if not isinstance(log, Impressions):
        if isinstance(model, str):
            return model
        raise PredictionError(f"{what}: the rows of a scanned log have no order; name its column of ranks.")
    if isinstance(model, str):
        raise PredictionError(f"{what}: {model!r} names a column, and Impressions have none; give an array of ranks.")
    if model.shape != (len(log),) or model.dtype.kind not in "iu" or int(model.min()) < 0:
        raise AlignmentError(
            f"{what}: an array must hold one whole rank per shown row, in the order of Impressions ({len(log):,},), "
            f"0 where the model does not list the item; got {model.dtype} of shape {model.shape}."
        )
    return model.astype(np.int32)


def ranker(name: str, model: Any, log: DealtLog, question: ShownQuestion, budget: Budget) -> Ranker:
    """A model as it is asked about the blocks of a log."""
    what, reorders = f"model {name!r}", question.reorders
    deep = reorders or "dcg" in question.measures
    if isinstance(model, type):
        raise PredictionError(f"{what}: {model.__name__} is a class; give a fitted model or a table.")
    if name in log.ranks:
        return Ranker(ranking=partial(_of_rows, log.ranks.index(name), reorders=reorders))
    if hasattr(model, "predict") or hasattr(model, "scores") or callable(model):
        refuse_unwrapped(what, model)
        scores, notes = _scores(what, model, log)
        ask = _ordered if reorders else partial(_best, deep=deep)
        return Ranker(ranking=partial(ask, scores), has_lists=not reorders, notes=notes)
    table = deal_ranker(what, model, log, question, budget)
    if "probability" not in table.numbers:
        return Ranker(
            ranking=partial(_listed, table, log, deep=deep, reorders=reorders), has_lists=not reorders, table=table
        )
    if reorders:
        raise PredictionError(f'{what}: probabilities have no order; candidates="shown" needs ranks or scores.')
    return Ranker(ranking=partial(_random, table, log), is_random=True, table=table)


def _of_rows(place: int, block: ShownBlock, *, reorders: bool) -> Ranking:
    """Ranks of the log's rows."""
    assert block.log.arms is not None  # noqa: S101, ranks of rows are dealt with them
    rank = block.log.arms[:, place]
    return Ranking(rank=_among_shown(rank, block.log) if reorders else rank)


def _among_shown(rank: Ints, log: Impressions) -> Ints:
    """With candidates="shown" the ranks among the shown items; what is not listed comes last, as shown."""
    return reordered(np.where(rank > 0, rank, np.inf).astype(np.float64), log.request, log.position)


def _listed(table: RankerTable, dealt: DealtLog, block: ShownBlock, *, deep: bool, reorders: bool) -> Ranking:
    """Lists in a table."""
    rows, log = table.rows(dealt, block), block.log
    lists = ranked_lists(rows, None if deep else log.depth)
    rank = ranks_in_lists(lists.lists, lists.key, log.request, log.item)
    if reorders:
        return Ranking(rank=_among_shown(rank, log), facts=rows.facts)
    return Ranking(rank=rank, lists=lists, facts=rows.facts)


def _random(table: RankerTable, dealt: DealtLog, block: ShownBlock) -> Ranking:
    """Probabilities in a table."""
    rows = table.rows(dealt, block)
    return Ranking(
        rank=np.zeros(len(block.log), np.int32), probability=row_probabilities(rows, block), facts=rows.facts
    )


# -- rankers that score --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scores:
    """How a ranker of users, or of requests, is asked in the codes of a block."""

    what: str
    pairs: Callable[[ShownBlock, Ints, Ints], Array]  # owners and items, pair by pair
    grid: Callable[[ShownBlock, Ints], Array]  # owners (B,) → (B, I)


def _scores(what: str, model: Any, log: DealtLog) -> tuple[Scores, tuple[str, ...]]:
    """A recommender in codes of the population, or a function f(users, items) of ids."""
    if not (hasattr(model, "predict") or hasattr(model, "scores")):
        return _of_function(what, model, log), ()
    if log.by != "user":
        raise PredictionError(f"{what}: a recommender ranks for users, and the log names none; give lists of requests.")
    known = by_id(what, model, log.population.users, log.population.items)
    by_pair = "linear" if getattr(known, "linked", False) else "predict"  # where predictions may tie, scores rank

    def ask(method: str, *codes: Array) -> Array:
        if not hasattr(known, method):
            raise PredictionError(f"{what}: {type(model).__name__} lacks predict or scores, which lists need.")
        return getattr(known, method)(*codes)

    scores = Scores(
        what=what, pairs=lambda block, owner, item: ask(by_pair, block.clusters[owner], item),
        grid=lambda block, owners: ask("scores", block.clusters[owners]),
    )  # fmt: skip
    return scores, tuple(told(what, known))


def _of_function(what: str, function: Any, log: DealtLog) -> Scores:
    """f(users, items) -> scores of ids; where the log names no users, f gets requests."""
    if log.by not in ("user", "request"):
        raise PredictionError(
            f"{what}: the log names neither users nor requests, so a function has nothing to rank for."
        )

    def of_ids(block: ShownBlock) -> OfIds:
        return OfIds(what=what, function=function, users=block.names(log.by), items=block.log.items)

    return Scores(
        what=what, pairs=lambda block, owner, item: of_ids(block).predict(owner, item),
        grid=lambda block, owners: of_ids(block).scores(owners),
    )  # fmt: skip


def _ordered(scores: Scores, block: ShownBlock) -> Ranking:
    """The shown items by falling score."""
    log = block.log
    score = np.asarray(scores.pairs(block, log.cluster[log.request], log.item), np.float64)
    if score.shape != (len(log),) or bool(np.isnan(score).any()):
        raise PredictionError(
            f"{scores.what}: must give one score per pair, {(len(log),)}, and no NaN; got shape {score.shape} with "
            f"{int(np.isnan(score).sum()):,} NaN."
        )
    return Ranking(rank=reordered(-score, log.request, log.position))


def _best(scores: Scores, block: ShownBlock, *, deep: bool) -> Ranking:
    """The items of largest scores as lists."""
    log = block.log
    if log.pool is not None and bool(np.any(log.pool != log.n_items)):
        raise PredictionError(
            f"{scores.what}: requests have other candidates than all {log.n_items:,} items, and the log does not say "
            'which; give its lists as a table, or ask for candidates="shown".'
        )
    depth, step = log.n_items if deep else min(log.depth, log.n_items), max(1, CELLS // log.n_items)
    lists = np.empty((len(block.clusters), depth), np.int32)
    for start in range(0, len(lists), step):
        owners = np.arange(start, min(start + step, len(lists)), dtype=np.int32)
        grid = np.asarray(scores.grid(block, owners), np.float64)
        if grid.shape != (len(owners), log.n_items) or bool(np.isnan(grid).any()):
            raise PredictionError(
                f"{scores.what}: must score every item of {len(owners):,} users; got {grid.shape} or NaN."
            )
        lists[owners] = best(grid, depth)[0]
    rank = ranks_in_lists(lists, log.cluster, log.request, log.item)
    return Ranking(rank=rank, lists=RankedLists(lists=lists, key=log.cluster))
