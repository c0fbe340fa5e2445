"""`Known`: propensities that need no estimate, from the log's own column or a users × items array."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Feedback, Floats, check_feedback, check_fitted, check_propensities, frozen
from openloop.core.propensities import Propensities
from openloop.errors import AlignmentError, ColumnError, InputError, UndefinedError
from openloop.propensity.base import PropensityEstimator, check_grid
from openloop.propensity.frames.opening import FrameOptions
from openloop.support.frames import is_frame


class Known(PropensityEstimator):
    """Propensities known by design: your own system decided what is observed (Schnabel et al. 2016, section 3.3).

    Known propensities are about the whole log, also when the model is asked about a part of it.

    Args:
        values: An array (U, I) in the order of the vocabularies. None takes the propensity column of the log.

    Attributes:
        matrix_: The given array; None without one.
        users_: The users of the log, a `Vocabulary`.
        items_: The items of the log, a `Vocabulary`.
        notes_: What the fit reports, a tuple of sentences.

    Examples:
        >>> import openloop as ol
        >>> world = ol.simulate.movie_lovers()
        >>> log = world.observe(rng=0)
        >>> seen = ol.propensity.Known(world.propensities).fit(log)
        >>> bool((seen.predict(log).values == log.propensity).all())
        True
    """

    sees_rating = True  # p is given, not fitted: nothing says that it does not depend on the rating

    def __init__(self, values: npt.ArrayLike | None = None) -> None:
        self.values: Any = values

    def fit(self, feedback: Feedback, **columns: Any) -> Known:
        """Check that the propensities are there and match the grid; nothing is estimated.

        Args:
            feedback: A log.
            **columns: Refused: a frame with propensities needs no model.

        Returns:
            The fitted model itself.
        """
        if FrameOptions.of(self, columns) != FrameOptions() or is_frame(feedback):
            raise InputError(
                "Known: takes a Feedback; a frame that has its propensities needs no model: pass the name of their "
                "column to ol.evaluate or ol.audit."
            )
        check_feedback("Known", feedback)
        self.matrix_ = None if self.values is None else _grid_values(self.values, feedback)
        if self.matrix_ is None:
            _column(feedback)
        return self._remember(feedback)

    def predict(self, feedback: Feedback) -> Propensities:
        """The known p of each row.

        Args:
            feedback: A log, or a part of one, on the users and items of the fit.

        Returns:
            `Propensities` in Feedback order, with the fingerprint of `feedback`.
        """
        check_grid(self, feedback)
        P = self.matrix_
        values = _column(feedback) if P is None else P[feedback.user, feedback.item]  # (n,)
        return self._found(feedback, values)

    def matrix(self) -> Floats:
        """The given array; undefined where only the log's column is known.

        Returns:
            A read-only array (U, I).
        """
        check_fitted(self)
        if self.matrix_ is None:
            raise UndefinedError(
                "Known: the log's column has the propensities of observed cells only, so there is no matrix "
                "of all cells; pass Known(values=) a users × items array."
            )
        return self.matrix_


def _column(feedback: Feedback) -> Floats:
    if feedback.propensity is None:
        raise ColumnError("Known: the log has no propensity column; read it with propensity=, or pass Known(values=).")
    return feedback.propensity


def _grid_values(values: npt.ArrayLike, feedback: Feedback) -> Floats:
    given, grid = np.asarray(values), (feedback.n_users, feedback.n_items)
    if given.dtype.kind not in "fiub":
        raise InputError(
            f"Known: values must be numbers, users × items, got {values!r:.60}; for a column of the log read it with "
            "propensity= and leave values= out."
        )
    P = given.astype(np.float64)
    if P.shape != grid:
        msg = f"Known: values must be users × items, {grid}, got shape {P.shape}; give one p per cell."
        raise AlignmentError(msg)
    # A cell that cannot be observed would be judged by no row at all, and IPS would miss it silently.
    check_propensities("Known", P.ravel(), "give probabilities, and leave cells that are never shown out of the grid.")
    return frozen(P)
