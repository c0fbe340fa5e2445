"""θ for a log of impressions: from a fitted examination or from numbers, with its error where it was fitted."""

from __future__ import annotations

from typing import Any

import numpy as np

from openloop.core.feedback import Floats
from openloop.core.shown_moments import Examined
from openloop.errors import InputError


def theta_of(exam: Any, depth: int) -> Floats | None:
    """θ of positions 1 … depth from an examination or an array; None stays None."""
    return None if exam is None else _checked(getattr(exam, "theta_", exam), depth)


def examined_by(exam: Any, theta: Floats | None, fingerprint: str, n_clusters: int) -> Examined | None:
    """θ with its error: fitted on the log of this fingerprint, θ and the values have common errors, cluster by cluster.

    Fitted on another log, it has independent ones.
    """
    if theta is None:
        return None
    offset = getattr(exam, "offset_", None)
    if offset is not None:
        offset = np.asarray(offset, np.float64)[: len(theta)]
    parts = _parts(exam, len(theta), affine=offset is not None)
    if parts is None:
        return Examined(theta=theta, offset=offset)
    if getattr(exam, "fingerprint_", None) == fingerprint and len(parts) == n_clusters:
        return Examined(theta=theta, offset=offset, influence=parts)
    return Examined(theta=theta, offset=offset, effects=_independent(parts), size=len(parts))


def _checked(values: Any, depth: int) -> Floats:
    try:
        theta = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"evaluate: {type(values).__name__} is not an examination; pass ol.propensity.Examination(…).fit(log), or "
            "θ as an array."
        ) from error
    if theta.ndim != 1 or len(theta) < depth:
        raise InputError(
            f"evaluate: θ has shape {theta.shape}, and the log has {depth} positions; fit it on a log of that depth."
        )
    if not bool(np.all(np.isfinite(theta) & (theta > 0))):
        at = int(np.flatnonzero(~(np.isfinite(theta) & (theta > 0)))[0])
        raise InputError(f"evaluate: θ must be above 0 at every position, and is {theta[at]} at position {at + 1}.")
    return theta[:depth]


def _parts(exam: Any, depth: int, *, affine: bool) -> Floats | None:
    """Each cluster's part in the parameters, (U, P); None where they are taken as known."""
    parts = [getattr(exam, "influence_", None)]
    if affine:
        parts.append(getattr(exam, "offset_influence_", None))
    if any(part is None for part in parts):
        return None
    stacked = np.hstack([np.asarray(part, np.float64)[:, :depth] for part in parts])
    return stacked if stacked.any() else None


def _independent(parts: Floats) -> Floats:
    """Parts whose squares add up to the covariance ΣψψT/U/(U − 1): √λ·v of its eigenvectors, (P, P)."""
    U = len(parts)
    values, vectors = np.linalg.eigh(parts.T @ parts / U / max(U - 1, 1))
    return (vectors * np.sqrt(np.maximum(values, 0.0))).T
