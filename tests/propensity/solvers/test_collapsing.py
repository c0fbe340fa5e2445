"""Classes stand for their users and items."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.errors import UndefinedError
from openloop.propensity.solvers import collapsing
from openloop.propensity.solvers.collapsing import CountedRows, collapse
from openloop.propensity.solvers.newton import Grid, maximise
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


def test_a_grid_too_large_is_an_error_with_a_remedy(monkeypatch):
    O = random_log(40, 25, seed=0)
    for limit, value in (("MAX_DENSE", 3), ("MAX_CELLS", 30)):
        monkeypatch.setattr(collapsing, limit, value)
        with pytest.raises(UndefinedError, match=facts("Logistic", value, "Boosted")):
            collapse(rows_of(O), *no_covariates(O))
        monkeypatch.undo()
