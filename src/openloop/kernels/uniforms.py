"""A uniform number for each cell of a grid: a hash of seed, user and item, whatever is asked beside it.

Kernels know nothing about recommenders: what the numbers are for is the caller's matter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.kernels.bootstrap import GAMMA, mix
from openloop.kernels.compiling import njit

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]

# splitmix64 over seed, user and item in turn: h_u = mix(mix(seed + γ) + γu), word = mix(h_u + γ(i + 1)), of which the
# upper 53 bits are the uniform.
_mix = njit(nogil=True, cache=True)(mix)
SHIFT, UNIT = np.uint64(11), 2.0**-53


def cell_uniforms(seed: int, user: Array, item: Array) -> Floats:
    """Uniforms in [0, 1) of (user, item) pairs; shapes broadcast."""
    words = mix(user_words(seed, user) + (item.astype(np.uint64) + np.uint64(1)) * GAMMA)
    return (words >> SHIFT) * UNIT


def block_uniforms(seed: int, users: Array, n_items: int) -> Floats:
    """Uniforms in [0, 1) of all items for these users, (B, I)."""
    out = np.empty((len(users), n_items))
    _fill(user_words(seed, users), out)
    return out


def user_words(seed: int, user: Array) -> Words:
    """h_u, where each user's words begin."""
    return mix(mix(np.array([seed], np.uint64) + GAMMA) + user.astype(np.uint64) * GAMMA)


@njit(nogil=True, cache=True)
def _fill(of_user: Words, out: Floats) -> None:
    for b in range(of_user.size):
        word = of_user[b]
        for i in range(out.shape[1]):
            word += GAMMA
            out[b, i] = np.float64(_mix(word) >> SHIFT) * UNIT
