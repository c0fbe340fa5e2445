"""The chance with which a log observed its rows, for learners that need p itself and not a weight alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from openloop.core.feedback import Feedback, Floats, check_feedback
from openloop.core.propensities import Propensities, check_exposure, row_propensities
from openloop.errors import InputError, UndefinedError
from openloop.learners.base import Weights


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowChances:
    """The chance with which a log observed each row, max(p, floor)·s, and what it was made of."""

    values: Floats
    floor: float
    source: Any  # Propensities, a fitted model or an array


def row_chances(model: Any, feedback: Any, sample_weight: Weights, propensities: Any) -> RowChances:
    """The chances of the rows: a part of share s of a log observes a cell with p·s.

    `propensities` are what `row_propensities` takes, or None: the log's own column. As `sample_weight`, Propensities
    are taken as well; weights are not, because a factor of all of them would change what is learned.
    """
    who = type(model).__name__
    check_feedback(who, feedback)
    source = _given(who, feedback, sample_weight, propensities)
    p = row_propensities(who, source, feedback)
    check_exposure(who, p, feedback)
    return RowChances(values=p.used * share_of(who, feedback), floor=p.floor, source=source)


def _given(who: str, feedback: Feedback, sample_weight: Any, propensities: Any) -> Any:
    if sample_weight is not None and propensities is not None:
        raise InputError(f"{who}: sample_weight and propensities= were both given; leave one of them out.")
    if isinstance(sample_weight, Propensities):
        return sample_weight
    if sample_weight is not None:
        raise InputError(
            f"{who}: needs p itself, and weights in sample_weight (a {type(sample_weight).__name__}) are known up to a "
            "factor; pass propensities= instead."
        )
    given = feedback.propensity if propensities is None else propensities
    if given is None:
        remedy = (
            "read the log with a column of the chance of being shown, propensity="
            if feedback.positives  # what is fitted on positives is refused
            else "fit a model of ol.propensity and pass propensities=model, or read the log with propensity="
        )
        raise UndefinedError(
            f"{who}: needs the propensity of every row, and neither propensities= nor a column of the log gives it; "
            f"{remedy}."
        )
    return given


def share_of(who: str, feedback: Feedback) -> Floats:
    """The share of the log that this part is, per row."""
    if feedback.share is None:
        raise UndefinedError(
            f"{who}: this part of a log has no share, as after a split by time, so its propensities are known up to a "
            "factor; split at random, or give p of this part itself with dataclasses.replace(part, share=np.ones(1))."
        )
    return feedback.share


def unseen_odds(model: Any, feedback: Feedback, chances: RowChances, least: float) -> float:
    """Σ_D (1/p − 1) over all cells, p at least `least`: needs a model's matrix, or p of every cell (U, I)."""
    who, share = type(model).__name__, share_of(type(model).__name__, feedback)
    if np.ptp(share) > 0:
        raise UndefinedError(
            f"{who}: targeted=True needs one share for all cells, and those of this part are "
            f"{share.min():g} … {share.max():g}; split by rows, or fit on the whole log."
        )
    P = _grid(who, feedback, chances.source)
    # Row by row: no second grid beside the one that was given.
    return float(sum(np.sum(1 / np.maximum(np.maximum(row, chances.floor) * share[0], least) - 1) for row in P))


def _grid(who: str, feedback: Feedback, source: Any) -> Floats:
    if isinstance(source, np.ndarray) and source.shape == (feedback.n_users, feedback.n_items):
        return source
    if isinstance(source, np.ndarray) or not hasattr(source, "matrix"):
        raise UndefinedError(
            f"{who}: targeted=True needs p of all cells, and {type(source).__name__} has those of rows; pass as "
            "propensities= a fitted model that has matrix(), such as ol.propensity.Logistic(), or an array of users × "
            "items."
        )
    return source.matrix()
