"""Smooth functions of totals over users: value, gradient, influence, and what leaving out one user changes.

Functions are objects rather than closures, so that an Estimate can be pickled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from openloop.core.feedback import Floats

BLOCK = 8192  # users
Function = Callable[[Any], Any]  # totals (..., m) → value (...); analytic in each total


def smooth(function: Function, columns: Floats) -> tuple[float, Floats, Floats]:
    """Value f(T), gradient ∇f(T) (m,) and influence (U,) of a smooth function of T = Σ_u columns_u (U, m)."""
    totals = columns.sum(axis=0)  # (m,)
    gradient = complex_step(function, totals)  # (m,)
    slope = np.einsum("um,m->u", columns, gradient)  # (U,); BLAS would wake its threads for it
    return float(function(totals)), gradient, len(columns) * (slope - slope.mean())


def complex_step(function: Function, totals: Floats) -> Floats:
    """∇f by f(x + ih)/h: exact to rounding, because no difference is taken (Squire & Trapp 1998)."""
    step = 1e-30 * np.maximum(np.abs(totals), 1.0)
    points = totals + 1j * np.diag(step)  # (m, m)
    return np.imag(function(points)) / step


def leave_one_out(function: Function, columns: Floats) -> Floats:
    """J_u = f(T − x_u) − f(T) of every user (U,), by one call; not finite where nothing is left without a user."""
    totals = columns.sum(axis=0)  # (m,)
    with np.errstate(invalid="ignore", divide="ignore"):
        # A block of users at a time: what the function makes on its way stays in the cache.
        values = [function(totals - columns[start : start + BLOCK]) for start in range(0, len(columns), BLOCK)]
        return np.concatenate([np.empty(0), *values]) - function(totals)


def squared(parts: Floats) -> float:
    """Σx²; BLAS would start threads for it, which is slow on a busy machine."""
    return float(np.einsum("u,u", parts, parts))


def freedom(units: int, effective: Any, heavy: Any) -> Any:
    """The degrees of freedom of t: max(1, min(m − 1, 3(Σψ²)²/Σψ⁴ − 1, (ΣW)²/ΣW² − 1)).

    Of m units that take part, `effective` are (Σψ²)²/Σψ⁴ of their parts and `heavy` (ΣW)²/ΣW² of their weights.
    """
    return np.maximum(1.0, np.minimum(np.minimum(3 * effective - 1, heavy - 1), units - 1))


@dataclass(frozen=True, slots=True)
class Shifted:
    """A number less the one total."""

    offset: float

    def __call__(self, totals: Any) -> Any:
        """The value at the totals (..., 1)."""
        return self.offset - totals[..., 0]


@dataclass(frozen=True, slots=True)
class Composed:
    """rule(f, g, …): f is a function of the first totals, g of those that follow; each has their number beside it."""

    rule: Callable[..., Any]
    parts: tuple[tuple[Function, int], ...]

    def __call__(self, totals: Any) -> Any:
        """The value at the totals (..., m)."""
        ends = accumulate(size for _, size in self.parts)
        return self.rule(*(f(totals[..., end - m : end]) for (f, m), end in zip(self.parts, ends, strict=True)))


def single(totals: Any) -> Any:
    """The one total itself."""
    return totals[..., 0]


def relative_gain(a: Any, b: Any) -> Any:
    """a/b − 1."""
    return a / b - 1.0
