"""Random numbers of sampling kernels: uniform, normal, gamma and truncated normal, each a function of a key.

A key is hashed to a word (`stream_word`), the word and a row's number to the row's own word (`row_word`), whose numbers
k = 0, 1, … are splitmix64's. A draw takes a row's word and as many of its numbers as it needs, so nothing depends on
threads, on their number or on other rows. Two draws for one row come from two words: another key, or `row_word` again.

Each draw has a plain twin that takes an array of words. Kernels know nothing about models.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from openloop.kernels.bootstrap import GAMMA, MIX_1, MIX_2, mix
from openloop.kernels.compiling import njit

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]

ONE, SHIFT, UNIT = np.uint64(1), np.uint64(12), 2.0**-52  # 52 bits and a half: never 0 and never 1
ROOT_HALF = math.sqrt(0.5)
TAIL = 6.0  # standard deviations: beyond, truncated normals are drawn by rejection from exponentials

compiled = njit(nogil=True, cache=True)
_mix = compiled(mix)


def stream_word(seed: int, *key: int) -> np.uint64:
    """The word of a seed and the whole numbers of a key, as of chain, sweep and role."""
    word = seed
    for part in (0, *key):
        word = _mix_whole((word + (part + 1) * int(GAMMA)) % 2**64)
    return np.uint64(word)


def _mix_whole(z: int) -> int:
    """`mix` of a whole number of Python, many times quicker than of an array of one."""
    z = (z ^ (z >> 30)) * int(MIX_1) % 2**64
    z = (z ^ (z >> 27)) * int(MIX_2) % 2**64
    return z ^ (z >> 31)


@compiled
def row_word(word: np.uint64, row: int) -> np.uint64:
    """Where the stream of a row begins."""
    return _mix(word + (np.uint64(row) + ONE) * GAMMA)


def row_words(word: np.uint64, rows: Array) -> Words:
    """The same of many rows."""
    return mix(np.asarray(word) + (rows.astype(np.uint64) + ONE) * GAMMA)


# -- uniform and normal --------------------------------------------------------------------------------------


@compiled
def uniform(word: np.uint64, k: int) -> float:
    """Number k of a row's stream, strictly between 0 and 1."""
    return (np.float64(_mix(word + (np.uint64(k) + ONE) * GAMMA) >> SHIFT) + 0.5) * UNIT


def uniforms(words: Words, k: Any = 0) -> Floats:
    """The same of many rows."""
    numbers = np.atleast_1d(k).astype(np.uint64) + ONE  # of an array, as products of scalars warn when they wrap
    return ((mix(words + numbers * GAMMA) >> SHIFT) + 0.5) * UNIT


@compiled
def normal(word: np.uint64, k: int) -> float:
    """Number k as a standard normal: Φ⁻¹ of the uniform."""
    return normal_quantile(uniform(word, k))


def normals(words: Words, k: Any = 0) -> Floats:
    """The same of many rows."""
    return ndtri(uniforms(words, k))


@compiled
def normal_cdf(x: float) -> float:
    """Φ(x), to full relative precision in the lower tail."""
    return 0.5 * math.erfc(-x * ROOT_HALF)


# Wichura 1988, AS 241 (PPND16): Φ⁻¹ to about 1e-16, by a ratio of polynomials in each of three ranges.
CENTRE = np.array([
    [2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
     1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0],
    [5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
     5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0],
])  # fmt: skip
NEAR = np.array([
    [7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
     3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0],
    [1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
     6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0],
])  # fmt: skip
FAR = np.array([
    [2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
     2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0],
    [2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
     1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0],
])  # fmt: skip


@compiled
def normal_quantile(p: float) -> float:
    """Φ⁻¹(p) of p strictly between 0 and 1."""
    q = p - 0.5
    if abs(q) <= 0.425:
        return q * _ratio(CENTRE, 0.180625 - q * q)
    r = math.sqrt(-math.log(p if q < 0 else 1 - p))
    x = _ratio(NEAR, r - 1.6) if r <= 5 else _ratio(FAR, r - 5)
    return -x if q < 0 else x


@compiled
def _ratio(coefficients: Floats, x: float) -> float:
    above, below = 0.0, 0.0
    for j in range(8):
        above = above * x + coefficients[0, j]
        below = below * x + coefficients[1, j]
    return above / below


