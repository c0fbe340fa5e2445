"""The penalty is chosen by a likelihood of held-out cells that is what it says."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.propensity.solvers import newton
from openloop.propensity.solvers.collapsing import CountedRows, collapse
from openloop.propensity.solvers.newton import maximise
from openloop.propensity.solvers.penalty import HeldOutFold


def setting(seed=0, U=40, I=30, strength=1.0):
    rng = np.random.default_rng(seed)
    X, Z = rng.standard_normal((U, 2)), rng.standard_normal((I, 2))
    X, Z = X - X.mean(0), Z - Z.mean(0)
    z = -1 + strength * X @ rng.standard_normal((2, 2)) @ Z.T
    O = rng.random((U, I)) < 1 / (1 + np.exp(-z))
    user, item = np.nonzero(O)
    return CountedRows(user=user, item=item, weight=np.ones(len(user)), shape=(U, I)), X, Z


@pytest.mark.parametrize("block", [64, 2**18])
@pytest.mark.parametrize("share", [1.0, 0.8])
def test_the_score_is_the_likelihood_of_cells_that_were_not_trained_on(monkeypatch, block, share):
    monkeypatch.setattr(newton, "BLOCK", block)
    rows, X, Z = setting()
    rows = CountedRows(user=rows.user, item=rows.item, weight=rows.weight / share, shape=rows.shape)
    held = np.random.default_rng(1).random(len(rows.user)) < 0.25
    t = held.mean()
    train = rows.taken(~held)
    part = collapse(
        CountedRows(user=train.user, item=train.item, weight=train.weight / (1 - t), shape=rows.shape), X, Z
    )
    grid, at = part.whole(maximise(part.grid, 3.0, tol=1e-2).at)
    P = at.probabilities(grid, slice(0, len(grid.m)))[part.users.of][:, part.items.of]

    # By the words of it: of the cells not in train, those held out are ones and all others zeros.
    pi = P * share * t / (1 - P * share * (1 - t))
    state = np.zeros(P.shape)
    state[rows.user, rows.item] = np.where(held, 1, -1)
    by_hand = np.log(pi[state == 1]).sum() + np.log(1 - pi[state == 0]).sum()
    assert HeldOutFold(rows, held, X, Z).score(3.0) == pytest.approx(by_hand, rel=1e-6)
