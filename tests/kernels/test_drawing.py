"""Logs drawn from a grid of chances."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.kernels.drawing import drawn_cells, drawn_cells_numpy

RNG = np.random.default_rng(0)
CHANCE = RNG.uniform(0, 0.4, (40, 25)).astype(np.float32)
FACTOR = RNG.uniform(0.5, 2, 40)


@pytest.mark.parametrize("room", [0, 10, 100_000], ids=["none", "too little", "enough"])
def test_the_kernel_is_its_definition_whatever_room_it_was_given(room):
    for seed in range(5):
        wanted = drawn_cells_numpy(seed, CHANCE, FACTOR)
        np.testing.assert_array_equal(drawn_cells(seed, CHANCE, FACTOR, room), wanted)


def test_no_chance_is_never_drawn_and_certainty_always():
    sure = np.array([[0.0, 1.0, 2.0]], np.float32)  # a balanced p may exceed 1
    for seed in range(20):
        assert drawn_cells(seed, sure, np.ones(1), 3).tolist() == [1, 2]
        assert drawn_cells(seed, sure, np.zeros(1), 3).tolist() == []


def test_cells_are_drawn_as_often_as_their_chance_says_and_independently():
    runs = 4000
    seen = np.zeros((runs, CHANCE.size), bool)
    for seed in range(runs):
        seen[seed, drawn_cells(seed, CHANCE, FACTOR, 300)] = True
    p = (CHANCE * FACTOR[:, None]).ravel()
    z = (seen.mean(axis=0) - p) / np.sqrt(p * (1 - p) / runs + 1e-12)
    assert abs(z.std() - 1) < 0.1
    neighbours = np.corrcoef(seen[:, 7], seen[:, 8])[0, 1]
    assert abs(neighbours) < 4 / np.sqrt(runs)
