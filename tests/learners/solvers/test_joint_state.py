"""The state of the joint model: where it begins, its rows and parts, and the log-likelihood of the observed ones."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from openloop.kernels.joint_cells import chances, observed_chances
from openloop.learners.solvers.joint_state import Sweeping
from tests.joint_cases import POOL, PRIOR, I, L, U, drawn, from_prior, key_of, rows_of, some_state


def test_it_begins_where_the_ordinal_model_is_and_effects_at_the_density():
    state = some_state()
    assert np.all(state.by_user == PRIOR)
    assert np.all(state.by_item == 0)
    assert np.all(np.diff(state.b) > 0)
    assert all(isinstance(getattr(state, field.name), np.ndarray) for field in fields(state))  # what checkpoints hold


def test_the_likelihood_of_observed_rows_by_its_definition():
    state = from_prior(np.random.default_rng(0))
    rows = rows_of(*drawn(state, np.random.default_rng(1)))
    user, item, code = rows.places
    both = chances(state.ratings, user, item) * observed_chances(state.observing, user, item)
    truth = np.log(both[np.arange(len(code)), code]).sum()
    np.testing.assert_allclose(Sweeping.of(rows, state, key_of(0), POOL).observed(state), truth, rtol=1e-9)


def test_with_a_share_of_1_all_cells_are_listed_once():
    rows = rows_of(np.zeros((U, I), int), np.eye(U, I, dtype=bool))
    users, items = rows.parts(key_of(0), POOL)
    assert users.cells is items.cells is rows.cells is rows.sampled(key_of(0), POOL)
    assert len(rows.cells.item) == U * I
    assert users.chosen.all()
    assert items.chosen.all()


def test_parts_are_all_cells_of_the_chosen():
    rng = np.random.default_rng(3)
    seen = rng.random((40, 30)) < 0.1
    rows = rows_of(rng.integers(0, L, (40, 30)), seen, share=0.3)
    users, items = rows.parts(key_of(1), POOL)
    assert users.cells.weight == items.cells.weight == 1
    np.testing.assert_array_equal(np.diff(users.cells.ptr), 30 * users.chosen)
    np.testing.assert_array_equal(np.bincount(items.cells.item, minlength=30), 40 * items.chosen)
    chosen = np.array([rows.parts(key_of(k), POOL)[0].chosen for k in range(60)])
    assert abs(chosen.mean() - 0.3) < 4 * np.sqrt(0.21 / chosen.size)


def test_a_share_of_the_unobserved_cells_is_drawn_anew_and_counts_for_all():
    rng = np.random.default_rng(6)
    seen = rng.random((40, 30)) < 0.1
    rows = rows_of(rng.integers(0, L, (40, 30)), seen, share=0.25)
    first, second = rows.sampled(key_of(1), POOL), rows.sampled(key_of(2), POOL)
    assert first.weight == 4
    assert not np.array_equal(first.item, second.item)
    unseen = [int(np.sum(cells.code < 0)) for cells in (first, second)]
    n = int(np.sum(~seen))
    assert all(abs(k - n / 4) < 4 * np.sqrt(n * 0.25 * 0.75) for k in unseen)
