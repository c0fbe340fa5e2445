"""Stochastic steps on pairs of items: a liked one, and another that should rank below it but does not.

ADG: Lim, McAuley & Lanckriet 2015, Algorithm 1 (OPT-ADG), where the other item is a violator found by drawing.
AUC: their MF-AUC, where the other item is drawn once, from those that the user does not like.

The model is f(u, i) = v_u·w_i + b_i (Eq. 1), in rows V = [v 1 0…] and W = [w b 0…]: f is then one product of
rows whose length suits vector instructions. Likes are lists by user: user u owns item[ptr[u]:ptr[u + 1]], ascending.

Kernels know nothing about ratings: who likes what, and how strongly, is the caller's matter.
"""

from __future__ import annotations

from math import ceil
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from openloop.kernels.bootstrap import GAMMA, mix
from openloop.kernels.compiling import SUMMING, njit

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Pointers = npt.NDArray[np.int64]

LANES = 16  # floats of one vector; rows are filled up to a multiple

mixed = njit(nogil=True, cache=True)(mix)


class Likes(NamedTuple):
    """Who likes what. A like is drawn from its user's in proportion to its weight, by Walker's alias method."""

    users: Ints  # those who are drawn
    ptr: Pointers  # (U + 1,)
    item: Ints  # (n,) ascending within a user
    keep: Rows  # (n,) the probability to stay at the place that was drawn …
    other: Pointers  # (n,) … and the place to go to otherwise


class Schedule(NamedTuple):
    """How far a step goes: its rate falls in a straight line to 0 at the end of all updates."""

    rate: float  # η
    reg: float  # λ, of v and w; biases are free
    updates: int


def violator_weights(n_items: int, gamma: float) -> Rows:
    """C(⌊(|I|-1)/N⌋) of a violator found in draw N = 1, 2, …; there are as many entries as draws, (|I|-1)/γ.

    More than |I|-1 draws are never made: a violator found then has C = 0.
    """
    tries = min(ceil((n_items - 1) / gamma), n_items - 1)
    k = (n_items - 1) // np.arange(1, tries + 1)
    return (1 - 1 / np.log2(k + 2)).astype(np.float32)  # Eq. 4: C(k) = 1 - 1/log2(k + 2)


