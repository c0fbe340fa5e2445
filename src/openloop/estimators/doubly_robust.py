"""The doubly robust estimator: imputed losses everywhere, corrected by the weighted residuals of what was seen."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.core.estimate import Estimate
from openloop.core.feedback import Feedback
from openloop.core.moments import Moments
from openloop.core.protocols import predicted_block
from openloop.errors import InputError
from openloop.estimators.weighted import BASIS, estimate, flag, mass_flag, undefined

MAX_CELLS = 2**28  # a float32 grid of 1 GiB


def doubly_robust(m: Moments) -> Estimate:
    """(1/(U·I)) [Σ_all δ̂ + Σ_O w(δ − δ̂)]: mean(imputed) + ips(residual) (Robins, Rotnitzky & Zhao 1994).

    The moments are those of the residual δ − δ̂, with `imputed` = Σ_{C_u} δ̂; its variance over cells is ips's.
    """
    m = m.collapse()
    if m.imputed is None:
        raise undefined(m, "dr", "it needs imputed ratings; pass ol.dr(imputed) as the estimator")
    columns = np.column_stack([m.stack("wgain")[:, 0, 0], m.cells, m.imputed])  # (U, 3)
    plain = estimate(m, "dr", columns, corrected, m.powers, [(BASIS["wgain"], 0)])
    return flag(plain, *mass_flag(m.mass))


def corrected(totals: Any) -> Any:
    """(imputed + weighted residual) / cells."""
    return (totals[..., 2] + totals[..., 0]) / totals[..., 1]


def cross_fitted(model: Any, feedback: Feedback, *, folds: int = 5, rng: Any) -> npt.NDArray[np.float32]:
    """Imputed ratings of all cells, each from a model fitted without the cell's fold.

    Every cell of the grid, observed or not, is in one fold, so no scored cell helps to impute itself (Chernozhukov et
    al. 2018).

    Args:
        model: A recommender with `fit` and `scores` or `predictions`; it is copied, not changed.
        feedback: The log.
        folds: The number of folds, at least 2.
        rng: A seed or a Generator.

    Returns:
        Imputed ratings, (U, I), for `imputation=` of `ol.evaluate`.

    Raises:
        InputError: The model cannot be fitted, or the grid is too large for memory.

    Examples:
        >>> log = ol.simulate.movie_lovers(users=20, items=12).observe(0)
        >>> imputed = ol.cross_fitted(ol.learners.Bias(), log, folds=2, rng=0)
        >>> imputed.shape
        (20, 12)
    """
    shape = (feedback.n_users, feedback.n_items)
    if not hasattr(model, "fit"):
        raise InputError(f"cross_fitted: takes a recommender with fit and scores, got {type(model).__name__}.")
    if folds < 2 or folds > len(feedback):
        raise InputError(f"cross_fitted: folds must lie in 2 … {len(feedback):,}, got {folds}.")
    if shape[0] * shape[1] > MAX_CELLS:
        raise InputError(
            f"cross_fitted: a grid of {shape[0]:,} × {shape[1]:,} cells is larger than {MAX_CELLS:,}; give imputed "
            "losses, or fit on a sample of users."
        )
    fold = np.random.default_rng(rng).integers(folds, size=shape, dtype=np.int32)  # (U, I)
    imputed = np.empty(shape, np.float32)
    for k in range(folds):
        fitted = copy.deepcopy(model).fit(feedback.take(fold[feedback.user, feedback.item] != k))
        mask = fold == k
        imputed[mask] = predicted_block(fitted, np.arange(shape[0])).astype(np.float32)[mask]
    return imputed  # (U, I)
