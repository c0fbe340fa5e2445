"""Gradient of min_P F(P, Q) in Q: what a block of users adds to it, and to the diagonal of its curvature.

    F = Σ w (y - c - a_u - b_i - v_uᵀw_i)² + Σ_u p_uᵀΛp_u + Σ_i q_iᵀΛq_i,    p_u = [v_u a_u], q_i = [w_i b_i].

At users' vectors that minimise F given Q the derivative of the minimum is that of F alone (the envelope theorem):
∂f/∂q_i = 2(Λq_i - Σ_u w e x_u) with x_u = [v_u 1] and the residual e. The diagonal of F's own curvature is
2(Λ + Σ_u w x_u²). Both sums add up over blocks of users.

Kernels know nothing about models. A block is summed by one thread, in one order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.kernels.compiling import SUMMING, njit
from openloop.kernels.least_squares import Rows

Array = npt.NDArray[Any]
Pointers = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]


def add_gradient(rows: Rows, Q: Array, P: Array, c: float, sums: Array) -> float:
    """Add Σ w e x_u and Σ w x_u² of these rows to sums (I, 2, K + 1); returns Σ w e²."""
    return float(_add(rows.ptr, rows.partner, rows.y, rows.w, Q, P, P.dtype.type(c), sums))


@njit(cache=True, nogil=True, fastmath=SUMMING)
def _add(ptr: Pointers, partner: Ints, y: Array, w: Array, Q: Array, P: Array, c: Any, sums: Array) -> float:
    K = P.shape[1]
    x, squares, loss = np.empty(K, P.dtype), np.empty(K, P.dtype), 0.0
    for u in range(ptr.size - 1):
        for j in range(K):
            x[j] = P[u, j]
        x[K - 1] = 1
        for j in range(K):
            squares[j] = x[j] * x[j]
        own = c + P[u, K - 1]
        for row in range(ptr[u], ptr[u + 1]):
            # An item's two sums lie side by side: they are fetched from memory together.
            q, first, second = Q[partner[row]], sums[partner[row], 0], sums[partner[row], 1]
            s = P.dtype.type(0)
            for j in range(K):
                s += q[j] * x[j]
            e, v = y[row] - own - s, w[row]
            ve = v * e
            loss += ve * e
            for j in range(K):
                first[j] += ve * x[j]
                second[j] += v * squares[j]
    return loss


def add_gradient_numpy(rows: Rows, Q: Array, P: Array, c: float, sums: Array) -> float:
    """The same by the formula, all rows at once."""
    u = np.repeat(np.arange(len(rows)), np.diff(rows.ptr))
    x = P[u].copy()  # (n, K + 1)
    x[:, -1] = 1
    e = rows.y - c - P[u, -1] - np.einsum("nk,nk->n", Q[rows.partner], x)
    np.add.at(sums[:, 0], rows.partner, (rows.w * e)[:, None] * x)
    np.add.at(sums[:, 1], rows.partner, rows.w[:, None] * x**2)
    return float(np.sum(rows.w * e**2))
