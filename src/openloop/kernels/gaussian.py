"""A draw of a normal vector from its precision and linear term, to be put into the kernels that need it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from openloop.kernels.cholesky import dot, factor, substitute
from openloop.kernels.compiling import inlined

Floats = npt.NDArray[np.float64]


@inlined
def draw_normal(A: Floats, g: Floats, z: Floats) -> None:
    """A⁻¹g + L⁻ᵀz = A⁻¹(g + Lz) in place of g, A = LLᵀ: N(A⁻¹g, A⁻¹) of standard normal z. L takes the place of A."""
    L = factor(A)
    for j in range(g.size):
        g[j] += dot(L[j, : j + 1], z[: j + 1])
    substitute(L, g)
