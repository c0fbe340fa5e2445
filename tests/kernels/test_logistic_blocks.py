"""The logistic part of a joint model: levels of unobserved cells, ω, and Gaussian blocks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.special import expit

from openloop.kernels.joint_cells import GridCells, Observing, Ratings, chances, observed_chances, sampled_cells
from openloop.kernels.logistic_blocks import (
    Prior,
    augment,
    draw_blocks,
)
from openloop.kernels.streams import stream_word

L, WORDS = 3, (stream_word(0, 1), stream_word(0, 2))
POOL = ThreadPoolExecutor(2)


def world(U=12, I=9, seed=0):
    rng = np.random.default_rng(seed)
    ratings = Ratings(rng.normal(size=(U, 2)), rng.normal(size=(I, 2)), np.ones(U), np.ones(I), np.array([-0.5, 0.5]))
    effects = rng.normal(-1, 0.7, (U, L)), rng.normal(0, 0.5, (I, L))
    observing = Observing(rng.normal(size=(U, 2)), rng.normal(size=(I, 2)), *effects)
    seen = rng.random((U, I)) < 0.3
    ptr = np.append(0, np.cumsum(seen.sum(axis=1)))
    observed = GridCells(ptr, np.nonzero(seen)[1].astype(np.int32), rng.integers(0, L, ptr[-1]).astype(np.int8), I)
    return ratings, observing, observed


def test_levels_of_unobserved_cells_have_their_law():
    ratings, observing, observed = world(U=2, I=3)
    cells, draws = sampled_cells(observed, 1.0, WORDS[0], POOL), 1500
    counts = np.zeros((len(cells.item), L))
    for k in range(draws):
        state = augment(cells, ratings, observing, (stream_word(k, 5), WORDS[1]), POOL).state
        counts[np.arange(len(state)), state >> 1] += 1
    chance = chances(ratings, cells.user, cells.item) * (1 - observed_chances(observing, cells.user, cells.item))
    chance /= chance.sum(axis=1, keepdims=True)
    unseen = cells.code < 0
    z = (counts - draws * chance) / np.sqrt(draws * chance * (1 - chance))
    assert unseen.sum() >= 3
    assert np.abs(z[unseen]).max() < 4


def test_alternating_draws_have_the_posterior_of_a_logistic_model():
    # One user, 40 items of one level, 8 observed, no vectors: λ has a posterior that a grid gives.
    n, seen = 40, np.arange(40) < 8
    ratings = Ratings(np.zeros((1, 1)), np.zeros((n, 1)), np.ones(1), np.ones(n), np.array([50.0]))  # level 0 alone
    cells = GridCells(np.array([0, n]), np.arange(n, dtype=np.int32), np.where(seen, 0, -1).astype(np.int8), n)
    prior, psi = Prior(np.array([-1.0, 0.0]), 0.8), np.linspace(-1, 1, n)[:, None].repeat(2, 1)
    grid = np.linspace(-6, 4, 4001)
    logs = -((grid + 1) ** 2) / 1.6 - np.logaddexp(0, (1 - 2 * seen) * (grid[:, None] + psi[:, 0])).sum(axis=1)
    weight = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    mean = weight @ grid
    sd = np.sqrt(weight @ (grid - mean) ** 2)
    at, kept = np.array([[-1.0, 0.0]]), []
    for k in range(1500):
        observing = Observing(np.zeros((1, 1)), np.zeros((n, 1)), at, psi)
        side = augment(cells, ratings, observing, (stream_word(k, 1), stream_word(k, 2)), POOL)
        at = draw_blocks(side, np.zeros((n, 1)), psi, prior, stream_word(k, 3), POOL)[1]
        kept.append(at[0, 0])
    assert abs(np.mean(kept) - mean) < 4 * sd * np.sqrt(3 / 1500)  # autocorrelation leaves a third of the draws
    assert np.std(kept) == pytest.approx(sd, rel=0.1)
    assert 0 < expit(mean) < 0.5
