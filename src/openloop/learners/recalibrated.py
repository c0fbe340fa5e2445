"""`Recalibrated`: a learner's predictions corrected to the level and slope of held-out rows."""

from __future__ import annotations

from functools import reduce
from typing import Any, Literal, Self

import numpy as np

from openloop.core.feedback import Array, Feedback, Floats
from openloop.errors import InputError, did_you_mean
from openloop.learners.base import FactorLearner, Weights, far_outside_notes, weights
from openloop.learners.crossing import latin_folds
from openloop.learners.factor_columns import FactorColumn, Spread, combined, ridge, shared_notes
from openloop.learners.stack_bases import Base, bases_of, crossed
from openloop.support.progress import progress

FORMS = ("linear", "isotonic")


class Recalibrated(FactorLearner):
    """ŷ = α + βf̂, f̂ the prediction of `model`, by weighted least squares on held-out rows (Mincer & Zarnowitz 1969).

    A model fitted with weights 1/p is too extreme for cells that it has not seen, because its level and slope fit its
    own rows. Here each row is predicted by a model fitted without its Latin fold. β is fitted to these predictions
    within folds, and α over all folds; finally the model is fitted to all rows. A negative slope counts as 0, so no
    order is reversed.

    Args:
        model: A learner with factors.
        folds: The number of folds.
        form: "linear", or "isotonic": a non-decreasing function, linear between its knots (Zadrozny & Elkan 2002).
            `scores` are then the model's own, and `predict` gives the function of them.
        rng: A seed or generator for the folds.
        progress: Whether to show progress.

    Attributes:
        slope_: β ("linear").
        level_: α ("linear").
        knots_: Where the function changes its slope ("isotonic").
        values_: The function at the knots ("isotonic").
        users_: The users of the log, a `Vocabulary`.
        items_: The items of the log, a `Vocabulary`.
        notes_: What the fit reports, a tuple of sentences.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.movie_lovers().observe(rng=0)
        >>> model = ol.learners.Recalibrated(ol.learners.Bias(reg=0.1), folds=2, rng=0)
        >>> 0 <= model.fit(log, sample_weight=1 / log.propensity).slope_ <= 1
        True
    """

    slope_: float
    level_: float
    knots_: Floats
    values_: Floats

    def __init__(
        self,
        model: Any,
        folds: int = 4,
        form: Literal["linear", "isotonic"] = "linear",
        rng: int | np.random.Generator = 0,
        *,
        progress: bool = False,
    ) -> None:
        self.model: Any = model
        self.folds = folds
        self.form = form
        self.rng = rng
        self.progress = progress

    def fit(self, feedback: Feedback, sample_weight: Weights = None, propensities: Any = None) -> Self:
        """Fit the model without each fold, then the calibration, then the model to all rows.

        Args:
            feedback: The training rows.
            sample_weight: One positive weight per row in Feedback order, or the rows' `Propensities` (weights 1/p).
                None gives all rows the same weight.
            propensities: p instead of weights: `Propensities`, a fitted propensity model, or an array with p of each
                row (n,) or of each cell (U, I). Pass `sample_weight` or `propensities`, not both.

        Returns:
            The fitted learner itself.
        """
        w, (base,) = weights(self, feedback, sample_weight, propensities), bases_of("Recalibrated", [self.model])
        self._check(base)
        held_out, spread = self._held_out(base, feedback, w)
        (column,) = base.fitted(feedback, w)
        self.slope_, self.level_, self.knots_, self.values_ = 1.0, 0.0, np.empty(0), np.empty(0)
        notes = self._line(spread, column) if self.form == "linear" else self._steps(held_out, feedback, w)
        found = combined([column], [self.slope_], self.level_)
        self.user_factors_, self.item_factors_ = found.V, found.W
        self.user_bias_, self.item_bias_, self.intercept_ = found.a, found.b, found.c
        return self._remember(feedback, *shared_notes([column]), *notes, *far_outside_notes(self, feedback))

    @property
    def linked(self) -> bool:
        """Whether predictions are a function of the scores: the steps."""
        return self.form == "isotonic"

    def link(self, z: Array) -> Array:
        """The step function of each score; without knots, the score itself.

        Args:
            z: Scores of any shape.

        Returns:
            Predictions of the same shape.
        """
        return np.interp(z, self.knots_, self.values_) if len(self.knots_) else z

    def _output(self) -> Any:
        return np.stack([self.knots_, self.values_]) if len(self.knots_) else None

    def _check(self, base: Base) -> None:
        if self.form not in FORMS:
            raise InputError(f"Recalibrated: form={self.form!r} is unknown.{did_you_mean(str(self.form), FORMS)}")
        if base.by_folds:
            raise InputError(f"Recalibrated: {base.name} does not predict ratings; put it into a Stack instead.")
        if self.form == "linear" and getattr(base.learner, "linked", False):
            raise InputError(
                f"Recalibrated: {base.name} predicts through a link, so α + βf̂ is not a factor model; pass "
                'form="isotonic".'
            )

    def _held_out(self, base: Base, feedback: Feedback, w: Floats) -> tuple[Floats, Spread]:
        """f̂ of each row by the model without its fold, of one mean in all folds, and the sums within folds."""
        folds, values = latin_folds("Recalibrated", feedback, self.folds, self.rng), np.empty(len(feedback))
        spreads: list[Spread] = []
        with progress("Recalibrated", folds.count, show=self.progress) as advance:
            for fold in crossed([base], feedback, w, folds, advance, keep=[False]):
                spreads.append(Spread.of(fold.values, feedback.rating[fold.rows], w[fold.rows]))
                values[fold.rows] = fold.values[0] - spreads[-1].mean[0]
        spread = reduce(Spread.pooled, spreads)
        return values + spread.mean[0], spread

    def _line(self, spread: Spread, column: FactorColumn) -> list[str]:
        deviation = spread.deviations([column])
        slope = float(ridge(spread, deviation, 0.0)[0] / (deviation[0] or 1.0))
        self.slope_ = max(slope, 0.0)  # the order of items is never turned round
        self.level_ = float(spread.mean[1] - self.slope_ * spread.mean[0])
        if slope > 0:
            return []
        return [f"held-out predictions do not rise with the rating (slope {slope:.3g}): all cells are given the mean"]

    def _steps(self, f: Floats, feedback: Feedback, w: Floats) -> list[str]:
        from sklearn.isotonic import IsotonicRegression

        found = IsotonicRegression(out_of_bounds="clip").fit(f, feedback.rating.astype(np.float64), sample_weight=w)
        self.knots_, self.values_ = (np.asarray(x, np.float64) for x in (found.X_thresholds_, found.y_thresholds_))
        same = np.ptp(self.values_) == 0
        return ["held-out predictions do not rise with the rating: one value for all cells"] if same else []
