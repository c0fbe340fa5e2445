"""Uniforms of cells: the loop agrees with its definition, and the numbers look random in every direction."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from openloop.kernels.uniforms import block_uniforms, block_uniforms_numpy, cell_uniforms


@given(st.integers(0, 2**63 - 1), st.lists(st.integers(0, 2**31 - 1), max_size=5), st.integers(0, 30))
def test_the_loop_agrees_with_its_definition_bit_for_bit(seed, users, n_items):
    codes = np.array(users, np.int64)
    np.testing.assert_array_equal(block_uniforms(seed, codes, n_items), block_uniforms_numpy(seed, codes, n_items))


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


def test_neighbouring_seeds_are_far_apart():
    grids = np.array([block_uniforms(seed, np.arange(20), 50).ravel() for seed in range(20)])
    correlation = np.corrcoef(grids) - np.eye(20)
    assert np.abs(correlation).max() < 5 / np.sqrt(1000)
