r"""Updates on pairs of items by the cells of a design: which item is drawn, its weight, how often to draw.

The learners of `openloop.kernels.violators` are two of the cells. MF-ADG draws from I \ i⁺ until it finds a violator,
and weighs it by the rank that the number of draws estimates; MF-AUC draws one item from O⁻_u, of weight 1. Two things
differ from those kernels: λ shrinks v_u, w_i and w_j in every update, also where no violator was found (j is then the
last item drawn), and the rate falls to 0 with the gradient steps taken, or with the updates, whichever ends the budget.
"""

from __future__ import annotations

from math import ceil
from typing import Any, NamedTuple

import numpy as np

from openloop.kernels.bootstrap import GAMMA
from openloop.kernels.compiling import njit
from openloop.kernels.violators import (
    Array,
    Likes,
    Rows,
    drawn_numpy,
    mixed,
    step,
    step_numpy,
    user_and_like,
    violator,
    violator_weights,
    words_numpy,
)


class PairCell(NamedTuple):
    r"""A cell of the design."""

    unliked: bool  # the other item is drawn from O⁻_u, not from I \ i⁺
    weighted: bool  # a violator found in draw N weighs C(⌊(|I| - 1)/N⌋), not 1
    until: bool  # items are drawn until one is a violator, at most (|I| - 1)/γ times, not once


class Budget(NamedTuple):
    """How far updates go, and when they end: after `steps` gradient steps, or after `updates` updates."""

    rate: float  # η
    reg: float  # λ, of v and w; biases are free
    steps: int
    updates: int


class Tally(NamedTuple):
    """What was done: updates, those of them that found a violator, and Σ of the violators' weights and hinges."""

    updates: int
    steps: int
    weights: float
    hinges: float


def draw_weights(cell: PairCell, n_items: int, gamma: float) -> Rows:
    """The weight of a violator found in draw N = 1, 2, …; there are as many entries as draws."""
    C = violator_weights(n_items, gamma)[: None if cell.until else 1]
    return C if cell.weighted else np.ones_like(C)


def pair_updates(
    V: Rows, W: Rows, K: int, likes: Likes, cell: PairCell, gamma: float, budget: Budget, start: np.uint64
) -> Tally:
    """Make all updates of the budget, in place."""
    return Tally(*_make_updates(V, W, K, likes, draw_weights(cell, len(W), gamma), cell, budget, start))


@njit(nogil=True, cache=True)
def _make_updates(
    V: Rows, W: Rows, K: int, likes: Likes, C: Rows, cell: PairCell, budget: Budget, start: np.uint64
) -> tuple[int, int, Any, Any]:
    t, s, weights, hinges = 0, 0, 0.0, 0.0
    while s < budget.steps and t < budget.updates:
        z = mixed(start + np.uint64(t) * GAMMA)
        rate = budget.rate * (1 - max(s / budget.steps, t / budget.updates))
        u, at = user_and_like(z, likes)
        i, liked, itself = likes.item[at], likes.item[likes.ptr[u] : likes.ptr[u + 1]], likes.item[at : at + 1]
        j, n, hinge = violator(V[u], W, i, liked if cell.unliked else itself, C.size, z + GAMMA + GAMMA)
        weight = C[n] if n < C.size else np.float32(0)
        step(V[u], W[i], W[j], K, np.float32(rate * weight), np.float32(rate * budget.reg))
        if n < C.size:
            s, weights, hinges = s + 1, weights + weight, hinges + hinge
        t += 1
    return t, s, weights, hinges


# -- twin ----------------------------------------------------------------------------------------------------


def pair_updates_numpy(
    theta: tuple[Array, Array, Array], likes: Likes, cell: PairCell, gamma: float, budget: Budget, start: np.uint64
) -> Tally:
    """The same, line by line, on V (U, K), W (I, K) and b (I,)."""
    V, W, b = theta
    I, t, s, weights, hinges = len(W), 0, 0, 0.0, 0.0
    tries = min(ceil((I - 1) / gamma), I - 1) if cell.until else 1
    while s < budget.steps and t < budget.updates:
        word = words_numpy(start, t, 2 + tries)
        u, i = drawn_numpy(likes, word)
        liked = likes.item[likes.ptr[u] : likes.ptr[u + 1]] if cell.unliked else [i]
        others, f = np.setdiff1d(np.arange(I), liked), W @ V[u] + b
        drawn: list[Any] = [others[int((x >> np.uint64(32)) / 2**32 * len(others))] for x in word[2:]]
        N = next((N for N, j in enumerate(drawn, 1) if f[i] - f[j] < 1), None)
        j = drawn[-1 if N is None else N - 1]
        weight = 0.0 if N is None else 1 - 1 / np.log2((I - 1) // N + 2) if cell.weighted else 1.0  # Eq. 4
        rate = budget.rate * (1 - max(s / budget.steps, t / budget.updates))
        step_numpy(theta, u, i, j, weight, rate, budget.reg)
        if N is not None:
            s, weights, hinges = s + 1, weights + weight, hinges + f[j] - f[i] + 1
        t += 1
    return Tally(t, s, weights, hinges)
