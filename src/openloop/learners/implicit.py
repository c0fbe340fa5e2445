"""`WMF`: weighted matrix factorisation of positives, where what was not observed counts a little, as a 0."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np

from openloop.core.feedback import Feedback, Floats
from openloop.errors import InputError, RatingError, did_you_mean
from openloop.kernels.least_squares import Rows
from openloop.learners.base import (
    FactorLearner,
    Weights,
    check_number,
    check_rank,
    check_whole,
    liked,
    unseen_notes,
    weights,
)
from openloop.learners.solvers.als import CG_STEPS, alternate, check_device, schedule
from openloop.learners.solvers.objective import Objective, Solution, start
from openloop.support.arguments import generator
from openloop.support.progress import progress

TARGETS = ("one", "rating")


class WMF(FactorLearner):
    """Ŷ = v_uᵀw_i, by weighted least squares over all cells of the grid (Hu, Koren & Volinsky 2008).

        Σ_all C_ui (R_ui - v_uᵀw_i)² + λ(‖V‖² + ‖W‖²)

    A row of the log has R = 1, or its rating, and confidence C = rest + (positive - rest)·w, where w is its
    `sample_weight`, rescaled to mean 1. All other cells have R = 0 and C = `rest`.

    Args:
        factors: The number K of factors.
        reg: λ.
        positive: The confidence of a row.
        rest: The confidence of all other cells.
        target: R of a row: "one", or "rating", as in Cornac.
        threshold: Rows with a rating below it count as unobserved. None: below 4, or below 1 where all ratings are 0
            and 1; no row with `target="rating"`.
        iterations: The largest number of sweeps.
        tol: The relative change of the objective at which the fit stops.
        threads: The number of threads; None takes all cores.
        device: "cuda" sweeps on a GPU.
        progress: Whether to show progress.
        rng: A seed or generator for the start.

    Attributes:
        user_factors_: V (U, K).
        item_factors_: W (I, K).
        history_: The objective after each sweep.
        users_: The users of the log, a `Vocabulary`.
        items_: The items of the log, a `Vocabulary`.
        notes_: What the fit reports, a tuple of sentences.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.movie_lovers().observe(rng=0)
        >>> wmf = ol.learners.WMF(factors=2, rng=0).fit(log)
        >>> scores = wmf.scores([0])[0]
        >>> bool(scores[:30].mean() > scores[30:60].mean())  # user 0 loves horror, items 0 to 29
        True
    """

    rates = False
    history_: Floats

    def __init__(
        self,
        factors: int = 50,
        reg: float = 0.01,
        *,
        positive: float = 1.0,
        rest: float = 0.01,
        target: Literal["one", "rating"] = "one",
        threshold: float | None = None,
        iterations: int = 100,
        tol: float = 1e-5,
        threads: int | None = None,
        device: str | None = None,
        progress: bool = False,
        rng: int | np.random.Generator = 0,
    ) -> None:
        self.factors = factors
        self.reg = reg
        self.positive = positive
        self.rest = rest
        self.target = target
        self.threshold = threshold
        self.iterations = iterations
        self.tol = tol
        self.threads = threads
        self.device = device
        self.progress = progress
        self.rng = rng

    def fit(self, feedback: Feedback, sample_weight: Weights = None, propensities: Any = None) -> Self:
        """Minimise the objective by alternating least squares.

        Args:
            feedback: The training rows.
            sample_weight: One positive weight per row in Feedback order, or the rows' `Propensities` (weights 1/p).
                None gives all rows the same weight.
            propensities: p instead of weights: `Propensities`, a fitted propensity model, or an array with p of each
                row (n,) or of each cell (U, I). Pass `sample_weight` or `propensities`, not both.

        Returns:
            The fitted learner itself.
        """
        w = weights(self, feedback, sample_weight, propensities)
        factors, reg, rest = check_whole(self, "factors"), check_number(self, "reg"), check_number(self, "rest")
        check_rank(self, factors, feedback.n_users, feedback.n_items)
        check_device(self)
        positives, w = self._liked(feedback, w)
        rows, constant = self._rows(positives, w, rest)
        objective = Objective(factors=factors, reg=reg, rest=rest, constant=constant)
        at = start(positives, objective, np.float32, generator(type(self).__name__, self.rng))
        at.learner = "WMF"
        notes = [f"{len(positives):,} of {len(feedback):,} rows are positives"]
        return self._keep(positives, self._solve(rows, objective, at), notes)

    def _liked(self, feedback: Feedback, w: Floats) -> tuple[Feedback, Floats]:
        """The rows that count as positives, and their weights, of the same mean."""
        if self.threshold is None and self.target == "rating":
            return feedback, w
        keep = liked(self, feedback, self.threshold)
        return (feedback, w) if keep.all() else (feedback.take(keep), w[keep] / w[keep].mean())

    def _rows(self, feedback: Feedback, w: Floats, rest: float) -> tuple[Rows, float]:
        """With s = v_uᵀw_i, C(R - s)² - rest·s² = v(y - s)² + constant, for v = C - rest and y = CR/v."""
        v, R = (self._positive(rest) - rest) * w, self._targets(feedback)
        with np.errstate(over="ignore", invalid="ignore"):  # weights that uneven give an objective that is not finite
            y = (rest + v) * R / v
            constant = float(np.sum((rest + v) * R**2 - v * y**2))
            return Rows(feedback.user_ptr, feedback.item, y.astype(np.float32), v.astype(np.float32)), constant

    def _positive(self, rest: float) -> float:
        positive = check_number(self, "positive", positive=True)
        if not positive > rest:
            raise InputError(
                f"WMF: positive must be larger than rest, got {positive:g} and {rest:g}; rows need more confidence."
            )
        return positive

    def _targets(self, feedback: Feedback) -> Floats:
        if self.target not in TARGETS:
            raise InputError(f"WMF: target={self.target!r} is unknown.{did_you_mean(str(self.target), TARGETS)}")
        R = feedback.rating.astype(np.float64) if self.target == "rating" else np.ones(len(feedback))
        if not R.any():
            raise RatingError(
                'WMF: every rating is 0, so nothing was liked; use target="one" where each row is a like.'
            )
        return R

    def _solve(self, rows: Rows, objective: Objective, at: Solution) -> Solution:
        with progress("WMF", check_whole(self, "iterations"), show=self.progress) as advance:
            return alternate(rows, objective, at, schedule(self, CG_STEPS, advance))

    def _keep(self, feedback: Feedback, found: Solution, notes: list[str]) -> Self:
        self.user_factors_, self.item_factors_ = found.P, found.Q
        self.user_bias_, self.item_bias_ = (np.zeros(len(side), np.float32) for side in (found.P, found.Q))
        self.intercept_ = 0.0
        self.history_ = np.array(found.history)
        lonely = unseen_notes(feedback, "0", "positive")
        return self._remember(feedback, *notes, *lonely, *found.notes(self.iterations, self.tol))
