"""Rare items left out of the population: the log, the models and the propensities on the items that are kept.

The estimand changes with it, so it is named. What was fitted stays as it is: p of a kept cell does not depend on the
cells that are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from openloop.audits.question import AuditQuestion
from openloop.core.covariates import Covariates
from openloop.core.feedback import Array, Feedback, Floats, Vocabulary, check_feedback
from openloop.core.propensities import Propensities, row_propensities
from openloop.core.protocols import FactorModel, Placeable, on_host, predicted_block
from openloop.errors import InputError, PredictionError, UndefinedError, listing
from openloop.sources.outcomes import Partial, prepare
from openloop.sources.predictions import Predictions

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Narrowed:
    """What is audited on the items that are kept; `population` names them."""

    models: dict[str, Any]
    log: Feedback
    propensities: Any
    asked: AuditQuestion
    population: str


def narrowed(models: Mapping[str, Any], log: Any, propensities: Any, asked: AuditQuestion) -> Narrowed:
    """Everything without the items that have fewer rows in the whole log than `asked.min_item_rows`."""
    least = asked.min_item_rows
    check_feedback("audit with min_item_rows=", log)
    kept = log.rows_of_items >= least
    if not kept[log.item].any():
        raise InputError(
            f"audit: min_item_rows={least} leaves no scored row: the item with most rows has "
            f"{log.rows_of_items.max():,}; lower it."
        )
    rows = kept[log.item]
    ready = {name: prepare(name, model, log, asked.columns) for name, model in models.items()}
    candidates = np.full(log.n_users, log.n_items)
    if asked.exclude is not None:
        check_feedback("exclude", asked.exclude)
        candidates -= np.bincount(asked.exclude.user, minlength=log.n_users)
    return Narrowed(
        models={name: _model(name, model, kept, candidates) for name, model in ready.items()},
        log=_feedback(log, kept),
        propensities=_propensities(propensities, log, kept),
        asked=replace(
            asked, min_item_rows=0, imputation=_imputation(asked.imputation, kept),
            exclude=None if asked.exclude is None else _feedback(asked.exclude, kept),
            open_loop=None if asked.open_loop is None else _feedback(asked.open_loop, kept),
            groups={name: np.asarray(labels)[rows] for name, labels in asked.groups.items()},
            item_features=_features(asked.item_features, log, kept),
        ),
        population=f"among the {int(kept.sum()):,} items with at least {least:,} rows",
    )  # fmt: skip


def _feedback(log: Feedback, kept: Mask) -> Feedback:
    """The rows of the kept items, in their codes; both parts of one log stay parts of it."""
    part = log.take(kept[log.item])
    return replace(
        part, item=_codes(kept)[part.item], items=Vocabulary(log.items.ids[kept]), item_rows=log.rows_of_items[kept],
        origin=log.origin or log.fingerprint,
    )  # fmt: skip


def _codes(kept: Mask) -> npt.NDArray[np.int32]:
    """The new code of each item."""
    return (np.cumsum(kept) - 1).astype(np.int32)


def _features(given: Any, log: Feedback, kept: Mask) -> Floats | None:
    """The covariates of the kept items."""
    found = Covariates.of(given, log.items, "item")
    return None if found is None else found.values[kept]


# -- propensities --------------------------------------------------------------------------------------------


def _propensities(given: Any, log: Feedback, kept: Mask) -> Any:
    """p of the kept rows, or of the kept cells."""
    if given is None:
        return None
    if isinstance(given, np.ndarray) and given.shape == (log.n_users, log.n_items):
        return cast("Floats", given)[:, kept]
    found, rows = row_propensities("audit", given, log), kept[log.item]
    if found.means is not None:
        raise UndefinedError(
            f"audit: the weights are balanced to the means of {listing(found.means.names)} over all items, and "
            "min_item_rows= leaves items out; audit by the model inside, inner_, or without min_item_rows=."
        )
    # A balanced p above 1 is one that cannot miss; the shares that it was balanced to are those of all items.
    return replace(
        found, values=np.minimum(found.values[rows], 1.0), base=None, fingerprint=_feedback(log, kept).fingerprint,
        sample=None if found.sample is None else _sample(found, kept),
    )  # fmt: skip


def _sample(found: Propensities, kept: Mask) -> Any:
    """So many of the ratings drawn at random are of kept items."""
    sample = found.sample
    return None if sample is None else replace(
        sample, size=max(1, round(sample.size * kept.mean())), user=None, level=None
    )  # fmt: skip


# -- models --------------------------------------------------------------------------------------------------


def _model(name: str, model: Any, kept: Mask, candidates: Array) -> Any:
    if isinstance(model, Predictions):
        found = _table(model, kept, candidates)
        if not len(found.ranking.user):
            raise PredictionError(
                f"model {name!r}: some user's list has rare items only, so min_item_rows= leaves it empty; give longer "
                "lists, or the scores of all items."
            )
        return found
    return cast("Array", model)[:, kept] if isinstance(model, np.ndarray) else FewerItems(model, kept)


class FewerItems:
    """A recommender that is asked about the kept items only; it can do what the one inside can."""

    def __init__(self, model: Any, kept: Mask) -> None:
        code = np.flatnonzero(kept).astype(np.int32)
        if hasattr(model, "predict"):
            self.predict = lambda user, item: model.predict(user, code[np.asarray(item)])  # pyright: ignore[reportUnknownLambdaType]
        if hasattr(model, "scores"):
            self.scores = lambda users: on_host(model.scores(users))[:, kept]  # pyright: ignore[reportUnknownLambdaType]
            self.predictions = lambda users: predicted_block(model, users)[:, kept]  # pyright: ignore[reportUnknownLambdaType]
        self.told = model.notes_ if isinstance(model, Placeable) else ()
        self.lacks = getattr(model, "lacks", False)
        if isinstance(model, Partial):
            self.knows = lambda user, item: model.knows(user, code[np.asarray(item)])  # pyright: ignore[reportUnknownLambdaType]
        if isinstance(model, FactorModel):
            self.factor_arrays = lambda: _factors(model, kept)


def _factors(model: FactorModel, kept: Mask) -> tuple[Array, Array, Array | None]:
    users, items, bias = model.factor_arrays()
    return users, items[kept], None if bias is None else bias[kept]


def _table(table: Predictions, kept: Mask, candidates: Array) -> Predictions:
    """A table without the rare items; those of a list that follow one move up."""
    rows = kept[table.item]
    rank, within = table.rank, rows
    if rank is not None:
        moved, depth = _moved_up(table, rank, rows, candidates)
        within = rows & (moved <= depth)
        rank = moved[within]
    return replace(
        table, user=table.user[within], item=_codes(kept)[table.item[within]],
        score=None if table.score is None else table.score[within], rank=rank,
        shape=(table.shape[0], int(kept.sum())),
        listed=None if table.listed is None else _table(table.listed, kept, candidates),
    )  # fmt: skip


def _moved_up(table: Predictions, rank: Floats, rows: Mask, candidates: Array) -> tuple[Floats, float]:
    """Each rank less the rare items above it, and down to which rank all lists are known.

    A list of ten that loses three tells the first seven places only, unless it held all candidates.
    """
    order = np.lexsort((rank, table.user))
    gone = (~rows[order]).astype(np.int64)
    before = np.cumsum(gone) - gone
    start = np.searchsorted(table.user[order], table.user[order])  # of each row's user
    moved = np.empty_like(rank)
    moved[order] = rank[order] - (before - before[start])
    n_users = table.shape[0]
    lost, length = np.bincount(table.user[~rows], minlength=n_users), np.bincount(table.user, minlength=n_users)
    cut = (lost > 0) & (length < candidates)
    deepest = np.zeros(n_users)
    np.maximum.at(deepest, table.user, rank)
    return moved, float((deepest - lost)[cut].min(initial=np.inf))


def _imputation(given: Any, kept: Mask) -> Any:
    if given is None:
        return None
    if isinstance(given, Mapping):
        losses = cast("Mapping[Any, Any]", given)
        return {key: np.asarray(values)[:, kept] for key, values in losses.items()}
    return cast("Array", given)[:, kept] if isinstance(given, np.ndarray) else FewerItems(given, kept)
