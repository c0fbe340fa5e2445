"""Probabilities of lists are those of all lists that might have been drawn."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from openloop.data.logging_policies import draw_lists, plackett_luce_exposure, plackett_luce_prefix

SCORES = np.array([1.2, -0.4, 0.3, 2.0])  # four items


def every_list(depth: int) -> np.ndarray:
    """All orders of four items, one for each list of this depth."""
    lists = {full[:depth]: full for full in permutations(range(4))}
    return np.array(list(lists.values()))


def test_plackett_luce_gives_all_lists_probability_1_in_all():
    order = every_list(3)
    prefix = plackett_luce_prefix(np.tile(SCORES, (len(order), 1)), order, 3)
    assert prefix[:, -1].sum() == pytest.approx(1, abs=1e-12)
    v = np.exp(SCORES)
    by_hand = v[1] / v.sum() * v[3] / (v.sum() - v[1]) * v[0] / (v[0] + v[2])
    at = next(n for n, full in enumerate(order) if full[:3].tolist() == [1, 3, 0])
    assert prefix[at, -1] == pytest.approx(by_hand, rel=1e-12)


def test_plackett_luce_marginals_are_sums_over_lists():
    order = every_list(3)
    chance = plackett_luce_prefix(np.tile(SCORES, (len(order), 1)), order, 3)[:, -1]
    exposure = plackett_luce_exposure(SCORES[None], np.array([[3, 1, 2]]))
    assert exposure is not None
    for k, i in enumerate((3, 1, 2)):
        for j in range(3):
            assert exposure[0, k, j] == pytest.approx(chance[order[:, j] == i].sum(), rel=1e-12)


def test_a_coin_between_two_rankers_by_hand():
    scores = np.array([[[3.0, 2.0, 1.0, 0.0]], [[3.0, 0.0, 2.0, 1.0]]])  # lists 0, 1 and 0, 2
    lists = draw_lists(scores, 2, np.random.default_rng(0), shuffle=0.0, soft=False)
    second = int(lists.item[0, 1])
    assert lists.item[0, 0] == 0
    assert lists.prefix.tolist() == [[1.0, 0.5]]
    assert lists.arms.tolist() == [[[1, 1], {1: [2, 4], 2: [3, 2]}[second]]]
    assert lists.exposure is not None
    assert lists.exposure.tolist() == [[[1.0, 0.0], [0.0, 0.5]]]
