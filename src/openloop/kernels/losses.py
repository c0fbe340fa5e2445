"""Losses of rows as weighted squares: the loss itself, or a quadratic bound that touches it at the prediction.

    (y - z)²;    |y - z|, and (y - z)²/2ε + ε/2 within ε of 0;    log(1 + eᶻ) - yz, y a label 0 or 1, z a logit.

Such a square lies above its loss everywhere, so whatever lowers the one lowers the other by as much or more.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.kernels.compiling import inlined

Array = npt.NDArray[Any]


class Loss(IntEnum):
    """What is lowered for each row."""

    SQUARED = 0
    ABSOLUTE = 1
    LOGISTIC = 2


@inlined
def squares(loss: int, smoothing: Any, y: Array, v: Array, e: Array) -> float:
    """Residuals e = y - z and weights v become those of the squares; returns the sum of the weighted losses at z."""
    if loss == Loss.ABSOLUTE:
        return _absolute(smoothing, v, e)
    if loss == Loss.LOGISTIC:
        return _logistic(y, v, e)
    return _squared(v, e)


@inlined
def _squared(v: Array, e: Array) -> float:
    total = 0.0
    for r in range(e.size):
        total += v[r] * e[r] * e[r]
    return total


@inlined
def _absolute(smoothing: Any, v: Array, e: Array) -> float:
    """|t| ≤ t²/2|e| + |e|/2 for any t."""
    total = 0.0
    for r in range(e.size):
        size = max(abs(e[r]), smoothing)
        v[r] /= size + size
        total += v[r] * (e[r] * e[r] + size * size)
    return total


@inlined
def _logistic(y: Array, v: Array, e: Array) -> float:
    """log(1 + eᵗ) - yt ≤ log(1 + eᶻ) - yz + (t - z)(σ(z) - y) + λ(t - z)² for any t (Jaakkola & Jordan 2000).

    λ = tanh(|z|/2)/4|z|, and 1/8 at z = 0. But for a constant that is λ times the square of (y - ½)/2λ - t.
    """
    total = 0.0
    for r in range(e.size):
        z = float(y[r]) - float(e[r])
        away = -np.expm1(-abs(z))  # 1 - e^-|z|
        curvature = away / (2 - away) / (4 * abs(z)) if z != 0 else 0.125  # λ
        total += v[r] * (np.log(2 - away) + max(z, 0.0) - y[r] * z)
        v[r] *= curvature
        e[r] = (y[r] - 0.5) / (2 * curvature) - z
    return total


def squares_numpy(loss: Loss, smoothing: float, y: Array, z: Array) -> tuple[Array, Array, Array]:
    """The loss of each row at z, and the weight and the residual of its square."""
    e = y - z
    if loss is Loss.SQUARED:
        return e**2, np.ones_like(e), e
    if loss is Loss.ABSOLUTE:
        size = np.maximum(np.abs(e), smoothing)
        return (e**2 / size + size) / 2, 1 / (2 * size), e
    size = np.maximum(np.abs(z), 1e-100)  # where tanh(x)/x is 1
    curvature = np.tanh(size / 2) / (4 * size)
    return np.logaddexp(0, z) - y * z, curvature, (y - 0.5) / (2 * curvature) - z
