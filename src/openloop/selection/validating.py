"""`Validation`: one fold of one candidate, fitted on its training part and scored on the other, or kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from openloop.core.estimate import Estimate
from openloop.core.feedback import Feedback
from openloop.core.metric import Metric
from openloop.errors import MissingPackageError, OpenloopError
from openloop.estimators.naming import Method
from openloop.evaluation import evaluate
from openloop.learners.crossing import for_rows, quiet
from openloop.selection.candidates import Candidate
from openloop.selection.fitting import Fitting
from openloop.selection.keeping import Checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """How every candidate is validated; `rows` are those of the whole log."""

    rows: int
    fitting: Fitting
    metric: Metric
    estimator: str | Method
    threshold: float | None
    checkpoint: Checkpoint | None = None

    def outcome(self, fold: int, train: Feedback, held_out: Feedback, candidate: Candidate) -> Estimate | str:
        """The candidate's estimate on a fold, or why there is none."""
        learner = quiet(for_rows(candidate.learner, len(train) / self.rows))
        if self.checkpoint is None:
            return self._computed(learner, train, held_out)[0]
        found = self.checkpoint.read(learner, fold)
        if found is None:
            found, lasting = self._computed(learner, train, held_out)
            if lasting:
                self.checkpoint.keep(learner, fold, found)
        return found

    def _computed(self, learner: Any, train: Feedback, held_out: Feedback) -> tuple[Estimate | str, bool]:
        """The outcome, and whether it would be the same another time: a package may be installed by then."""
        try:
            model = self.fitting.fit(learner, train)
        except OpenloopError as error:
            return str(error), not isinstance(error, MissingPackageError)
        exclude = train if self.metric.on == "rank" else None
        found = evaluate(
            {"model": model}, held_out, metrics=[self.metric], estimators=[self.estimator], exclude=exclude,
            threshold=self.threshold,
        )  # fmt: skip
        return next(iter(found.estimates.values())).linear(), True  # without its sums, as a file has it
