"""Logs drawn from a grid of chances: which cells a coin flip each would have observed.

A cell's coin is `kernels.uniforms` of its user and item under the draw's seed, so draws do not depend on threads or
blocks. Kernels know nothing about logs: positions in the flattened grid are all that leaves here.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from openloop.kernels.bootstrap import GAMMA, mix
from openloop.kernels.compiling import njit
from openloop.kernels.uniforms import SHIFT, UNIT, user_words

Floats = npt.NDArray[np.float64]
Grid = npt.NDArray[np.float32]
Cells = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_mix = njit(nogil=True, cache=True)(mix)


def drawn_cells(seed: int, chance: Grid, factor: Floats, room: int) -> Cells:
    """The cells (u, i), as u·I + i rising, whose uniform is below factor_u · chance_ui; about `room` of them."""
    words = user_words(seed, np.arange(len(chance)))  # (U,)
    out = np.empty(room, np.int64)
    found = _draw(words, chance, factor, out)
    if found > room:  # more than expected: now their number is known
        out = np.empty(found, np.int64)
        _draw(words, chance, factor, out)
    return out[:found]


@njit(nogil=True, cache=True)
def _draw(words: Words, chance: Grid, factor: Floats, out: Cells) -> int:
    """Fill `out` as far as it goes, and count all."""
    n_users, n_items = chance.shape
    found = 0
    for u in range(n_users):
        word, scale = words[u], factor[u]
        for i in range(n_items):
            word += GAMMA
            if np.float64(_mix(word) >> SHIFT) * UNIT < scale * chance[u, i]:
                if found < out.size:
                    out[found] = u * n_items + i
                found += 1
    return found
