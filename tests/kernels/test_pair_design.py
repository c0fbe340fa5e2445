"""Updates by the cells of a design: two cells are the learners' kernels, all are their twin, budgets by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from openloop.kernels.pair_design import Budget, PairCell, draw_weights, pair_updates, pair_updates_numpy
from openloop.kernels.violators import Schedule, adg_updates, auc_updates, rows, violator_weights
from tests.kernels.test_violators import START, I, K, in_rows, likes_of, out_of_rows, world  # noqa: F401

CELLS = [PairCell(*switches) for switches in product((False, True), repeat=3)]
OF_ADG, OF_AUC = PairCell(unliked=False, weighted=True, until=True), PairCell(unliked=True, weighted=False, until=False)
MANY = 10**9


# --- by law


def test_without_regularisation_two_cells_are_the_learners_to_the_bit(world):  # noqa: F811
    theta, likes = world
    C, schedule = violator_weights(I, 2.0), Schedule(0.1, 0.0, 600)
    for cell, learner in (
        (OF_ADG, lambda V, W: adg_updates(V, W, K, likes, C, schedule, START, 0, 600)),
        (OF_AUC, lambda V, W: auc_updates(V, W, K, likes, schedule, START, 0, 600)),
    ):
        ours, theirs = in_rows(theta), in_rows(theta)
        tally = pair_updates(*ours, K, likes, cell, 2.0, Budget(0.1, 0.0, MANY, 600), START)
        assert (tally.updates, (tally.steps, tally.hinges)) == (600, learner(*theirs))
        for x, y in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_every_cell_takes_as_many_steps_as_asked(world, cell):  # noqa: F811
    theta, likes = world
    tally = pair_updates(*in_rows(theta), K, likes, cell, 2.0, Budget(0.05, 0.1, 250, MANY), START)
    assert tally.steps == 250 <= tally.updates
    assert tally.weights == 250 if not cell.weighted else tally.weights < 250
    assert tally.hinges > 0


def test_the_weights_of_the_cells():
    C = violator_weights(11, 4.0)  # three draws at most
    wanted = {(True, True): C, (True, False): C[:1], (False, True): np.ones(3), (False, False): np.ones(1)}
    for unliked, (weighted, until) in product((False, True), wanted):
        found = draw_weights(PairCell(unliked, weighted, until), 11, 4.0)
        np.testing.assert_array_equal(found, wanted[weighted, until])


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_each_cell_is_its_twin_step_for_step(world, cell):  # noqa: F811
    theta, likes = world
    budget, (V, W) = Budget(0.05, 0.1, 150, 300), in_rows(theta)
    found = pair_updates(V, W, K, likes, cell, 3.3, budget, START)
    wanted = pair_updates_numpy(theta, likes, cell, 3.3, budget, START)
    assert found[:2] == wanted[:2]
    assert found[2:] == pytest.approx(wanted[2:], rel=1e-4)
    for x, y in zip(out_of_rows(V, W), theta, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-5)


# --- by hand


def one_user(bias):
    """A user who likes item 0 of two; the margin is that of the biases."""
    return rows(np.array([[2.0]]), 1.0), rows(np.array([[0.5], [0.5]]), np.array([bias, 0.0]))


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_an_update_without_a_violator_shrinks_the_factors_and_spares_the_biases(cell):
    V, W = one_user(7.0)
    tally = pair_updates(V, W, 1, likes_of([[0]]), cell, 1.0, Budget(0.5, 0.2, MANY, 1), START)
    assert tally == (1, 0, 0.0, 0.0)
    np.testing.assert_allclose(V[0, :2], [1.8, 1.0], rtol=1e-6)  # less ηλ = 0.1 of itself
    np.testing.assert_allclose(W[:, :2], [[0.45, 7.0], [0.45, 0.0]], rtol=1e-6)


def test_the_rate_falls_with_the_steps_that_were_taken():
    # Biases 0 and 0: both of two steps violate, by 1 and then by 1 - 2·0.25. They move by η and η/2.
    V, W = one_user(0.0)
    V[0, 0] = 0.0
    W[:, 0] = 0.0
    tally = pair_updates(V, W, 1, likes_of([[0]]), OF_AUC, 1.0, Budget(0.25, 0.0, 2, MANY), START)
    assert tally == (2, 2, 2.0, 1.5)
    np.testing.assert_allclose(W[:, 1], [0.375, -0.375], rtol=1e-6)
