"""Learners that only the race needs: the means of users or items, and one in the manner of StableDR."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from scipy.optimize import brentq

from openloop.core.feedback import Array, Feedback, Floats
from openloop.errors import UndefinedError
from openloop.learners.base import FactorLearner, Weights, check_number, weights
from openloop.learners.crossing import for_rows, latin_folds
from openloop.learners.mf import MF

STEEPEST = 60.0  # of a tilt, in units of 1/mean: e⁶⁰ leaves one row


class SideMean(FactorLearner):
    """Ŷ = c + a_u, or c + b_i: the weighted mean of a side, shrunk to the overall mean c as by `reg` rows of it."""

    penalties_beside_row_sum = ("reg",)

    def __init__(self, side: Literal["user", "item"] = "user", reg: float = 1.0) -> None:
        self.side = side
        self.reg = reg

    def fit(self, feedback: Feedback, sample_weight: Weights = None, propensities: Any = None) -> Self:
        """Learn the means."""
        w, reg = weights(self, feedback, sample_weight, propensities), check_number(self, "reg")
        U, I = feedback.n_users, feedback.n_items
        self.intercept_ = float(np.average(feedback.rating, weights=w))
        residual = w * (feedback.rating - self.intercept_)
        of, code, size = ("user", feedback.user, U) if self.side == "user" else ("item", feedback.item, I)
        offset = np.bincount(code, residual, minlength=size) / (np.bincount(code, w, minlength=size) + reg)
        self.user_factors_, self.item_factors_ = np.zeros((U, 0)), np.zeros((I, 0))
        self.user_bias_, self.item_bias_ = (offset, np.zeros(I)) if of == "user" else (np.zeros(U), offset)
        return self._remember(feedback)


class StableMF(MF):
    """MF-IPS whose weights are tilted until imputed errors have the mean over the log that they have over the grid.

    In the manner of StableDR (Li et al. 2023): with r̃ cross-fitted and e = (f − r̃)², w′ ∝ w·exp(μe) where
    Σ_O w′e/Σ_O w′ = mean of e over all cells; then f is fitted with w′, `rounds` times. The grid is held whole.
    """

    penalties_beside_row_sum = ("reg", "imputation_reg")

    def __init__(
        self, factors: int = 20, reg: float = 5.0, imputation_reg: float = 5.0, rounds: int = 2, folds: int = 4,
        rng: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(factors, reg, threads=1, rng=rng)
        self.imputation_reg = imputation_reg
        self.rounds = rounds
        self.folds = folds

    # It holds the grid, so it takes no rows that stay elsewhere.
    def fit(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, feedback: Feedback, sample_weight: Weights = None, propensities: Any = None
    ) -> Self:
        """MF-IPS, then `rounds` fits with tilted weights."""
        w = weights(self, feedback, sample_weight, propensities)
        imputed = crossed(self._learner(self.imputation_reg), feedback, w, self.folds, self.rng)  # (U, I)
        super().fit(feedback, w)
        for _ in range(self.rounds):
            e = (self.scores(np.arange(feedback.n_users)) - imputed) ** 2  # (U, I)
            super().fit(feedback, tilted(w, e[feedback.user, feedback.item], float(e.mean())))
        return self

    def _learner(self, reg: float) -> MF:
        return MF(self.factors, reg, threads=1, rng=self.rng)


def crossed(learner: Any, feedback: Feedback, w: Floats, folds: int, rng: Any) -> Array:
    """Each cell's prediction by a fit without the cell's Latin fold, (U, I)."""
    shape = feedback.n_users, feedback.n_items
    latin = latin_folds("StableMF", feedback, folds, rng)
    everywhere = latin.of(*np.indices(shape))  # (U, I)
    mine, found = latin.of(feedback.user, feedback.item), np.empty(shape)
    for k in range(folds):
        keep = mine != k
        model = for_rows(learner, float(keep.mean())).fit(feedback.take(keep), w[keep])
        grid = model.scores(np.arange(shape[0]))
        found[everywhere == k] = grid[everywhere == k]
    return found


def tilted(w: Floats, e: Array, mean: float) -> Floats:
    """w·exp(μe) with Σw′e/Σw′ = mean."""
    x = e.astype(np.float64) / mean

    def weighted(mu: float) -> Floats:
        return w * np.exp(mu * x - (mu * x).max())

    def gap(mu: float) -> float:
        return float(np.average(x, weights=weighted(mu))) - 1.0

    if not gap(-STEEPEST) < 0 < gap(STEEPEST):
        raise UndefinedError(
            f"StableMF: no weights give rows with errors from {e.min():.3g} to {e.max():.3g} the mean {mean:.3g} of "
            "the grid; raise reg."
        )
    return weighted(float(brentq(gap, -STEEPEST, STEEPEST)))  # pyright: ignore[reportArgumentType]