# -- gamma ---------------------------------------------------------------------------------------------------
# Marsaglia & Tsang 2000, for shapes α ≥ 1: with d = α - 1/3, c = 1/√(9d), x normal and v = (1 + cx)³ > 0, take dv with
# probability exp(x²/2 + d - dv + d log v). Below 1, Gamma(α) = Gamma(α + 1) U^{1/α}. Try t has numbers 2t + 1, 2t + 2.


@compiled
def gamma(word: np.uint64, shape: float) -> float:
    """A draw of Gamma(shape, 1)."""
    boost = 1.0 if shape >= 1 else uniform(word, 0) ** (1 / shape)
    d = (shape if shape >= 1 else shape + 1) - 1 / 3
    c, k = 1 / math.sqrt(9 * d), 1
    while True:
        x, y = normal(word, k), uniform(word, k + 1)
        v, k = (1 + c * x) ** 3, k + 2
        if v > 0 and math.log(y) < 0.5 * x * x + d - d * v + d * math.log(v):
            return d * v * boost


def gammas(words: Words, shape: Any) -> Floats:
    """The same of many rows."""
    shape = np.broadcast_to(np.asarray(shape, np.float64), words.shape)
    boost = np.where(shape >= 1, 1.0, uniforms(words) ** (1 / shape))
    d = np.where(shape >= 1, shape, shape + 1) - 1 / 3
    out, left, k = np.empty(words.shape), np.ones(words.shape, np.bool_), 1
    while left.any():
        x, y = normals(words[left], k), uniforms(words[left], k + 1)
        v = (1 + x / np.sqrt(9 * d[left])) ** 3
        log_v = np.log(np.where(v > 0, v, 1))
        took = (v > 0) & (np.log(y) < 0.5 * x * x + d[left] * (1 - v + log_v))
        at = np.flatnonzero(left)[took]
        out[at], left[at], k = d[at] * v[took], False, k + 2
    return out * boost


# -- truncated normal ----------------------------------------------------------------------------------------
# An interval above 0 is mirrored: its mass is then in the lower tail, where Φ keeps its relative precision. Draws are
# Φ⁻¹(Φ(low) + U(Φ(high) - Φ(low))). Beyond TAIL in one direction, with c < d the mirrored bounds as distances from 0,
# c + an exponential of rate c cut at d - c, taken with probability exp(-(x - c)²/2) (Robert 1995). Try t has numbers
# 2t, 2t + 1.


@compiled
def truncated_normal(word: np.uint64, low: float, high: float) -> float:
    """A standard normal given that it lies between low and high, either of which may be infinite."""
    if low > 0:
        return -_below(word, -high, -low)
    return _below(word, low, high)


@compiled
def _below(word: np.uint64, low: float, high: float) -> float:
    if high < -TAIL:
        return -_tail(word, -high, -low)
    below, above = normal_cdf(low), normal_cdf(high)
    p = below + uniform(word, 0) * (above - below)
    if not 0 < p < 1:
        return low if p <= 0 else high
    return min(max(normal_quantile(p), low), high)


@compiled
def _tail(word: np.uint64, low: float, high: float) -> float:
    mass, k = -math.expm1(-low * (high - low)), 0
    while True:
        beyond = -math.log1p(-mass * uniform(word, k)) / low
        if math.log(uniform(word, k + 1)) <= -0.5 * beyond * beyond:
            return min(low + beyond, high)
        k += 2


def truncated_normals(words: Words, low: Array, high: Array) -> Floats:
    """The same of many rows."""
    mirrored = low > 0
    low, high = np.where(mirrored, -high, low), np.where(mirrored, -low, high)
    out, far = np.empty(words.shape), high < -TAIL
    below = ndtr(low[~far])
    p = below + uniforms(words[~far]) * (ndtr(high[~far]) - below)
    out[~far] = np.clip(ndtri(p), low[~far], high[~far])
    out[far] = -_tails(words[far], -high[far], -low[far])
    return np.where(mirrored, -out, out)


def _tails(words: Words, low: Floats, high: Floats) -> Floats:
    mass, out, left, k = -np.expm1(-low * (high - low)), np.empty(words.shape), np.ones(words.shape, np.bool_), 0
    while left.any():
        beyond = -np.log1p(-mass[left] * uniforms(words[left], k)) / low[left]
        took = np.log(uniforms(words[left], k + 1)) <= -0.5 * beyond * beyond
        at = np.flatnonzero(left)[took]
        out[at], left[at], k = np.minimum(low[at] + beyond[took], high[at]), False, k + 2
    return out
