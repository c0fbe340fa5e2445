"""Uniforms of cells: by hand, and random in every direction."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

from openloop.kernels.uniforms import block_uniforms, cell_uniforms


def test_by_hand():
    # splitmix64 in whole numbers of Python.
    def mixed(z: int) -> int:
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return z ^ (z >> 31)

    gamma, seed, user, item = 0x9E3779B97F4A7C15, 42, 7, 3
    word = mixed((mixed((mixed((seed + gamma) % 2**64) + user * gamma) % 2**64) + (item + 1) * gamma) % 2**64)
    assert cell_uniforms(seed, np.array([user]), np.array([item])).tolist() == [(word >> 11) / 2**53]


@pytest.mark.parametrize("seed", [0, 1, 2**63 - 1])
def test_they_are_uniform_and_uncorrelated_between_neighbours(seed):
    grid = block_uniforms(seed, np.arange(300), 200)
    assert grid.min() >= 0
    assert grid.max() < 1
    assert kstest(grid.ravel(), "uniform").pvalue > 1e-3
    for near in (grid[1:] * grid[:-1], grid[:, 1:] * grid[:, :-1], grid[1:, 1:] * grid[:-1, :-1]):
        assert abs(near.mean() - 0.25) < 4 * np.sqrt(7 / 144 / near.size)  # E = 1/4, variance 7/144
    assert len(np.unique(grid)) == grid.size
