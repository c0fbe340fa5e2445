"""Classes stand for their users and items, and those without a finite offset leave and come back."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.errors import UndefinedError
from openloop.propensity.solvers import collapsing
from openloop.propensity.solvers.collapsing import CountedIds, CountedRows, classes, collapse, extremes
from openloop.propensity.solvers.newton import Grid, maximise, sums
from tests.facts import facts


def rows_of(O, weight=1.0):
    O = np.asarray(O)
    user, item = np.nonzero(O)
    return CountedRows(user=user, item=item, weight=np.full(len(user), weight), shape=O.shape)


def no_covariates(O):
    return np.zeros((len(O), 0)), np.zeros((len(O[0]), 0))


def expanded(collapsed, reg=1.0):
    """P of every cell."""
    grid, logits = collapsed.whole(maximise(collapsed.grid, reg).at)
    P = logits.probabilities(grid, slice(0, len(grid.m)))
    return P[collapsed.users.of][:, collapsed.items.of]


def random_log(U, I, seed, p=0.3):
    O = np.random.default_rng(seed).random((U, I)) < p
    O[np.arange(U), np.arange(U) % I] = True
    O[np.arange(I) % U, np.arange(I)] = True
    O[0, 1] = O[1, 0] = False
    return O


def test_users_of_one_count_are_one_class():
    O = random_log(40, 25, seed=0)
    found = collapse(rows_of(O), *no_covariates(O))
    assert len(found.grid.m) == len(set(O.sum(axis=1)))
    assert len(found.grid.n) == len(set(O.sum(axis=0)))
    assert found.grid.m @ found.grid.a == found.grid.n @ found.grid.b == O.sum()


def test_covariates_tell_users_of_one_count_apart():
    side = classes(np.zeros(4, np.int8), np.array([3.0, 3, 3, 5]), np.array([[1.0], [2], [1], [1]]), np.ones(4))
    assert side.of[0] == side.of[2]
    assert len(set(side.of)) == 3
    assert sorted(side.size) == [1, 1, 2]


def test_the_collapsed_fit_is_the_fit_of_every_cell():
    rng = np.random.default_rng(1)
    O = random_log(40, 25, seed=1)
    X, Z = rng.integers(0, 2, (40, 2)).astype(float), rng.integers(0, 3, (25, 1)).astype(float)
    X, Z = X - X.mean(0), Z - Z.mean(0)
    whole = Grid(m=np.ones(40), n=np.ones(25), a=O.sum(1) * 1.0, b=O.sum(0) * 1.0, X=X, Z=Z, S=X.T @ O @ Z)
    at = maximise(whole, 1.0).at
    small = collapse(rows_of(O), X, Z)
    assert len(small.grid.m) < 40
    np.testing.assert_allclose(expanded(small), at.probabilities(whole, slice(0, 40)), rtol=1e-6)


def test_nobody_of_no_row_or_every_row_stays_however_deep():
    # Item 0 is rated by all. Without it user 3 has nothing, and user 0 everything that is left; then items 2 and 3
    # have one row of two each, and nothing more goes.
    O = np.array([[1, 1, 1, 1], [1, 0, 1, 0], [1, 0, 0, 1], [1, 0, 0, 0]], bool)
    state_u, state_i = extremes(rows_of(O))
    assert state_u.tolist() == [1, 0, 0, -1]
    assert state_i.tolist() == [1, -1, 0, 0]


def test_those_who_left_expect_half_a_row_or_all_but_half():
    O = random_log(30, 20, seed=2)
    O[:, 5], O[:, 6], O[7] = False, True, False
    O[7, 6] = True  # user 7 has the row that everybody has, and no other
    found = collapse(rows_of(O), *no_covariates(O))
    P = expanded(found)
    fitted_u, fitted_i = found.users.fitted[found.users.of], found.items.fitted[found.items.of]
    assert found.users.members(-1) == 1
    assert (found.items.members(-1), found.items.members(1)) == (1, 1)
    assert P[fitted_u, 5].sum() == pytest.approx(0.5)
    assert P[fitted_u, 6].sum() == pytest.approx(fitted_u.sum() - 0.5)
    assert P[7, fitted_i].sum() == pytest.approx(0.5)
    assert np.all((P > 0) & (P < 1))


def test_counts_of_the_others_are_met_on_what_is_left():
    O = random_log(30, 20, seed=3)
    O[:, 5] = False
    found = collapse(rows_of(O), *no_covariates(O))
    grid, at = found.grid, maximise(found.grid, 0.0).at
    np.testing.assert_allclose(sums(grid, at)[0], grid.a, rtol=1e-7)
    np.testing.assert_allclose(expanded(found)[:, np.arange(20) != 5].sum(0), O.sum(0)[np.arange(20) != 5], rtol=1e-7)


def test_rows_of_a_part_that_pass_the_grid_count_as_every_row():
    O = random_log(30, 20, seed=4, p=0.1)
    O[:25, 3] = True
    state_u, state_i = extremes(rows_of(O, weight=1.25))  # 25 · 1.25 > 30
    assert state_i[3] == 1
    assert (state_i == 1).sum() == 1
    assert not state_u.any()


@pytest.mark.parametrize("O", [np.ones((3, 4)), np.eye(1, 4), np.array([[1, 1], [0, 0]])])
def test_a_log_without_any_finite_offset_is_an_error(O):
    with pytest.raises(UndefinedError, match=facts("Logistic", "user", "item", "Uniform")):
        collapse(rows_of(O), *no_covariates(O))


def test_a_grid_too_large_is_an_error_with_a_remedy(monkeypatch):
    O = random_log(40, 25, seed=0)
    for limit, value in (("MAX_DENSE", 3), ("MAX_CELLS", 30)):
        monkeypatch.setattr(collapsing, limit, value)
        with pytest.raises(UndefinedError, match=facts("Logistic", value, "Boosted")):
            collapse(rows_of(O), *no_covariates(O))
        monkeypatch.undo()


@pytest.mark.parametrize("seed", range(5))
def test_counts_alone_say_what_rows_say_with_those_who_leave(seed):
    rng = np.random.default_rng(seed)
    O = random_log(12, 9, seed, p=rng.uniform(0.2, 0.7))
    O[rng.integers(12, size=2)], O[:, rng.integers(9, size=2)] = False, True
    O[rng.integers(12)], O[:, rng.integers(9)] = True, False
    X, Z = rng.integers(0, 2, (12, 2)).astype(float), rng.integers(0, 2, (9, 1)).astype(float)
    by_id = CountedIds(count=(O.sum(1) * 1.0, O.sum(0) * 1.0), size=(np.ones(12), np.ones(9)), sums=O @ Z)
    here, there = collapse(rows_of(O), X, Z), collapse(by_id, X, Z)
    np.testing.assert_allclose(there.grid.S, here.grid.S, atol=1e-12)
    for side in ("users", "items"):
        one, other = getattr(here, side), getattr(there, side)
        assert [x.tolist() for x in (one.of, one.size, one.count, one.state)] == [
            x.tolist() for x in (other.of, other.size, other.count, other.state)
        ]
    # The same counts, each once
    (users, n_users), (items, n_items) = (np.unique(O.sum(axis), return_counts=True) for axis in (1, 0))
    few = CountedIds(count=(users * 1.0, items * 1.0), size=(n_users * 1.0, n_items * 1.0))
    alone = collapse(rows_of(O), *no_covariates(O))
    again = collapse(few, np.zeros((len(users), 0)), np.zeros((len(items), 0)))
    for name in "mnab":
        assert getattr(again.grid, name).tolist() == getattr(alone.grid, name).tolist()
