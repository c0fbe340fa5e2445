"""The random numbers of TensorFlow's seeded operations, by Philox 4×32-10 (Salmon et al. 2011), in NumPy.

`tf.random_uniform` and `tf.random_normal` with seeds: the graph's seed is the generator's key, the operation's seed the
upper half of its counter.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats32 = npt.NDArray[np.float32]

ROUNDS = 10
MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
WEYL = 0x9E3779B9, 0xBB67AE85
MASK, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
LEAST = np.float32(1e-7)  # of what a logarithm is taken


def uniform(n: int, graph_seed: int, seed: int) -> Floats32:
    """n values of tf.random_uniform, in [0, 1)."""
    return _unit(philox(n, graph_seed, seed))


def normal(n: int, graph_seed: int, seed: int) -> Floats32:
    """n values of tf.random_normal, by Box and Muller: (sin, cos)(2πb)·√(−2 ln a) of each pair a, b."""
    a, b = _unit(philox(n + n % 2, graph_seed, seed)).reshape(-1, 2).T
    radius, angle = np.sqrt(-2 * np.log(np.maximum(a, LEAST))), np.float32(2 * np.pi) * b
    return np.stack([np.sin(angle) * radius, np.cos(angle) * radius], axis=1).ravel()[:n]


def philox(n: int, key: int, upper: int) -> npt.NDArray[np.uint32]:
    """n words: blocks of four from the counters (0, upper), (1, upper), …, under the key."""
    blocks = -(-n // 4)
    zero = np.zeros(blocks, np.uint64)
    c0, c1, c2, c3 = np.arange(blocks, dtype=np.uint64), zero, zero + np.uint64(upper), zero
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    for _ in range(ROUNDS):
        p0, p1 = np.uint64(MULTIPLIERS[0]) * c0, np.uint64(MULTIPLIERS[1]) * c2
        c0, c1, c2, c3 = (p1 >> HALF) ^ c1 ^ np.uint64(k0), p1 & MASK, (p0 >> HALF) ^ c3 ^ np.uint64(k1), p0 & MASK
        k0, k1 = (k0 + WEYL[0]) & 0xFFFFFFFF, (k1 + WEYL[1]) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3], axis=1).ravel()[:n].astype(np.uint32)


def _unit(words: npt.NDArray[np.uint32]) -> Floats32:
    """Their lower 23 bits as the fraction of a float in [1, 2), less 1."""
    return ((words & np.uint32(0x7FFFFF)) | np.uint32(0x3F800000)).view(np.float32) - np.float32(1)
