"""Lists as a logging policy draws them, with the probability of everything that was shown.

π0 = s · uniform over ordered lists + (1 − s) · policy, where the policy is a coin among rankers, or Plackett-Luce. Both
parts have exact probabilities, and those of a mixture are the mixtures of theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from openloop.core.feedback import Floats
from openloop.core.vocabulary import Bools, Int64s

MAX_SETS = 1_000  # sets of items above a position, over which Plackett-Luce is summed for its marginals


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lists:
    """Lists of N requests: a_nk, whether the order was drawn at random, and π0.

    `exposure` is π0_j(a_k), None where it is too long a sum; `arms` is each shown item's rank under each ranker.
    """

    item: Int64s  # (N, K)
    shuffled: Bools  # (N,)
    prefix: Floats  # (N, K): π0(a_1:k)
    exposure: Floats | None  # (N, K, K)
    arms: Int64s  # (N, K, A), from 1


def draw_lists(scores: Floats, depth: int, rng: np.random.Generator, *, shuffle: float, soft: bool) -> Lists:
    """Lists of `depth` items from scores (A, N, I) of A rankers; `soft`: by Plackett-Luce with the first one's."""
    A, N, I = scores.shape
    if soft:
        order = np.argsort(-(scores[0] + rng.gumbel(size=(N, I))), axis=1)  # (N, I)
    else:
        order = np.argsort(-scores[rng.integers(A, size=N), np.arange(N)], axis=1)
    shuffled = rng.random(N) < shuffle
    order[shuffled] = np.argsort(rng.random((int(shuffled.sum()), I)), axis=1)
    item = order[:, :depth]  # (N, K)
    arms = np.moveaxis(np.take_along_axis(ranks(scores), item[None], axis=2), 0, 2)  # (N, K, A)
    prefix = plackett_luce_prefix(scores[0], order, depth) if soft else _rankers_prefix(arms)
    exposure = plackett_luce_exposure(scores[0], item) if soft else _rankers_exposure(arms)
    by_chance = np.cumprod(1 / (I - np.arange(depth)))  # (K,): of the first k of a shuffled list
    return Lists(
        item=item,
        shuffled=shuffled,
        prefix=shuffle * by_chance + (1 - shuffle) * prefix,
        exposure=None if exposure is None else shuffle / I + (1 - shuffle) * exposure,
        arms=arms,
    )


def ranks(scores: Floats) -> Int64s:
    """Ranks from 1 along the last axis, the highest score first."""
    order = np.argsort(-scores, axis=-1)
    found = np.empty_like(order)
    np.put_along_axis(found, order, np.broadcast_to(np.arange(1, scores.shape[-1] + 1), order.shape), axis=-1)
    return found


def _rankers_prefix(arms: Int64s) -> Floats:
    """The share of rankers that show the same list down to position k, (N, K)."""
    k = np.arange(1, arms.shape[1] + 1)[:, None]
    return np.cumprod(arms == k, axis=1).mean(axis=2)


def _rankers_exposure(arms: Int64s) -> Floats:
    """The share of rankers that show a_k at position j, (N, K, K)."""
    j = np.arange(1, arms.shape[1] + 1)[:, None]
    return (arms[:, :, None, :] == j).mean(axis=3)


def plackett_luce_prefix(scores: Floats, order: Int64s, depth: int) -> Floats:
    """Π_{j ≤ k} e^{s_aj} / Σ_{items not above j} e^s, (N, K); `order` (N, I) begins with the list that was drawn."""
    v = np.take_along_axis(_attraction(scores), order, axis=1)  # (N, I)
    left = np.cumsum(v[:, ::-1], axis=1)[:, ::-1]  # of this item and all below it: no difference of large sums
    return np.cumprod(v[:, :depth] / left[:, :depth], axis=1, dtype=np.float64)


def plackett_luce_exposure(scores: Floats, item: Int64s) -> Floats | None:
    """π0_j(a_k), (N, K, K): over each set S of items that may be above position j, P(S)·v_i/Σ_{∉S} v.

    None where there are more than `MAX_SETS` of these sets.
    """
    (N, I), K = scores.shape, item.shape[1]
    if sum(comb(I, above) for above in range(K)) > MAX_SETS:
        return None
    v = _attraction(scores)
    marginal = np.zeros((N, I, K))
    level: dict[tuple[int, ...], Floats] = {(): np.ones(N)}  # P(S): exactly these items are above position j
    for j in range(K):
        above, level = level, {}
        for S, p in above.items():
            rest = [i for i in range(I) if i not in S]
            chance = p[:, None] * v[:, rest] / v[:, rest].sum(axis=1, keepdims=True)  # (N, I - j)
            marginal[:, rest, j] += chance
            for i, column in zip(rest, chance.T, strict=True):
                grown = tuple(sorted((*S, i)))
                level[grown] = column + level.get(grown, 0.0)
    return np.take_along_axis(marginal, item[:, :, None], axis=1)


def _attraction(scores: Floats) -> Floats:
    return np.exp(scores - scores.max(axis=1, keepdims=True))
