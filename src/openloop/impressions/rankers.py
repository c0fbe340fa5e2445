"""`Ranking`: what a ranker says about the rows of a block; from a table, a function, a recommender, or ranks of rows.

Without candidates="shown" the candidates of a function or a recommender are all items of the log's vocabulary; a table
brings its lists along. With it, a ranker of any kind orders the items of each request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from openloop.blocks.store import Budget
from openloop.core.feedback import Array, Floats, Ints
from openloop.core.impressions import Impressions
from openloop.core.protocols import asking
from openloop.data.columns import choose
from openloop.data.scanning import ShownLog
from openloop.errors import AlignmentError, PredictionError
from openloop.impressions.logs import ROW, DealtLog, ShownBlock, impressions_table
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
from openloop.moments.functions import OfIds
from openloop.moments.inputs import refuse_unwrapped
from openloop.moments.recoding import by_id, told
from openloop.support.wording import counted

CELLS = 2**22  # scores that are looked at at once

Scorer = Callable[["ShownBlock"], tuple[Any, Array]]  # who is asked about a block, and in which codes of its clusters


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


def with_ranks(log: Impressions | ShownLog, ranks: Mapping[str, Any]) -> ShownLog:
    """The log with the models that are ranks of its rows as arms: arrays beside Impressions, else columns."""
    for name, model in ranks.items():
        _check_row_ranks(f"model {name!r}", model, log)
    if isinstance(log, Impressions):
        return impressions_table(log, list(ranks.values()))
    named = choose(log.table, ranks, required=())
    arms = {f"arms {j}": named[name] for j, name in enumerate(ranks, start=1)}
    return replace(log, columns={**log.columns, **arms})


def _check_row_ranks(what: str, model: Any, log: Any) -> None:
    if isinstance(model, str) == isinstance(log, Impressions):
        raise PredictionError(
            f"{what}: ranks of rows are a column of a log that is scanned, and an array beside Impressions."
        )
    if not isinstance(model, str) and (model.shape != (len(log),) or model.dtype.kind not in "iu"):
        raise AlignmentError(
            f"{what}: an array must hold one whole rank per shown row, in the order of Impressions ({len(log):,},), "
            f"0 where the model does not list the item; got {model.dtype} of shape {model.shape}."
        )


def ranker(
    name: str, model: Any, log: DealtLog, question: ShownQuestion, budget: Budget, rows: Iterable[str]
) -> Ranker:
    """A model as it is asked about the blocks of a log; `rows` names those that are ranks of its rows."""
    what, reorders = f"model {name!r}", question.reorders
    deep = reorders or "dcg" in question.measures
    if isinstance(model, type):
        raise PredictionError(f"{what}: {model.__name__} is a class; give a fitted model or a table.")
    if is_row_ranks(model):
        return Ranker(ranking=partial(_of_rows, list(rows).index(name), reorders=reorders))
    if hasattr(model, "predict") or hasattr(model, "scores") or callable(model):
        refuse_unwrapped(what, model)
        scorer, notes = _scorer(what, model, log, reorders=reorders)
        ask = partial(_ordered, what, scorer) if reorders else partial(_best, what, scorer, deep=deep)
        return Ranker(ranking=ask, has_lists=not reorders, notes=notes)
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


def _scorer(what: str, model: Any, log: DealtLog, *, reorders: bool) -> tuple[Scorer, tuple[str, ...]]:
    """A recommender in codes of the population; or a function f(users, items) of ids, which may get requests."""
    if not (hasattr(model, "predict") or hasattr(model, "scores")):
        if log.by == ROW:
            raise PredictionError(
                f"{what}: the log names neither users nor requests, so a function has nothing to rank for."
            )
        return partial(_of_ids, what, model, log.by), ()
    if log.by != "user":
        raise PredictionError(f"{what}: a recommender ranks for users, and the log names none; give lists of requests.")
    model_by_id = by_id(what, model, log.population.users, log.population.items)
    if not hasattr(model_by_id, "predict" if reorders else "scores"):
        raise PredictionError(f"{what}: {type(model).__name__} lacks predict or scores, which lists need.")
    return lambda block: (model_by_id, block.clusters), tuple(told(what, model_by_id))


def _of_ids(what: str, function: Callable[..., Any], side: str, block: ShownBlock) -> tuple[Any, Ints]:
    scores = OfIds(what=what, function=function, users=block.names(side), items=block.log.items)
    return scores, np.arange(len(block.clusters), dtype=np.int32)


def _ordered(what: str, scorer: Scorer, block: ShownBlock) -> Ranking:
    """The shown items by falling score; where predictions may tie, scores rank."""
    log, (model, owners) = block.log, scorer(block)
    predict = model.linear if getattr(model, "linked", False) else model.predict
    with asking(what, f"{len(log):,} pairs"):
        score = np.asarray(predict(owners[log.cluster[log.request]], log.item), np.float64)
    if score.shape != (len(log),) or bool(np.isnan(score).any()):
        raise PredictionError(
            f"{what}: must give one score per pair, {(len(log),)}, and no NaN; got shape {score.shape} with "
            f"{int(np.isnan(score).sum()):,} NaN."
        )
    return Ranking(rank=reordered(-score, log.request, log.position))


def _best(what: str, scorer: Scorer, block: ShownBlock, *, deep: bool) -> Ranking:
    """The items of largest scores as lists."""
    log, (model, owners) = block.log, scorer(block)
    if log.pool is not None and bool(np.any(log.pool != log.n_items)):
        raise PredictionError(
            f"{what}: requests have other candidates than all {log.n_items:,} items, and the log does not say "
            'which; give its lists as a table, or ask for candidates="shown".'
        )
    depth, step = log.n_items if deep else min(log.depth, log.n_items), max(1, CELLS // log.n_items)
    lists = np.empty((len(owners), depth), np.int32)
    for start in range(0, len(lists), step):
        few = owners[start : start + step]
        with asking(what, counted(len(few), "user")):
            scores = np.asarray(model.scores(few), np.float64)
        if scores.shape != (len(few), log.n_items) or bool(np.isnan(scores).any()):
            raise PredictionError(f"{what}: must score every item of {len(few):,} users; got {scores.shape} or NaN.")
        lists[start : start + step] = best(scores, depth)[0]
    rank = ranks_in_lists(lists, log.cluster, log.request, log.item)
    return Ranking(rank=rank, lists=RankedLists(lists=lists, key=log.cluster))
