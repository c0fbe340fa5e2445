"""`Stack`: predictions of several learners for held-out rows, combined by weighted regression."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, Literal, Self

import numpy as np

from openloop.core.feedback import Feedback, Floats
from openloop.errors import InputError, did_you_mean
from openloop.learners.base import FactorLearner, Weights, check_number, far_outside_notes, weights
from openloop.learners.crossing import latin_folds
from openloop.learners.factor_columns import FactorColumn, Spread, combined, ridge, shared_notes
from openloop.learners.stack_bases import CrossedFold, bases_of, crossed, mean_of_folds
from openloop.support.progress import progress

FINALS = ("refit", "folds")


class Stack(FactorLearner):
    """ŷ = c + Σ_j β_j z_j: several learners combined by weighted ridge regression on held-out rows (Wolpert 1992).

    A base is a learner, or a pair (learner, power), which is trained with `sample_weight**power`: a learner alone has
    power 1, and power 0 gives equal weights. Rows are dealt into K Latin folds, and each row is predicted by models
    that did not see it. β minimises

        Σ_O w(y − c_k − zᵀβ)² + λ‖β‖²,

    with z the columns less their weighted means, divided by their weighted deviations, both within the row's fold k.
    Columns that hardly vary over held-out rows are left out. The penalties of a fold's models are scaled to its rows,
    as in `select`. Bases must be factor models, and a stack is one too.

    Args:
        bases: The learners, or pairs (learner, power).
        folds: K.
        reg: λ.
        final: What predicts: "refit" fits the bases to all rows; "folds" averages the models of the folds, which takes
            K times the factors. `Exposure` is always averaged.
        rng: A seed or generator for the folds.
        progress: Whether to show progress.

    Attributes:
        columns_: The names of the columns.
        coefficients_: β (J,).
        column_means_: The means of the columns (J,).
        column_deviations_: Their standard deviations (J,).
        users_: The users of the log, a `Vocabulary`.
        items_: The items of the log, a `Vocabulary`.
        notes_: What the fit reports, a tuple of sentences.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.movie_lovers().observe(rng=0)
        >>> bases = [ol.learners.Bias(), (ol.learners.Bias(reg=1.0), 0.5), ol.learners.Exposure(rank=2)]
        >>> stack = ol.learners.Stack(bases, folds=2, rng=0).fit(log, sample_weight=1 / log.propensity)
        >>> len(stack.columns_) == len(stack.coefficients_)
        True
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
        """Fit the bases without each fold, estimate β, and fit the bases to all rows.

        Args:
            feedback: The training rows.
            sample_weight: One positive weight per row in Feedback order, or the rows' `Propensities` (weights 1/p).
                None gives all rows the same weight.
            propensities: p instead of weights: `Propensities`, a fitted propensity model, or an array with p of each
                row (n,) or of each cell (U, I). Pass `sample_weight` or `propensities`, not both.

        Returns:
            The fitted learner itself.
        """
        bases = bases_of("Stack", self.bases)
        # In double precision the weights would be the largest array of all, and fits are long.
        w = weights(self, feedback, sample_weight, propensities).astype(np.float32)
        reg, folds = check_number(self, "reg"), latin_folds("Stack", feedback, self.folds, self.rng)
        if self.final not in FINALS:
            raise InputError(f"Stack: final={self.final!r} is unknown.{did_you_mean(str(self.final), FINALS)}")
        keep = [self.final == "folds" or base.by_folds for base in bases]

        def told(fold: CrossedFold) -> tuple[Spread, list[list[FactorColumn]]]:
            return Spread.of(fold.values, feedback.rating[fold.rows], w[fold.rows]), fold.kept

        with progress("Stack", folds.count + 1, show=self.progress) as advance:
            # A map, as a loop would hold on to a fold's values while the next one is made.
            spreads, kept = zip(*map(told, crossed(bases, feedback, w, folds, advance, keep=keep)), strict=True)
            advance(folds.count, "all rows")
            final = [
                column
                for base, own, by_folds in zip(bases, zip(*kept, strict=True), keep, strict=True)
                for column in (mean_of_folds(own) if by_folds else base.fitted(feedback, base.tempered(w)))
            ]
        return self._combine(feedback, final, reduce(Spread.pooled, spreads), reg)

    def _combine(self, feedback: Feedback, columns: list[FactorColumn], spread: Spread, reg: float) -> Self:
        deviation, means = spread.deviations(columns), spread.mean
        beta = ridge(spread, deviation, reg)
        slopes = np.divide(beta, deviation, out=np.zeros_like(beta), where=deviation > 0)
        found = combined(columns, slopes.tolist(), float(means[-1] - slopes @ means[:-1]))
        self.user_factors_, self.item_factors_ = found.V, found.W
        self.user_bias_, self.item_bias_, self.intercept_ = found.a, found.b, found.c
        self.columns_, self.coefficients_ = tuple(one.name for one in columns), beta
        self.column_means_, self.column_deviations_ = means[:-1], deviation
        still = [name for name, d in zip(self.columns_, deviation, strict=True) if d == 0]
        idle = [f"{name} hardly varies over held-out rows, and was left out" for name in still]
        return self._remember(feedback, *shared_notes(columns), *idle, *far_outside_notes(self, feedback))
