"""Priors of the ordinal model and their draws: thresholds by Metropolis steps, and variances.

σ² ~ InvGamma(3, 2), γ ~ InvGamma(5, 4), and b_l ~ N(l - L/2, 1) in rising order. A level's likelihood depends on its
two thresholds alone, so every second threshold can move at once, each accepted by itself. Latent scores a are summed
out: they must be drawn anew right after, before anything else is drawn given them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Floats
from openloop.kernels.ordinal import bounds
from openloop.kernels.streams import gammas, normals, row_words, uniforms

SCALE, VARIANCE = (5.0, 4.0), (3.0, 2.0)  # shape and rate of the inverse gammas of γ and σ²

Likelihoods = Callable[[Floats], Floats]  # b → Σ log P(level) over the rows of each level, (L,)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Thresholds:
    """b, (L - 1,), and what the likelihoods of levels are with them, (L,)."""

    b: Floats
    logs: Floats


def centres(n: int) -> Floats:
    """The prior means of n thresholds, l - L/2."""
    return np.arange(1, n + 1, dtype=np.float64) - (n + 1) / 2


def move_thresholds(
    at: Thresholds, step: Floats, parity: int, likelihoods: Likelihoods, word: np.uint64
) -> tuple[Thresholds, npt.NDArray[np.bool_]]:
    """A Metropolis step of every second threshold, from number `parity`; and which of all were moved, (L - 1,).

    Normal proposals with standard deviations `step`. A move of one parity is reversible, so it can serve as the
    proposal of a larger model, to be taken by what that adds; one of both in turn is not.
    """
    b, which = at.b, np.arange(parity, len(at.b), 2)
    words = row_words(word, np.arange(2 * len(b)))
    proposed = b.copy()
    proposed[which] += step[which] * normals(words[which])
    edges, centre = bounds(b), centres(len(b))
    inside = (edges[:-2] < proposed) & (proposed < edges[2:])
    proposed = np.where(inside, proposed, b)
    logs = likelihoods(proposed)
    gain = (logs - at.logs)[:-1] + (logs - at.logs)[1:]  # each threshold has its two levels to itself
    prior = 0.5 * ((b - centre) ** 2 - (proposed - centre) ** 2)
    taken = inside & (np.log(uniforms(words[len(b) :])) < gain + prior)
    taken[1 - parity :: 2] = False
    beside = np.append(taken, False) | np.append(False, taken)  # levels beside a threshold that moved
    return Thresholds(b=np.where(taken, proposed, b), logs=np.where(beside, logs, at.logs)), taken


def draw_variance(vectors: Floats, mean: Floats, word: np.uint64) -> Floats:
    """σ² ~ InvGamma(3 + N/2, 2 + Σ_i (u_i - μ)²/2), (d,)."""
    rate = VARIANCE[1] + np.square(vectors - mean).sum(axis=0) / 2
    return rate / gammas(row_words(word, np.arange(len(mean))), VARIANCE[0] + len(vectors) / 2)
