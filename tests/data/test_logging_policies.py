"""Probabilities of lists are those of all lists that might have been drawn."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from openloop.data.logging_policies import draw_lists, plackett_luce_exposure, plackett_luce_prefix, ranks

SCORES = np.array([1.2, -0.4, 0.3, 2.0])  # four items


def every_list(depth: int) -> np.ndarray:
    """All orders of four items, one for each list of this depth."""
    lists = {full[:depth]: full for full in permutations(range(4))}
    return np.array(list(lists.values()))


def test_ranks_count_from_1_and_the_highest_score_is_first():
    assert ranks(SCORES).tolist() == [2, 4, 3, 1]


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


def test_marginals_of_many_items_are_left_out():
    assert plackett_luce_exposure(np.zeros((2, 60)), np.zeros((2, 4), np.int64)) is None


def test_a_coin_between_two_rankers_by_hand():
    scores = np.array([[[3.0, 2.0, 1.0, 0.0]], [[3.0, 0.0, 2.0, 1.0]]])  # lists 0, 1 and 0, 2
    lists = draw_lists(scores, 2, np.random.default_rng(0), shuffle=0.0, soft=False)
    second = int(lists.item[0, 1])
    assert lists.item[0, 0] == 0
    assert lists.prefix.tolist() == [[1.0, 0.5]]
    assert lists.arms.tolist() == [[[1, 1], {1: [2, 4], 2: [3, 2]}[second]]]
    assert lists.exposure is not None
    assert lists.exposure.tolist() == [[[1.0, 0.0], [0.0, 0.5]]]


@pytest.mark.parametrize("soft", [False, True])
def test_lists_are_drawn_as_often_as_their_probability_says(soft):
    N = 40_000
    scores = np.tile(np.stack([SCORES, SCORES[::-1]])[:, None], (1, N, 1))
    lists = draw_lists(scores, 2, np.random.default_rng(1), shuffle=0.3, soft=soft)
    assert lists.exposure is not None
    assert lists.shuffled.mean() == pytest.approx(0.3, abs=4 * np.sqrt(0.21 / N))
    name = lists.item[:, 0] * 4 + lists.item[:, 1]
    slates, at = np.unique(name, return_index=True)
    p = lists.prefix[at, -1]
    assert p.sum() == pytest.approx(1, abs=1e-12)  # every list was drawn
    seen = np.bincount(name, minlength=16)[slates] / N
    np.testing.assert_array_less(np.abs(seen - p), 4.5 * np.sqrt(p * (1 - p) / N))
    for i in range(4):  # π0_j(i) from any row that shows i
        n, k = np.argwhere(lists.item == i)[0]
        for j in range(2):
            p = lists.exposure[n, k, j]
            assert np.mean(lists.item[:, j] == i) == pytest.approx(p, abs=4.5 * np.sqrt(p * (1 - p) / N))