def rows(factors: Array, last: Array | float) -> Rows:
    """[factors last 0…], filled up to whole vectors."""
    n, K = factors.shape
    out = np.zeros((n, -(-(K + 1) // LANES) * LANES), np.float32)
    out[:, :K], out[:, K] = factors, last
    return out


# -- draws ---------------------------------------------------------------------------------------------------
# Update t owns a stream of splitmix64 that begins at mix(start + t·γ): its draws depend neither on the updates
# before it nor on the thread that makes it. Word 1 names the user, word 2 the like, the others the other item.


@njit(nogil=True, cache=True)
def _below(word: np.uint64, n: Any) -> Any:
    """A whole number in 0 … n - 1, from the upper half of a word."""
    return np.int64(((word >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@njit(nogil=True, cache=True)
def user_and_like(z: np.uint64, likes: Likes) -> tuple[Any, Any]:
    """A user and the place of one of the user's likes; the lower half of a word decides whether to stay there."""
    u = likes.users[_below(mixed(z + GAMMA), likes.users.size)]
    word, first, last = mixed(z + GAMMA + GAMMA), likes.ptr[u], likes.ptr[u + 1]
    at = first + _below(word, last - first)
    stay = np.float64(word & np.uint64(0xFFFFFFFF)) < 4294967296.0 * np.float64(likes.keep[at])
    return u, at if stay else likes.other[at]


@njit(nogil=True, cache=True)
def _unbarred(r: Any, barred: Ints) -> Any:
    """The r-th item, from 0, that is not barred: r + the first k with barred[k] - k > r; the barred are ascending."""
    low, high = 0, barred.size
    while low < high:
        middle = (low + high) // 2
        if barred[middle] - middle > r:
            high = middle
        else:
            low = middle + 1
    return r + low


@njit(nogil=True, cache=True)
def alias_table(ptr: Pointers, weight: Floats) -> tuple[Rows, Pointers]:
    """`keep` and `other` of Likes. Equal weights keep every place, so they change no draw."""
    keep, other = np.ones(weight.size, np.float32), np.arange(weight.size)
    for u in range(ptr.size - 1):
        first, last = ptr[u], ptr[u + 1]
        if last > first:
            _alias(first, weight[first:last] * ((last - first) / weight[first:last].sum()), keep, other)
    return keep, other


@njit(nogil=True, cache=True)
def _alias(first: int, share: Floats, keep: Rows, other: Pointers) -> None:
    # Vose 1991: a place with less than its share is filled up by one with more.
    small, large = np.flatnonzero(share < 1), np.flatnonzero(share >= 1)
    small, n_small, n_large = np.append(small, large), small.size, large.size
    while n_small and n_large:
        s, b = small[n_small - 1], large[n_large - 1]
        keep[first + s], other[first + s] = share[s], first + b
        share[b] -= 1 - share[s]
        n_small -= 1
        if share[b] < 1:
            small[n_small] = b
            n_small, n_large = n_small + 1, n_large - 1


# -- steps ---------------------------------------------------------------------------------------------------


@njit(nogil=True, cache=True, fastmath=SUMMING)
def _product(v: Rows, w: Rows) -> Any:
    """f(u, i) = v_u·w_i + b_i (Eq. 1), of rows."""
    total = np.float32(0)
    for k in range(v.size):
        total += v[k] * w[k]
    return total


@njit(nogil=True, cache=True)
def step(v: Rows, above: Rows, below: Rows, K: int, move: np.float32, decay: np.float32) -> None:
    """A gradient step on C·(f(u, below) - f(u, above) + 1) + λ/2·(|v|² + |w_above|² + |w_below|²).

    move = ηC and decay = ηλ. Whole rows are stepped, then what is no factor is put right.
    """
    b_above, b_below = above[K], below[K]
    for k in range(v.size):
        x, p, q = v[k], above[k], below[k]
        v[k] = x + move * (p - q) - decay * x
        above[k] = p + move * x - decay * p
        below[k] = q - move * x - decay * q
    v[K], above[K], below[K] = np.float32(1), b_above + move, b_below - move


@njit(nogil=True, cache=True)
def violator(v: Rows, W: Rows, i: Any, barred: Ints, tries: int, z: np.uint64) -> tuple[Any, int, Any]:
    """Draw items that are not `barred` until one violates the margin of i: that item, the draw n = 0, 1, …, its hinge.

    After `tries` draws without a violator: the last item, n = tries, and a hinge that is not positive. A product that
    is NaN counts as a violator, so it shows in sums of hinges.
    """
    f, others = _product(v, W[i]), len(W) - barred.size
    j, hinge = np.int64(i), np.float32(0)
    for n in range(tries):
        z += GAMMA
        j = _unbarred(_below(mixed(z), others), barred)
        hinge = _product(v, W[j]) - f + np.float32(1)
        if not hinge <= 0:
            return j, n, hinge
    return j, tries, hinge


@njit(nogil=True, cache=True)
def adg_updates(
    V: Rows,
    W: Rows,
    K: int,
    likes: Likes,
    C: Rows,
    schedule: Schedule,
    start: np.uint64,
    first: int,
    last: int,
) -> tuple[int, float]:
    """Updates first … last - 1 of Algorithm 1, in place; returns how many found a violator, and Σ of their hinges."""
    found, hinges = 0, 0.0
    for t in range(first, last):
        z = mixed(start + np.uint64(t) * GAMMA)
        rate = schedule.rate * (1 - t / schedule.updates)
        u, at = user_and_like(z, likes)
        i, itself = likes.item[at], likes.item[at : at + 1]
        j, n, hinge = violator(V[u], W, i, itself, C.size, z + GAMMA + GAMMA)  # from I \ i⁺
        if n < C.size:
            step(V[u], W[i], W[j], K, np.float32(rate * C[n]), np.float32(rate * schedule.reg))
            found, hinges = found + 1, hinges + hinge
    return found, hinges


@njit(nogil=True, cache=True)
def auc_updates(
    V: Rows,
    W: Rows,
    K: int,
    likes: Likes,
    schedule: Schedule,
    start: np.uint64,
    first: int,
    last: int,
) -> tuple[int, float]:
    """Updates first … last - 1 on the hinge of a like and an item of O⁻_u, in place; returns what ADG's do."""
    found, hinges = 0, 0.0
    for t in range(first, last):
        z = mixed(start + np.uint64(t) * GAMMA)
        rate = np.float32(schedule.rate * (1 - t / schedule.updates))
        u, at = user_and_like(z, likes)
        i, liked = likes.item[at], likes.item[likes.ptr[u] : likes.ptr[u + 1]]
        j, n, hinge = violator(V[u], W, i, liked, 1, z + GAMMA + GAMMA)  # from O⁻_u
        if n == 0:
            step(V[u], W[i], W[j], K, rate, np.float32(rate * schedule.reg))
            found, hinges = found + 1, hinges + hinge
    return found, hinges


# -- twins ---------------------------------------------------------------------------------------------------


def words_numpy(start: np.uint64, t: int, n: int) -> npt.NDArray[np.uint64]:
    """The first n words of update t."""
    begin = mix(np.array([start]) + np.array([t], np.uint64) * GAMMA)
    return mix(begin + np.arange(1, n + 1, dtype=np.uint64) * GAMMA)


def drawn_numpy(likes: Likes, word: Array) -> tuple[int, int]:
    """The user and the liked item that the first two words name."""
    upper, lower = (word >> np.uint64(32)).astype(float) / 2**32, (word & np.uint64(2**32 - 1)).astype(float) / 2**32
    u = int(likes.users[int(upper[0] * len(likes.users))])
    at = likes.ptr[u] + int(upper[1] * (likes.ptr[u + 1] - likes.ptr[u]))
    return u, int(likes.item[at if lower[1] < likes.keep[at] else likes.other[at]])


def step_numpy(theta: tuple[Array, Array, Array], u: int, i: int, j: int, C: float, rate: float, reg: float) -> None:
    """V, W and b after a step on C·(f(u, j) - f(u, i) + 1) + λ/2·(|v_u|² + |w_i|² + |w_j|²), in place."""
    V, W, b = theta
    v, above, below = V[u].copy(), W[i].copy(), W[j].copy()
    V[u] -= rate * (C * (below - above) + reg * v)
    W[i] -= rate * (-C * v + reg * above)
    W[j] -= rate * (C * v + reg * below)
    b[i] += rate * C
    b[j] -= rate * C


def adg_updates_numpy(
    theta: tuple[Array, Array, Array], likes: Likes, gamma: float, schedule: Schedule, start: np.uint64, n: int
) -> tuple[int, float]:
    """The first n updates of Algorithm 1, line by line, on V (U, K), W (I, K) and b (I,)."""
    V, W, b = theta
    I, found, hinges = len(W), 0, 0.0
    tries = min(ceil((I - 1) / gamma), I - 1)
    for t in range(n):
        word = words_numpy(start, t, 2 + tries)
        u, i = drawn_numpy(likes, word)
        others = np.delete(np.arange(I), i)
        f = W @ V[u] + b
        for N in range(1, tries + 1):
            v = others[int((word[1 + N] >> np.uint64(32)) / 2**32 * (I - 1))]
            if f[i] - f[v] < 1:
                C = 1 - 1 / np.log2((I - 1) // N + 2)  # Eq. 4
                step_numpy(theta, u, i, v, C, schedule.rate * (1 - t / schedule.updates), schedule.reg)
                found, hinges = found + 1, hinges + f[v] - f[i] + 1
                break
    return found, hinges


def auc_updates_numpy(
    theta: tuple[Array, Array, Array], likes: Likes, schedule: Schedule, start: np.uint64, n: int
) -> tuple[int, float]:
    """The first n updates on the pairwise hinge, on V (U, K), W (I, K) and b (I,)."""
    V, W, b = theta
    found, hinges = 0, 0.0
    for t in range(n):
        word = words_numpy(start, t, 3)
        u, i = drawn_numpy(likes, word)
        unliked = np.setdiff1d(np.arange(len(W)), likes.item[likes.ptr[u] : likes.ptr[u + 1]])
        j = unliked[int((word[2] >> np.uint64(32)) / 2**32 * len(unliked))]
        hinge = V[u] @ (W[j] - W[i]) + b[j] - b[i] + 1
        if hinge > 0:
            step_numpy(theta, u, i, j, 1.0, schedule.rate * (1 - t / schedule.updates), schedule.reg)
            found, hinges = found + 1, hinges + hinge
    return found, hinges
