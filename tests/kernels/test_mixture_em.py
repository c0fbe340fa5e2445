"""The E step of a mixture of ratings that are missing not at random: by hand, its twin over all cells, and laws."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from openloop.kernels.mixture_em import (
    Mixture,
    RatedCells,
    components,
    components_numpy,
    expected,
    expected_numpy,
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


@pytest.mark.parametrize("seed", range(3))
def test_sums_over_rows_are_those_over_all_cells(seed):
    cells, at = rated(seed), mixture(seed)
    (given, log_row), (theirs, their_row) = components(cells, at), components_numpy(cells, at)
    np.testing.assert_allclose(given, theirs, rtol=1e-12)
    np.testing.assert_allclose(log_row, their_row, rtol=1e-12)
    found, wanted = expected(cells, at, given), expected_numpy(cells, at, given)
    for name in ("users", "observed", "all"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-12, atol=1e-14)


def test_chances_of_all_possible_rows_add_up_to_one():
    at = mixture(5, (2, 2))
    total = 0.0
    for row in product([None, 0, 1], repeat=2):  # each item unobserved, or observed at a level
        seen = [(i, v) for i, v in enumerate(row) if v is not None]
        item, level = (np.array([pair[k] for pair in seen], np.int64) for k in (0, 1))
        cells = RatedCells.of(np.zeros(len(seen), np.int64), item, level, (1, 2, 2))
        total += np.exp(components(cells, at)[1][0])
    assert total == pytest.approx(1)


def test_every_user_has_one_rating_per_item():
    cells, at = rated(1), mixture(1)
    found = expected(cells, at, components(cells, at)[0])
    np.testing.assert_allclose(found.all.sum(axis=1), np.broadcast_to(found.users, (4, 2)))
    assert np.all(found.all >= found.observed)


def test_names_of_users_items_and_components_do_not_matter():
    shape, rng = (7, 4, 3), np.random.default_rng(3)
    user, item = np.nonzero(rng.random(shape[:2]) < 0.5)
    level, at = rng.integers(3, size=len(user)), mixture(3)
    u, i, z = rng.permutation(7), rng.permutation(4), np.array([1, 0])
    first = RatedCells.of(user, item, level, shape)
    second = RatedCells.of(np.argsort(u)[user], np.argsort(i)[item], level, shape)
    moved = Mixture(at.theta[z], at.beta[i][:, :, z], at.seen[i])
    (given, log_row), (theirs, their_row) = components(first, at), components(second, moved)
    np.testing.assert_allclose(theirs, given[u][:, z], rtol=1e-12)
    np.testing.assert_allclose(their_row, log_row[u], rtol=1e-12)
    found, wanted = expected(second, moved, theirs).all, expected(first, at, given).all
    np.testing.assert_allclose(found, wanted[i][:, :, z], rtol=1e-12)


def test_long_rows_do_not_underflow():
    cells = rated(0, (3, 3000, 3), 0.9)
    given, log_row = components(cells, mixture(0, (3000, 3)))
    assert np.all(log_row < -750)  # whose exponential is 0
    np.testing.assert_allclose(given.sum(axis=1), 1)


def test_shares_of_levels_by_hand():
    cells = RatedCells.of(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([2, 0, 2, 2]), (2, 2, 3))
    np.testing.assert_array_equal(cells.shares, [0.25, 0, 0.75])
    assert cells.rows == 4
