"""Pieces of worlds: ratings with tastes, ways of being observed, models that are good somewhere, and exact answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import openloop as ol

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Draw = np.random.Generator

LIKED, DISLIKED = 5.0, 2.0  # ratings of relevant cells and of others
CUTS = (-0.8, 0.1, 1.0, 1.8)  # between the five levels of what people like


@dataclass(frozen=True, slots=True, kw_only=True)
class Taste:
    """What ratings are made of: an item's popularity (1, I), and how each user likes it, (U, I)."""

    popular: Floats
    liking: Floats


def ratings(draw: Draw, U: int, I: int) -> tuple[npt.NDArray[np.int64], Taste]:
    """Ratings 1 … 5 (U, I) of low rank with noise; popular items are liked better."""
    popular = draw.standard_normal((1, I))
    liking = draw.standard_normal((U, 4)) @ draw.standard_normal((4, I)) / 2 + 0.4 * popular
    Y = 1 + np.searchsorted(CUTS, liking + 0.7 * draw.standard_normal((U, I)))
    return Y, Taste(popular=popular, liking=liking)


def by_rating(Y: npt.NDArray[Any], step: float, base: Any) -> Floats:
    """p = base · step^(Y − 3), at most .5: a p near 1 would be another shape."""
    return np.clip(base * step ** (Y - 3.0), 1e-4, 0.5)


def good_at(
    draw: Draw,
    Y: npt.NDArray[Any],
    *,
    a: tuple[float, float],
    b: tuple[float, float],
    cut: float = 3.5,
    own: float = 0.1,
) -> dict[str, Floats]:
    """Models "A" and "B" by the size of their errors below and above a rating; at it, they err alike.

    The models err on the same cells, each by a size of its own to every user, which varies by `own`.
    """
    found: dict[str, Floats] = {}
    error = draw.standard_normal(Y.shape)
    for name, (low, high) in {"A": a, "B": b}.items():
        size = np.where(cut == Y, (low + high) / 2, np.where(cut < Y, high, low))
        found[name] = Y + size * np.exp(own * draw.standard_normal((len(Y), 1))) * error
    return found


def relevant_cells(draw: Draw, counts: npt.NDArray[Any], I: int) -> Flags:
    """counts[u] items of each user, at random (U, I)."""
    order = draw.random((len(counts), I)).argsort(axis=1).argsort(axis=1)
    return order < counts[:, None]


def lifted(draw: Draw, relevant: Flags, by: Any) -> Floats:
    """Scores (U, I): noise, and `by` more where an item is relevant."""
    return draw.standard_normal(relevant.shape) + by * relevant


def specialists(first: Flags, strong: float, weak: float) -> dict[str, Floats]:
    """How much models "A" and "B" lift relevant items: A where `first`, B elsewhere."""
    return {"A": np.where(first, strong, weak), "B": np.where(first, weak, strong)}


def world(relevant: Flags, p: Any, models: dict[str, Floats]) -> ol.simulate.World:
    """Relevant cells are liked, others are not, and each is observed with p."""
    Y = np.where(relevant, LIKED, DISLIKED).astype(np.float32)
    return ol.simulate.World(ratings=Y, propensities=np.broadcast_to(p, Y.shape), predictions=dict(models))


def clicks(draw: Draw, U: int, I: int) -> tuple[Flags, Taste]:
    """Clicks (U, I) on items that are all shown equally often: some are liked by many, and users have tastes."""
    popular = draw.normal(-2.0, 0.8, (1, I))
    liking = draw.standard_normal((U, I))
    q = np.clip(np.exp(popular + 0.6 * liking), 0.0, 0.9)
    shown = draw.random((U, I)) < 0.5
    return shown & (draw.random((U, I)) < q), Taste(popular=popular, liking=liking)


def exact_gamma(a: Floats, b: Floats, train: ol.Feedback, test: ol.Feedback) -> float:
    """Γ* of the difference in dcg@10 by bisection: the odds of p are off by up to Γ, π is recomputed, the worst case.

    π = p·s/(1 − p·t) with s and t the shares of test and train.
    """
    assert test.propensity is not None and test.share is not None and train.share is not None  # noqa: S101, PT018
    p, s, t = test.propensity, test.share, train.share[0]
    candidates = test.n_items - np.bincount(train.user, minlength=test.n_users)  # |C_u|, (U,)
    d = candidates[test.user] * test.rating * (_discounts(a, train, test) - _discounts(b, train, test))  # (n,)
    sign = np.sign(np.sum(d * (1 - p * t) / (p * s)))

    def worst(gamma: float) -> float:
        tilted = [p / (p + (1 - p) * odds) for odds in (1 / gamma, gamma)]
        few, many = np.sort([(1 - q * t) / (q * s) for q in tilted], axis=0)  # (n,) each
        return float(np.sum(sign * d * np.where(sign * d > 0, few, many)))

    low, high = 1.0, 1e6
    for _ in range(100):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if worst(middle) > 0 else (low, middle)
    return float(low)


def _discounts(scores: Floats, train: ol.Feedback, test: ol.Feedback) -> Floats:
    """1/log2(1 + rank) up to rank 10 of each test row among the user's items outside train, (n,)."""
    candidates = scores.copy()
    candidates[train.user, train.item] = -np.inf
    rank = 1 + (-candidates).argsort(axis=1).argsort(axis=1)[test.user, test.item]
    return np.where(rank <= 10, 1 / np.log2(1.0 + rank), 0.0)
