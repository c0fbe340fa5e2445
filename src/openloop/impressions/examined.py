"""θ for a log of impressions: from a fitted examination or from numbers, with its error where it was fitted."""

from __future__ import annotations

from typing import Any

import numpy as np

from openloop.core.feedback import Floats
from openloop.core.impressions import Impressions
from openloop.core.shown_moments import Examined
from openloop.errors import InputError


def examined_by(given: Any, log: Impressions | None, depth: int) -> Examined | None:
    """θ of positions 1 … depth from an examination, an array, or None; `log` is None where rows stay in a frame.

    Fitted on this very log, θ and the values have common errors, cluster by cluster; on another, independent ones.
    """
    if given is None:
        return None
    if not hasattr(given, "theta_"):
        return Examined(theta=_checked(given, depth))
    theta, offset = _checked(given.theta_, depth), getattr(given, "offset_", None)
    if offset is not None:
        offset = np.asarray(offset, np.float64)[:depth]
    parts = _parts(given, depth, affine=offset is not None)
    if parts is None:
        return Examined(theta=theta, offset=offset)
    if log is not None and getattr(given, "fingerprint_", None) == log.fingerprint and len(parts) == log.n_clusters:
        return Examined(theta=theta, offset=offset, influence=parts)
    return Examined(theta=theta, offset=offset, effects=_independent(parts), size=len(parts))


def _checked(given: Any, depth: int) -> Floats:
    try:
        theta = np.asarray(given, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"evaluate: {type(given).__name__} is not an examination; pass ol.propensity.Examination(…).fit(log), or θ "
            "as an array."
        ) from error
    if theta.ndim != 1 or len(theta) < depth:
        raise InputError(
            f"evaluate: θ has shape {theta.shape}, and the log has {depth} positions; fit it on a log of that depth."
        )
    if not bool(np.all(np.isfinite(theta) & (theta > 0))):
        at = int(np.flatnonzero(~(np.isfinite(theta) & (theta > 0)))[0])
        raise InputError(f"evaluate: θ must be above 0 at every position, and is {theta[at]} at position {at + 1}.")
    return theta[:depth]


def _parts(given: Any, depth: int, *, affine: bool) -> Floats | None:
    """Each cluster's part in the parameters, (U, P); None where they are taken as known."""
    found = [getattr(given, "influence_", None)]
    if affine:
        found.append(getattr(given, "offset_influence_", None))
    if any(part is None for part in found):
        return None
    parts = np.hstack([np.asarray(part, np.float64)[:, :depth] for part in found])
    return parts if parts.any() else None


def _independent(parts: Floats) -> Floats:
    """Parts whose squares add up to the covariance ΣψψT/U/(U − 1): √λ·v of its eigenvectors, (P, P)."""
    U = len(parts)
    values, vectors = np.linalg.eigh(parts.T @ parts / U / max(U - 1, 1))
    return (vectors * np.sqrt(np.maximum(values, 0.0))).T
