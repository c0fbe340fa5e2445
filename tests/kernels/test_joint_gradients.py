"""Gradients of the likelihood of cells in thresholds and means of levels."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from numba import njit
from scipy.stats import norm

from openloop.kernels.joint_cells import (
    GridCells,
    Observing,
    Ratings,
    chances,
    observed_chances,
    sampled_cells,
)
from openloop.kernels.joint_gradients import cell_gradients, fast_density
from openloop.kernels.streams import stream_word

POOL = ThreadPoolExecutor(2)
U, I, L = 8, 6, 4


@njit
def _densities(x):
    out = np.empty(x.size)
    for k in range(x.size):
        out[k] = fast_density(x[k])
    return out


def world():
    rng = np.random.default_rng(0)
    scales = 1 / rng.gamma(5, 1 / 4, U), 1 / rng.gamma(5, 1 / 4, I)
    ratings = Ratings(rng.normal(size=(U, 2)), rng.normal(size=(I, 2)), *scales, np.array([-1.0, 0.1, 0.8]))
    effects = rng.normal(-1, 0.7, (U, L)), rng.normal(0, 0.5, (I, L))
    observing = Observing(rng.normal(size=(U, 2)), rng.normal(size=(I, 2)), *effects)
    seen = rng.random((U, I)) < 0.3
    ptr = np.append(0, np.cumsum(seen.sum(axis=1)))
    code = rng.integers(0, L, ptr[-1]).astype(np.int8)
    cells = GridCells(ptr, np.nonzero(seen)[1].astype(np.int32), code, I)
    return ratings, observing, sampled_cells(cells, 1.0, stream_word(0), POOL)


def logs(ratings, observing, cells, x):
    """The log-likelihood of each cell with b and m moved by x."""
    ratings = replace(ratings, thresholds=ratings.thresholds + x[: L - 1])
    observing = replace(observing, by_user=observing.by_user + x[L - 1 :])
    P, p = (of(part, cells.user, cells.item) for of, part in ((chances, ratings), (observed_chances, observing)))
    own = np.maximum(cells.code, 0)[:, None]
    seen = np.take_along_axis(P * p, own.astype(np.int64), axis=1)[:, 0]
    return np.log(np.where(cells.code >= 0, seen, np.sum(P * (1 - p), axis=1)))


def test_gradients_of_cells_are_differences():
    ratings, observing, cells = world()
    found = cell_gradients(ratings, observing, cells.user, cells.item, cells.code)
    step = 1e-6 * np.eye(2 * L - 1)
    ways = [(logs(ratings, observing, cells, x) - logs(ratings, observing, cells, -x)) / 2e-6 for x in step]
    np.testing.assert_allclose(found, np.array(ways).T, atol=1e-7)


def test_densities_are_those_of_the_normal_distribution():
    x = np.linspace(-9, 9, 5001)
    np.testing.assert_allclose(_densities(x), norm.pdf(x), rtol=0, atol=1e-8)
