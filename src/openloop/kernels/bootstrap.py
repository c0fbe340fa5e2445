"""The Poisson bootstrap as one matrix product W·X, whose weights W are drawn in blocks and never stored.

A replicate counts user u W_u times, W_u independent of all others (Hanley & MacGibbon 2006; Chamandy et al.
2012). Each random byte is one weight, so the law of W is Poisson(1) rounded to multiples of 1/256.

Kernels know nothing about estimates: what the columns are sums of is the caller's matter.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.errors import InputError
from openloop.kernels.compiling import SUMMING, fixed, njit

Floats = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]

# COUNTS[k] of the 256 bytes give weight k: of all such tables with Σa = Σka = 256 and Σk²a = 512 (mean 1 and
# variance 1 exactly) and the smallest possible error in Σk³a, the nearest to 256·Poisson(1) in χ². That
# error cannot be 0: k(k-1)(k-2) is a multiple of 6, and the 256 to which it would have to sum is not. With
# Σk³a = 1282 for 1280 the third central moment is 1 + 1/128.
COUNTS = np.array([93, 98, 43, 17, 4, 1])
# W = Σ_k 1{byte ≥ c_k}: the quantile function of that law.
CUTS = np.cumsum(COUNTS)[:-1].astype(np.uint8)

USERS = 1024  # a block's columns and weights stay in the first-level cache; a multiple of 8

# splitmix64 (Steele, Lea & Flood 2014): word j of a stream is mix(start + j·γ). Replicate b owns words
# b·n … (b+1)·n - 1 of one stream, so streams never overlap and threads hold no state.
GAMMA = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)


def bootstrap_sums(columns: Floats, replicates: int, seed: int, *, threads: int | None = None) -> Floats:
    """Row b is Σ_u W_bu · columns[u] over columns (U, m): same seed, same bits, whatever the thread count."""
    (X,) = fixed(np.asarray(columns, np.float64))  # (U, m)
    _check(X, replicates)
    totals = np.zeros((replicates, X.shape[1]))  # (replicates, m)
    workers = min(threads or os.cpu_count() or 1, replicates)
    edges = np.linspace(0, replicates, workers + 1).astype(np.int64)
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda a, b: _add_sums(X, a, b, _start(seed), totals), edges[:-1], edges[1:]))
    return totals


def _check(X: npt.NDArray[Any], replicates: int) -> None:
    if X.ndim != 2:
        raise InputError(f"bootstrap_sums: columns must be a users × m array, got shape {X.shape}.")
    if replicates < 1:
        raise InputError(f"bootstrap_sums: replicates must be at least 1, got {replicates}.")


def _start(seed: int) -> np.uint64:
    """The start of the stream: mixed, because neighbouring seeds should be far apart."""
    return mix(np.array([seed % 2**64], np.uint64) + GAMMA)[0]


def mix(z: Any) -> Any:
    """splitmix64's finaliser, on uint64 scalars or arrays."""
    z = (z ^ (z >> np.uint64(30))) * MIX_1
    z = (z ^ (z >> np.uint64(27))) * MIX_2
    return z ^ (z >> np.uint64(31))


_mix = njit(nogil=True, cache=True)(mix)


@njit(nogil=True, cache=True)
def _add_sums(X: Floats, first: int, last: int, start: np.uint64, totals: Floats) -> None:
    # Replicates pass over one block of users at a time, so the columns are read from memory only once.
    U, m = X.shape
    n_words = np.uint64((U + 7) // 8)
    block, weights = np.zeros((m, USERS)), np.empty(USERS)
    words, counts = np.empty(USERS // 8, np.uint64), np.empty(USERS, np.uint8)
    for u in range(0, U, USERS):
        size = min(USERS, U - u)
        for v in range(size):
            for c in range(m):
                block[c, v] = X[u + v, c]  # (m, USERS)
        for b in range(first, last):
            _draw_words(start, np.uint64(b) * n_words + np.uint64(u // 8), words)
            _draw_weights(words.view(np.uint8), counts, weights)
            for c in range(m):
                totals[b, c] += _dot(weights[:size], block[c, :size])


@njit(nogil=True, cache=True)
def _draw_words(start: np.uint64, position: np.uint64, words: Words) -> None:
    for j in range(words.size):
        words[j] = _mix(start + (position + np.uint64(j)) * GAMMA)


@njit(nogil=True, cache=True)
def _draw_weights(random: Bytes, counts: Bytes, weights: Floats) -> None:
    # W = Σ_k 1{byte ≥ c_k}, cut by cut: a pass over bytes handles 64 of them in one instruction.
    counts[:] = 0
    for cut in CUTS:
        for u in range(random.size):
            counts[u] += np.uint8(random[u] >= cut)
    for u in range(random.size):
        weights[u] = counts[u]


@njit(nogil=True, cache=True, fastmath=SUMMING)
def _dot(weights: Floats, x: Floats) -> float:
    total = 0.0
    for u in range(x.size):
        total += weights[u] * x[u]
    return total


def poisson_weights(seed: int, replicate: int, n_users: int) -> Floats:
    """The weights W_b of one replicate, in plain NumPy."""
    n_words = (n_users + 7) // 8
    position = np.uint64(replicate * n_words) + np.arange(n_words, dtype=np.uint64)
    words: Words = mix(_start(seed) + position * GAMMA)
    return np.searchsorted(CUTS, words.view(np.uint8)[:n_users], side="right").astype(np.float64)


def bootstrap_sums_numpy(columns: Floats, replicates: int, seed: int) -> Floats:
    """W·X, with W (replicates, U) held in memory."""
    W = np.array([poisson_weights(seed, b, len(columns)) for b in range(replicates)])  # (replicates, U)
    return W @ columns
