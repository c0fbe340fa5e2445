"""Positions of sorted values among sorted values: one walk along both, instead of a search for each value."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from openloop.kernels.compiling import njit

Ints = npt.NDArray[np.int64]


def positions(ordered: Ints, wanted: Ints) -> Ints:
    """As np.searchsorted(ordered, wanted), of sorted `wanted` in n + m steps."""
    if len(wanted) and bool(np.any(wanted[1:] < wanted[:-1])):
        return positions_plain(ordered, wanted)
    found = np.empty(len(wanted), np.int64)
    _walk(ordered, wanted, found)
    return found


def positions_plain(ordered: Ints, wanted: Ints) -> Ints:
    """As `positions`, by a search for each."""
    return np.searchsorted(ordered, wanted)


@njit(cache=True, nogil=True)
def _walk(ordered: Ints, wanted: Ints, found: Ints) -> None:
    at = 0
    for j in range(len(wanted)):
        while at < len(ordered) and ordered[at] < wanted[j]:
            at += 1
        found[j] = at
