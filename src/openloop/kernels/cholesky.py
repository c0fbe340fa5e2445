"""Cholesky factors of small matrices and what they solve, to be put into the kernels that need them.

In double precision, as small penalties leave a normal matrix nearly singular; NaN where it is. The plain twin is
`np.linalg.cholesky`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.kernels.compiling import inlined

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

SINGULAR = 1e-14  # what is left of a diagonal entry of A by rounding alone


@inlined
def dot(x: Array, y: Array) -> Any:
    """xᵀy, in the type of x."""
    total = x.dtype.type(0)
    for j in range(x.size):
        total += x[j] * y[j]
    return total


@inlined
def factor(A: Floats) -> Floats:
    """L of A = LLᵀ, in its place, from the lower triangle; NaN where A is not positive definite."""
    for j in range(len(A)):
        for i in range(j):
            A[j, i] = (A[j, i] - dot(A[j, :i], A[i, :i])) / A[i, i]
        rest = A[j, j] - dot(A[j, :j], A[j, :j])
        A[j, j] = np.sqrt(rest) if rest > SINGULAR * A[j, j] else np.nan
    return A


@inlined
def substitute(L: Floats, g: Floats) -> float:
    """A⁻¹g in place of g; returns gᵀA⁻¹g."""
    for j in range(g.size):  # Lz = g
        g[j] = (g[j] - dot(L[j, :j], g[:j])) / L[j, j]
    gain = dot(g, g)
    for j in range(g.size - 1, -1, -1):  # Lᵀδ = z
        g[j] /= L[j, j]
        for i in range(j):
            g[i] -= L[j, i] * g[j]
    return gain
