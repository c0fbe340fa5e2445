"""The E step of a mixture of ratings that are missing not at random: by hand, and laws."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from openloop.kernels.mixture_em import (
    Mixture,
    RatedCells,
    components,
    expected,
)


def rated(seed: int, shape=(7, 4, 3), density: float = 0.4) -> RatedCells:
    rng = np.random.default_rng(seed)
    user, item = np.nonzero(rng.random(shape[:2]) < density)
    return RatedCells.of(user, item, rng.integers(shape[2], size=len(user)), shape)


def mixture(seed: int, shape=(4, 3), size: int = 2) -> Mixture:
    rng = np.random.default_rng(seed)
    beta = rng.dirichlet(np.ones(shape[1]), (shape[0], size)).transpose(0, 2, 1)  # (I, L, Z)
    return Mixture(rng.dirichlet(np.ones(size)), beta, rng.uniform(0.1, 0.8, shape))


# one item, two levels, two components
BY_HAND = Mixture(np.array([0.25, 0.75]), np.array([[[0.2, 0.6], [0.8, 0.4]]]), np.array([[0.5, 0.1]]))


def test_an_observed_cell_by_hand():
    cells = RatedCells.of(np.array([0]), np.array([0]), np.array([1]), (1, 1, 2))
    given, log_row = components(cells, BY_HAND)
    # .25·.8·.1 + .75·.4·.1 = .02 + .03
    assert np.exp(log_row[0]) == pytest.approx(0.05)
    np.testing.assert_allclose(given, [[0.4, 0.6]])
    found = expected(cells, BY_HAND, given)
    np.testing.assert_allclose(found.observed, [[[0, 0], [0.4, 0.6]]])
    np.testing.assert_allclose(found.all, found.observed)


def test_an_unobserved_cell_by_hand():
    empty = np.empty(0, np.int64)
    cells = RatedCells.of(empty, empty, empty, (1, 1, 2))
    given, log_row = components(cells, BY_HAND)
    # q = .2·.5 + .8·.9 = .82 and .6·.5 + .4·.9 = .66; .25·.82 + .75·.66 = .205 + .495
    assert np.exp(log_row[0]) == pytest.approx(0.7)
    np.testing.assert_allclose(given, [[0.205 / 0.7, 0.495 / 0.7]])
    found = expected(cells, BY_HAND, given)
    assert not found.observed.any()
    wanted = [[0.1 / 0.82, 0.3 / 0.66], [0.72 / 0.82, 0.36 / 0.66]] * np.array([0.205, 0.495]) / 0.7
    np.testing.assert_allclose(found.all, [wanted])


def test_chances_of_all_possible_rows_add_up_to_one():
    at = mixture(5, (2, 2))
    total = 0.0
    for row in product([None, 0, 1], repeat=2):  # each item unobserved, or observed at a level
        seen = [(i, v) for i, v in enumerate(row) if v is not None]
        item, level = (np.array([pair[k] for pair in seen], np.int64) for k in (0, 1))
        cells = RatedCells.of(np.zeros(len(seen), np.int64), item, level, (1, 2, 2))
        total += np.exp(components(cells, at)[1][0])
    assert total == pytest.approx(1)


def test_long_rows_do_not_underflow():
    cells = rated(0, (3, 3000, 3), 0.9)
    given, log_row = components(cells, mixture(0, (3000, 3)))
    assert np.all(log_row < -750)  # whose exponential is 0
    np.testing.assert_allclose(given.sum(axis=1), 1)


def test_shares_of_levels_by_hand():
    cells = RatedCells.of(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([2, 0, 2, 2]), (2, 2, 3))
    np.testing.assert_array_equal(cells.shares, [0.25, 0, 0.75])
    assert cells.rows == 4
