"""Imputed ratings of all cells, each predicted by a model that was fitted without the cell's fold."""

from __future__ import annotations

from typing import Any

import numpy as np

from openloop.core.feedback import Array, Feedback, Floats
from openloop.errors import InputError
from openloop.kernels.grid_least_squares import Block, Patchwork
from openloop.kernels.products import factor_products
from openloop.learners.base import FactorLearner
from openloop.learners.crossing import LatinFolds, latin_folds
from openloop.learners.factor_columns import FactorColumn, shared_notes
from openloop.learners.stack_bases import Base, crossed


def cross_imputed(
    model: Any, learner: Any, feedback: Feedback, weight: Floats, rng: np.random.Generator
) -> tuple[Patchwork, Floats, list[str]]:
    """r̃ of the grid as K² low-rank blocks, that of the rows, and what the first fold's fit had to note.

    Folds are Latin, so that every cell has one, and `learner` is fitted K times, with λ for that many rows. Only
    ratios of weights matter to it: p and p·share give the same fit.
    """
    who = type(model).__name__
    check_imputation(who, learner)
    base = Base(who=who, name=f"imputation by {type(learner).__name__}", learner=learner)
    folds, rows = latin_folds(who, feedback, model.folds, rng), np.empty(len(feedback))
    blocks, columns = list[Block](), list[FactorColumn]()
    for k, fold in enumerate(crossed([base], feedback, weight, folds, _untold, keep=[True])):
        ((column,),) = fold.kept
        left, right = _factors(column)  # in double precision, as the blocks are
        rows[fold.rows] = factor_products(left, right, feedback.user[fold.rows], feedback.item[fold.rows])
        blocks += _blocks(folds, k, left, right)
        columns.append(column)
    return Patchwork((feedback.n_users, feedback.n_items), tuple(blocks)), rows, shared_notes(columns[:1])


def _untold(_done: float, _text: str) -> None:
    """The learner has a bar of its own."""


def check_imputation(who: str, learner: Any) -> None:
    """Refuse all but factor models of ratings that are fitted with weights alone."""
    if not isinstance(learner, FactorLearner) or learner.needs_propensities:
        kind = learner.__name__ if isinstance(learner, type) else type(learner).__name__
        raise InputError(
            f"{who}: imputation must be a learner of factors that is fitted with weights, such as MF() or Bias(), got "
            f"{kind}; r̃ of all cells is kept as factors."
        )
    if not learner.rates:
        raise InputError(
            f"{who}: imputation must predict ratings, and {type(learner).__name__} gives scores that rank; use MF() or "
            "Bias()."
        )
    if learner.linked:
        raise InputError(
            f"{who}: imputation must predict ratings by factors alone, and {type(learner).__name__} passes them "
            'through a function, as of loss="logistic" or form="isotonic"; use a squared loss.'
        )


def _factors(column: FactorColumn) -> tuple[Floats, Floats]:
    """[V, a + c, 1] and [W, 1, b], whose products are the predictions."""
    a, b = column.a[:, None], column.b[:, None]
    left = np.hstack([column.V, a + column.c, np.ones_like(a)]).astype(np.float64)  # (U, K + 2)
    right = np.hstack([column.W, np.ones_like(b), b]).astype(np.float64)  # (I, K + 2)
    return left, right


def _blocks(folds: LatinFolds, k: int, left: Array, right: Array) -> list[Block]:
    """The cells of fold k."""
    found = list[Block]()
    for group in range(folds.count):
        users = np.flatnonzero(folds.of_user == group)
        items = np.flatnonzero(folds.of_item == folds.item_group(k, group))
        found.append(Block(users, items, left[users], right[items]))
    return found
