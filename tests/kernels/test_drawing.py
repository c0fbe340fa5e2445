"""Logs drawn from a grid of chances."""

from __future__ import annotations

import numpy as np

from openloop.kernels.drawing import drawn_cells

RNG = np.random.default_rng(0)
CHANCE = RNG.uniform(0, 0.4, (40, 25)).astype(np.float32)
FACTOR = RNG.uniform(0.5, 2, 40)


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
