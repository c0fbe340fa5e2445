"""Products of user and item vectors, cell by cell, without a grid in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

BLOCK = 2**21  # numbers gathered at a time


def factor_products(A: Array, B: Array, user: Array, item: Array) -> Array:
    """a_u·b_i of a block of the grid, whose users are in a column, or of single cells, a part at a time."""
    if user.ndim == 2:
        return A[user[:, 0]] @ B[item].T  # (B, I)
    out, size = np.empty(len(user), np.result_type(A, B)), max(1, BLOCK // max(A.shape[1], 1))
    for start in range(0, len(user), size):
        part = slice(start, start + size)
        np.einsum("nk,nk->n", A[user[part]], B[item[part]], out=out[part])
    return out
