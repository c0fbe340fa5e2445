"""Rare items left out of the population: the log, the models and the propensities on the items that are kept.

The estimand changes with it, so it is named. What was fitted stays as it is: p of a kept cell does not depend on the
cells that are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from openloop.audits.question import AuditQuestion
from openloop.blocks.population import IdIndex, Population
from openloop.core.covariates import Covariates
from openloop.core.feedback import Array, Feedback, Floats, Vocabulary, check_feedback
from openloop.core.propensities import Propensities, row_propensities
from openloop.core.protocols import FactorModel, Placeable, on_host, predicted_block
from openloop.data.values import ids as ids_of
from openloop.errors import InputError, PredictionError, UndefinedError, listing
from openloop.estimators.naming import Method
from openloop.moments.inputs import Answerer, Model, Table, opened
from openloop.moments.models import Partial

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
    ready = {name: opened(name, model, asked.columns, None) for name, model in models.items()}
    candidates = np.full(log.n_users, log.n_items)
    if asked.exclude is not None:
        check_feedback("exclude", asked.exclude)
        candidates -= np.bincount(asked.exclude.user, minlength=log.n_users)
    return Narrowed(
        models={name: _model(name, model, log, kept, candidates) for name, model in ready.items()},
        log=_feedback(log, kept),
        propensities=_propensities(propensities, log, kept),
        asked=replace(
            asked, min_item_rows=0, estimators=[_imputing(m, kept) for m in asked.methods],
            exclude=None if asked.exclude is None else _feedback(asked.exclude, kept),
            sample=None if asked.sample is None else _feedback(asked.sample, kept),
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


def _model(name: str, model: Model, log: Feedback, kept: Mask, candidates: Array) -> Any:
    if isinstance(model, Answerer):
        asked = model.of(Population.of(log.users, log.items))
        return cast("Array", asked)[:, kept] if isinstance(asked, np.ndarray) else FewerItems(asked, kept)
    tables = cast("Sequence[Table]", model)
    narrower = [_table(table, log, kept, candidates) for table in tables]
    if not narrower[-1].height:
        raise PredictionError(
            f"model {name!r}: some user's list has rare items only, so min_item_rows= leaves it empty; give longer "
            "lists, or the scores of all items."
        )
    return narrower if len(narrower) > 1 else narrower[0]


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


def _table(table: Table, log: Feedback, kept: Mask, candidates: Array) -> pl.DataFrame:
    """A table without the rare items; those of a list that follow one move up."""
    rows = table.table.fetch(list(dict.fromkeys(table.columns.values())))
    rows = rows.select(pl.col(column).alias(role) for role, column in table.columns.items())
    codes = {side: IdIndex(ids.ids).find(ids_of(rows[side], table.table.name, text=table.table.text))
             for side, ids in (("user", log.users), ("item", log.items))}  # fmt: skip
    known = (codes["user"] >= 0) & (codes["item"] >= 0)
    rows = rows.with_columns(**{f"code_{side}": code for side, code in codes.items()}).filter(pl.Series(known))
    rows = rows.with_columns(rare=pl.Series(~kept[rows["code_item"].to_numpy()]))
    if "rank" in table.columns:
        rows = _moved_up(rows, candidates)
    return rows.filter(~pl.col("rare")).select(*table.columns)


def _moved_up(rows: pl.DataFrame, candidates: Array) -> pl.DataFrame:
    """Each rank less the rare items above it, down to the rank to which all lists are known.

    A list of ten that loses three tells the first seven places only, unless it held all candidates.
    """
    rows = rows.sort("code_user", "rank")
    of_user = pl.col("code_user")
    rows = rows.with_columns(
        moved=pl.col("rank") - pl.col("rare").cast(pl.Int64).cum_sum().over(of_user),
        lost=pl.col("rare").sum().over(of_user), length=pl.len().over(of_user),
        deepest=pl.col("rank").max().over(of_user),
        all=pl.Series(candidates[rows["code_user"].to_numpy()]),
    )  # fmt: skip
    cut = rows.filter((pl.col("lost") > 0) & (pl.col("length") < pl.col("all")))
    depth = cut.select((pl.col("deepest") - pl.col("lost")).min()).item() if cut.height else None
    rows = rows.with_columns(rank=pl.col("moved"))
    return rows if depth is None else rows.filter(pl.col("rank") <= depth)


def _imputing(method: Method, kept: Mask) -> Method:
    """The estimator with imputed ratings of the kept items."""
    return method if method.imputation is None else replace(method, imputation=_imputation(method.imputation, kept))


def _imputation(given: Any, kept: Mask) -> Any:
    return cast("Array", given)[:, kept] if isinstance(given, np.ndarray) else FewerItems(given, kept)
