"""`Recalibrated`: a learner's predictions brought to the level and slope that held-out rows have."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np

from openloop.core.feedback import Array, Feedback, Floats
from openloop.errors import InputError, did_you_mean
from openloop.learners.base import FactorLearner, Weights, unseen_notes, weight_notes, weights
from openloop.learners.bases import Base, bases_of, crossed
from openloop.learners.columns import Spread, combined, ridge
from openloop.learners.crossing import latin_folds
from openloop.support.progress import progress

FORMS = ("linear", "isotonic")


class Recalibrated(FactorLearner):
    """ŷ = α + βf̂, f̂ the prediction of `model`, by weighted least squares on rows that it did not see.

    A model fitted by weights 1/p is too extreme for cells that it has not seen: its level and slope are those of its
    own rows. Here every row is predicted by a model without its Latin fold, α and β are fitted to these, and then the
    model to all rows. `form="isotonic"` fits a non-decreasing step function, straight between its knots, instead:
    `scores` are then the model's own, in the same order, and `predict` gives the function of them. Learned: `slope_`
    and `level_` (β and α), or `knots_` and `values_` (isotonic).
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
        """Fit the model without each fold, then the calibration, then the model to all rows."""
        w, (base,) = weights(self, feedback, sample_weight, propensities), bases_of("Recalibrated", [self.model])
        self._check(base)
        held_out = self._held_out(base, feedback, w)
        (column,) = base.fitted(feedback, w)
        self.slope_, self.level_, self.knots_, self.values_ = 1.0, 0.0, np.empty(0), np.empty(0)
        notes = self._line(held_out, feedback, w) if self.form == "linear" else self._steps(held_out, feedback, w)
        found = combined([column], [self.slope_], self.level_)
        self.user_factors_, self.item_factors_ = found.V, found.W
        self.user_bias_, self.item_bias_, self.intercept_ = found.a, found.b, found.c
        lonely = unseen_notes(feedback, f"what {base.name} says of them")
        return self._remember(feedback, *weight_notes(w), *lonely, *notes)

    @property
    def linked(self) -> bool:
        """Whether predictions are a function of the scores: the steps."""
        return self.form == "isotonic"

    def link(self, z: Array) -> Array:
        """The step function of a score; without knots the score itself."""
        return np.interp(z, self.knots_, self.values_) if len(self.knots_) else z

    def _check(self, base: Base) -> None:
        if self.form not in FORMS:
            raise InputError(f"Recalibrated: form={self.form!r} is unknown.{did_you_mean(str(self.form), FORMS)}")
        if base.by_folds:
            raise InputError(f"Recalibrated: {base.name} predicts no rating; put it into a Stack instead.")
        if self.form == "linear" and getattr(base.learner, "linked", False):
            raise InputError(
                f"Recalibrated: {base.name} predicts through a link, so α + βf̂ is no factor model; pass "
                'form="isotonic".'
            )

    def _held_out(self, base: Base, feedback: Feedback, w: Floats) -> Floats:
        """f̂ of each row by the model without its fold."""
        folds, values = latin_folds("Recalibrated", feedback, self.folds, self.rng), np.empty(len(feedback))
        with progress("Recalibrated", folds.count, show=self.progress) as advance:
            for fold in crossed([base], feedback, w, folds, advance, keep=[False]):
                (values[fold.rows],) = fold.values
        return values

    def _line(self, f: Floats, feedback: Feedback, w: Floats) -> list[str]:
        spread = Spread.of([f], feedback.rating, w)
        (deviation,) = spread.deviation
        self.slope_ = float(ridge(spread, 0.0)[0] / deviation) if deviation > 0 else 0.0
        self.level_ = float(spread.mean[1] - self.slope_ * spread.mean[0])
        if self.slope_ > 0:
            return []
        return [f"held-out predictions do not rise with the rating (slope {self.slope_:.3g}): the model is no use here"]

    def _steps(self, f: Floats, feedback: Feedback, w: Floats) -> list[str]:
        from sklearn.isotonic import IsotonicRegression

        found = IsotonicRegression(out_of_bounds="clip").fit(f, feedback.rating.astype(np.float64), sample_weight=w)
        self.knots_, self.values_ = (np.asarray(x, np.float64) for x in (found.X_thresholds_, found.y_thresholds_))
        same = np.ptp(self.values_) == 0
        return ["held-out predictions do not rise with the rating: one value for all cells"] if same else []
