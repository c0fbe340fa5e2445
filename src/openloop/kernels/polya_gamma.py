"""Pólya-Gamma draws PG(1, c), exactly, from a row's stream of numbers.

With ω ~ PG(1, c) a logistic likelihood is Gaussian given ω (Polson, Scott & Windle 2013, Theorem 1). They are drawn by
their Algorithm 1, after Devroye 2009: PG(1, c) = J*(1, z)/4 with z = |c|/2, and J* by rejection from an inverse
Gaussian below T and an exponential above it, by an alternating series. Kernels know nothing about models.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from openloop.kernels.compiling import inlined
from openloop.kernels.streams import normal, normal_cdf, uniform

if TYPE_CHECKING:
    import numpy as np

T = 0.64  # where the two proposals meet: near the best, which takes 1.0002 tries per draw
ROOT = math.sqrt(T)
LATE = 30.0  # z beyond which the part above T has a mass of 0 to double precision
# The n-th term of the series, over the first, is (2n + 1) r^{n(n + 1)} with r = exp(-2/x) below T and exp(-π²x/2)
# above, of which neither exceeds RATIO: most draws are taken before r is known.
RATIO = math.exp(-2 / T)


@inlined
def polya_gamma(word: np.uint64, c: float) -> float:
    """A draw of PG(1, c)."""
    z, k = 0.5 * abs(c), 0
    above = share_above(z)
    while True:
        if uniform(word, k) < above:
            x, k = T - math.log(uniform(word, k + 1)) / (math.pi**2 / 8 + 0.5 * z * z), k + 2
        else:
            x, k = _inverse_gaussian(word, k + 1, z)
        if _taken(x, uniform(word, k)):
            return 0.25 * x
        k += 1


@inlined
def share_above(z: float) -> float:
    """p/(p + q): p = π/(2K) exp(-KT) the mass of the proposal above T, K = π²/8 + z²/2, and q that below."""
    if z > LATE:
        return 0.0
    K = math.pi**2 / 8 + 0.5 * z * z
    p = math.pi / (2 * K) * math.exp(-K * T)
    q = 2 * (math.exp(-z) * normal_cdf((T * z - 1) / ROOT) + math.exp(z) * normal_cdf(-(T * z + 1) / ROOT))
    return p / (p + q)


@inlined
def _inverse_gaussian(word: np.uint64, k: int, z: float) -> tuple[float, int]:
    """A draw of IG(1/z, 1) given that it is below T, and the next number of the stream."""
    if z * T < 1:  # the mean lies above T: Algorithm 3, from the tail of a χ²
        while True:
            e, f = -math.log(uniform(word, k)), -math.log(uniform(word, k + 1))
            k += 2
            if e * e <= 2 * f / T:
                x = T / (1 + T * e) ** 2
                if uniform(word, k) < math.exp(-0.5 * z * z * x):
                    return x, k + 1
                k += 1
    mu = 1 / z
    while True:  # Algorithm 2, by Michael, Schucany & Haas 1976
        y = normal(word, k) ** 2
        x = mu * (1 + 0.5 * mu * y - 0.5 * math.sqrt(4 * mu * y + (mu * y) ** 2))
        if uniform(word, k + 1) * (mu + x) > mu:
            x = mu * mu / x
        k += 2
        if x <= T:
            return x, k


@inlined
def _taken(x: float, u: float) -> bool:
    """Whether u is below the alternating series 1 - 3r² + 5r⁶ - …"""
    if u < 1 - 3 * RATIO**2:
        return True
    r = math.exp(-2 / x) if x <= T else math.exp(-0.5 * math.pi**2 * x)
    total, n = 1.0, 0
    while True:  # partial sums lie above and below the limit in turn
        n += 1
        total -= (2 * n + 1) * r ** (n * (n + 1))
        if u <= total:
            return True
        n += 1
        total += (2 * n + 1) * r ** (n * (n + 1))
        if u > total:
            return False
