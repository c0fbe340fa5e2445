"""`Stack`: what several learners say of rows that they did not see, combined by weighted regression."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, Literal, Self

import numpy as np

from openloop.core.feedback import Array, Feedback, Floats
from openloop.errors import InputError, did_you_mean
from openloop.learners.base import FactorLearner, Weights, check_number, unseen_notes, weight_notes, weights
from openloop.learners.bases import Base, CrossedFold, bases_of, crossed, mean_of_folds
from openloop.learners.columns import Column, Spread, combined, ridge
from openloop.learners.crossing import latin_folds
from openloop.support.progress import progress

FINALS = ("refit", "folds")


class Stack(FactorLearner):
    """ŷ = c + Σ_j β_j z_j: several learners, combined by weighted ridge regression on held-out rows.

    A base is a learner, or a pair (learner, power) that is trained with `sample_weight**power`: 1 alone, 0 for equal
    weights. By K Latin `folds` every row is predicted by models that did not see it, and β minimises

        Σ_O w(y − c − zᵀβ)² + λ‖β‖²,

    z the columns less their weighted means, divided by their weighted deviations; λ is `reg`. The columns of a
    prediction are bases fitted to all rows (`final="refit"`), or means of the fold models ("folds": K times the
    factors); those of `Exposure` are always means. A fold's penalties are scaled to its rows, as in `select`. Bases
    must be factor models, and a stack is one again. Learned: `columns_` (names), `coefficients_` (β), `column_means_`
    and `column_deviations_`, (J,) each.
    """

    penalties_beside_row_sum = ("reg",)

    columns_: tuple[str, ...]
    coefficients_: Floats
    column_means_: Floats
    column_deviations_: Floats

    def __init__(
        self,
        bases: Sequence[Any],
        folds: int = 4,
        reg: float = 1.0,
        final: Literal["refit", "folds"] = "refit",
        rng: int | np.random.Generator = 0,
        *,
        progress: bool = False,
    ) -> None:
        self.bases = bases
        self.folds = folds
        self.reg = reg
        self.final = final
        self.rng = rng
        self.progress = progress

    def fit(self, feedback: Feedback, sample_weight: Weights = None, propensities: Any = None) -> Self:
        """Fit the bases without each fold, find β, and fit them to all rows."""
        bases = bases_of("Stack", self.bases)
        w = weights(self, feedback, sample_weight, propensities).astype(np.float32)  # all that long fits hold on to
        reg, folds = check_number(self, "reg"), latin_folds("Stack", feedback, self.folds, self.rng)
        if self.final not in FINALS:
            raise InputError(f"Stack: final={self.final!r} is unknown.{did_you_mean(str(self.final), FINALS)}")
        by_folds = [self.final == "folds" or base.by_folds for base in bases]
        kept: list[list[list[Column]]] = [[] for _ in bases]  # of each base, by fold
        spreads: list[Spread] = []
        with progress("Stack", folds.count + 1, show=self.progress) as advance:
            for held_out in crossed(bases, feedback, w, folds, advance):
                spreads.append(_spread(held_out, feedback, w))
                for own, made, wanted in zip(kept, held_out.columns, by_folds, strict=True):
                    own.extend([made] if wanted else [])
            advance(folds.count, "all rows")
            final = [self._final(base, own, feedback, w) for base, own in zip(bases, kept, strict=True)]
        return self._combine(feedback, [one for own in final for one in own], reduce(Spread.merged, spreads), reg, w)

    def _final(self, base: Base, kept: list[list[Column]], feedback: Feedback, w: Array) -> list[Column]:
        return mean_of_folds(kept) if kept else base.fitted(feedback, w)

    def _combine(self, feedback: Feedback, columns: list[Column], spread: Spread, reg: float, w: Array) -> Self:
        beta, deviation, means = ridge(spread, reg), spread.deviation, spread.mean
        slopes = np.divide(beta, deviation, out=np.zeros_like(beta), where=deviation > 0)
        found = combined(columns, slopes.tolist(), float(means[-1] - slopes @ means[:-1]))
        self.user_factors_, self.item_factors_ = found.V, found.W
        self.user_bias_, self.item_bias_, self.intercept_ = found.a, found.b, found.c
        self.columns_, self.coefficients_ = tuple(one.name for one in columns), beta
        self.column_means_, self.column_deviations_ = means[:-1], deviation
        still = [name for name, d in zip(self.columns_, deviation, strict=True) if d == 0]
        notes = [f"{name} is the same for all rows, and was left out" for name in still]
        lonely = unseen_notes(feedback, "what the bases say of them")
        return self._remember(feedback, *weight_notes(w.astype(np.float64)), *lonely, *notes)


def _spread(held_out: CrossedFold, feedback: Feedback, w: Array) -> Spread:
    rows = held_out.rows
    user, item = feedback.user[rows], feedback.item[rows]
    values = [column.at(user, item) for made in held_out.columns for column in made]
    return Spread.of(values, feedback.rating[rows], w[rows])
