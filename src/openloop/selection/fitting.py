"""How learners are given p in a part of the log: as weights 1/(p·s), or p·s itself, of rows or of all cells."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from openloop.core.feedback import Feedback, Floats, check_feedback
from openloop.core.propensities import row_propensities
from openloop.errors import OpenloopError, UndefinedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitting:
    """Fits on parts of a log whose column `propensity` has p; a part with share s observes a cell with p·s.

    `weighted`: rows have the weights 1/(p·s). `matrix` is p of all cells (U, I), for learners that need it, or why
    there is none.
    """

    weighted: bool
    matrix: Floats | str | None = None

    def fit(self, learner: Any, part: Feedback) -> Any:
        """The learner, fitted; one that needs p gets p·s, one that takes weights 1/(p·s), times the log's own."""
        if part.propensity is None:
            return learner.fit(part)
        p = part.propensity * (1.0 if part.share is None else part.share)
        if getattr(learner, "needs_propensities", False):
            given = self._cells(learner, part) if getattr(learner, "needs_matrix", False) else p
            return learner.fit(_by_itself(part, p), propensities=given)
        if not (self.weighted and getattr(learner, "takes_weights", True)):
            return learner.fit(part)
        return learner.fit(part, sample_weight=1 / p if part.weight is None else part.weight / p)

    def _cells(self, learner: Any, part: Feedback) -> Floats:
        """p·s of all cells; where rows were kept with different probabilities, s of unobserved cells is unknown."""
        if self.matrix is None or isinstance(self.matrix, str):
            why = f" ({self.matrix})" if self.matrix else ""
            raise UndefinedError(
                f"select: {type(learner).__name__} needs p of all cells, and propensities= has those of the rows{why}; "
                "pass a fitted propensity model with matrix(), or p as an array of users × items."
            )
        shares = np.ones(1) if part.share is None else part.share
        if np.ptp(shares) > 0:
            raise UndefinedError(
                f"select: {type(learner).__name__} needs p of all cells, and the log is a part whose rows were kept "
                f"with probabilities {shares.min():g} … {shares.max():g}; select on a log split by row."
            )
        return self.matrix * shares[0]


def _by_itself(part: Feedback, p: Floats) -> Feedback:
    """A part as a log of its own, which observes its cells with p, so its share is not multiplied in again."""
    return part if part.share is None else replace(part, propensity=p, share=np.ones(1))


def with_propensities(feedback: Any, given: Any) -> Feedback:
    """The log with the p of its rows as a column, which its folds then carry."""
    check_feedback("select", feedback)
    return feedback if given is None else replace(feedback, propensity=row_propensities("select", given, feedback).used)


def fitting(log: Feedback, given: Any, learners: Iterable[Any], *, weighted: bool | None) -> Fitting:
    """How these learners are fitted; `given` are the propensities as they came."""
    use = log.propensity is not None if weighted is None else weighted
    if use and log.propensity is None:
        raise UndefinedError("select: weighted=True needs propensities; pass them, or read the log with their column.")
    needed = any(getattr(learner, "needs_matrix", False) for learner in learners)
    return Fitting(weighted=use, matrix=_matrix(given) if needed else None)


def _matrix(given: Any) -> Floats | str | None:
    if isinstance(given, np.ndarray):
        return np.asarray(given, np.float64) if cast("Floats", given).ndim == 2 else None
    if not hasattr(given, "matrix"):
        return None
    try:
        return given.matrix()
    except OpenloopError as error:  # p that depends on the rating is unknown where there is no rating
        return str(error)
