"""How far rounding, chance and the sample of SKEWED may put a MAE of Table 1 from the published one.

The MAE of the five models follows from the marginals p of the stars, which are printed with three digits. With the
mass m_r(p) of losses on cells of star r, and with w_r = α^max(4 − r, 0),

    true = Σ m_r(p),    naive = Σ m_r(p) w_r / Σ p_r w_r.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from scipy.special import ndtri

from openloop.core.feedback import Floats
from openloop.data.simulate import MARGINALS
from openloop.studies.schnabel2016.worlds import ALPHA, MODELS

ERRORS = 3.5  # standard errors that chance may put between two numbers
HALF_DIGIT = 0.0005  # of the marginals, and of the published MAE
STARS = np.arange(1.0, 6.0)
SHARE = 0.2  # of what it must be small against, the most that a tolerance may be
POINTS = 10_000  # of the normal distribution, by which SKEWED is integrated


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Expected:
    """What marginals imply: the true and naive MAE of the models, (models,), and the stars' shares in a log, (5,)."""

    true: Floats
    naive: Floats
    shares: Floats


def expected(p: Floats, alpha: float = ALPHA) -> Expected:
    """The MAE and the shares that follow from marginals."""
    w, m = weights(alpha), _masses(p)  # (5,), (models, 5)
    return Expected(true=m.sum(axis=1), naive=m @ w / (p @ w), shares=p * w / (p @ w))


def rounding(alpha: float = ALPHA) -> Expected:
    """How far all of it can move when each marginal moves by at most half a unit of its last digit, their sum 1.

    Each is linear in the marginals, or a ratio of two that are, so it is farthest at a vertex of these marginals.
    """
    p = np.array(MARGINALS)
    usual, moved = expected(p, alpha), [expected(q, alpha) for q in vertices(p)]

    def farthest(name: str) -> Floats:
        return np.max([np.abs(getattr(one, name) - getattr(usual, name)) for one in moved], axis=0)

    return Expected(true=farthest("true"), naive=farthest("naive"), shares=farthest("shares"))


def sampling(cells: int, alpha: float | None = None) -> Floats:
    """How far chance may put two samples of SKEWED apart in MAE, (models,); with α in the naive MAE.

    A mean of independent losses with variances v_r and weights w_r varies by Σ p_r w_r² v_r / (n (Σ p_r w_r)²).
    """
    p, w = np.array(MARGINALS), np.ones(5) if alpha is None else weights(alpha)
    variance = float(p * w**2 @ _skewed()[1] / (cells * (p @ w) ** 2))
    return between_samples(variance)


def between_samples(variance: float) -> Floats:
    """How far chance may put two samples of SKEWED apart, given the variance over samples, (models,): 0 for others."""
    return np.where(np.equal(MODELS, "SKEWED"), ERRORS * math.sqrt(2 * variance), 0.0)


def weights(alpha: float) -> Floats:
    """Propensities by star, but for k (section 6.2)."""
    return alpha ** np.maximum(4 - STARS, 0)


def _masses(p: Floats) -> Floats:
    """m_r(p): |Ŷ − Y| summed over the cells of each star, per cell, (models, 5)."""
    by_model = {
        "REC_ONES": np.array([4, 0, 0, 0, 0]) * p[4],  # as many ones as there are fives become fives
        "REC_FOURS": np.array([0, 0, 0, 1, 0]) * p[4],
        "ROTATE": np.array([4, 1, 1, 1, 1]) * p,
        "SKEWED": _skewed()[0] * p,
        "COARSENED": np.array([2, 1, 0, 0, 1]) * p,
    }
    return np.array([by_model[model] for model in MODELS])


def _skewed() -> tuple[Floats, Floats]:
    """Mean and variance of |Ŷ − r| for Ŷ ~ N(r, σ = (6 − r)/2), clipped to [0, 6], by star, (5,) each."""
    z = ndtri((np.arange(POINTS) + 0.5) / POINTS)  # (points,)
    losses = np.abs(np.clip(STARS[:, None] + (6 - STARS[:, None]) / 2 * z, 0, 6) - STARS[:, None])  # (5, points)
    return losses.mean(axis=1), losses.var(axis=1)


def vertices(p: Floats) -> Floats:
    """Those of {q: |q − p| ≤ h, Σq = Σp} for five marginals: two are h larger, two h smaller, and one is as it was."""
    return p + HALF_DIGIT * np.array(sorted(set(permutations((-1, -1, 0, 1, 1)))))  # (30, 5)


def capped(tolerance: float, *against: float) -> float:
    """A tolerance, but no more than a fifth of any of these numbers: a wider one would let anything pass."""
    return min(tolerance, *(SHARE * abs(number) for number in against))
