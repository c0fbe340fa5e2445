"""Held-out cells: which they are, what π they have, and that nothing of them leaks into the fit."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.data.simulate import World, movie_lovers
from openloop.data.splitting import split
from openloop.errors import UndefinedError
from openloop.propensity.base import CellModel
from openloop.propensity.checks.held_out import HeldOut, _curve, calibration, held_out, to_pi
from openloop.propensity.known import Known
from openloop.propensity.uniform import Uniform
from tests.facts import facts


class Parrot(CellModel):
    """Has learned the log by heart: 0.9 for what it saw, 0.001 for the rest."""

    def __init__(self):
        pass

    def fit(self, feedback):
        self.grid_ = np.full((feedback.n_users, feedback.n_items), 0.001)
        self.grid_[feedback.user, feedback.item] = 0.9
        return self._remember(feedback)

    def _at(self, user, item):
        return self.grid_[user, item]


def two_sided(users: int = 80, items: int = 60, rng: int = 0) -> World:
    """p = σ(γ_u + β_i), from a percent to a half."""
    draw = np.random.default_rng(rng)
    P = 1 / (1 + np.exp(2.5 - draw.normal(0, 0.8, (users, 1)) - draw.normal(0, 0.8, items)))
    return World(ratings=np.ones((users, items)), propensities=P)


WORLD = two_sided()
LOG = WORLD.observe(1)


def test_pi_by_hand():
    # p = 0.5, four fifths in train: of 100 cells 40 are in train, 10 in the fold, 60 not in train.
    assert to_pi(np.array([0.5]), 0.8, 0.2)[0] == pytest.approx(10 / 60)
    assert to_pi(np.array([1.0]), 0.8, 0.2)[0] == pytest.approx(1.0)


def test_every_cell_outside_train_is_judged_once_a_fold():
    found = held_out(Uniform().fit(LOG), LOG, folds=4)
    grid, n = 80 * 60, len(LOG)
    assert len(found) == 4 * grid - 3 * n
    assert found.observed.sum() == n
    assert set(found.weight) == {1.0}
    np.testing.assert_allclose(found.s + found.t, 1.0)


def test_uniform_predicts_each_fold_exactly():
    # Σ π over the cells outside train is the size of the fold.
    found = held_out(Uniform().fit(LOG), LOG, folds=3)
    for t in np.unique(found.t):
        assert found.pi[found.t == t].sum() == pytest.approx(found.observed[found.t == t].sum(), rel=1e-12)


@pytest.mark.parametrize("share", [1.0, 0.4])
def test_true_propensities_predict_folds_of_a_log_and_of_a_part(share):
    world = two_sided(300, 200)
    log = world.observe(5)
    part = log if share == 1 else split(log, test=share, rng=2)[1]
    found = held_out(Known(world.propensities).fit(part), part, rng=3)
    assert found.s[0] + found.t[0] == pytest.approx(share, rel=1e-3)
    rare = found.p < np.median(found.p)
    for cells in (rare, ~rare):
        gap, spread = (found.observed - found.pi)[cells].sum(), (found.pi * (1 - found.pi))[cells].sum()
        assert abs(gap) < 3 * np.sqrt(spread)
        # p·t without the condition that the cell is not in train would be too little.
    assert found.pi.sum() > (found.p * found.t).sum() + 3 * np.sqrt(found.pi.sum())


def test_no_judged_cell_is_in_its_train_part():
    # The parrot says 0.9 of what it was fitted on, and of no cell that is judged.
    found = held_out(Parrot().fit(LOG), LOG)
    assert set(found.p) == {0.001}


def test_learning_by_heart_is_found_out():
    judged = calibration(Parrot().fit(LOG), LOG)
    assert judged.log_likelihood < judged.uniform
    assert judged.error > 0.9 * judged.mean_observed


def test_parts_that_do_not_tell_the_share_of_a_cell_are_refused():
    by_k, _ = split(movie_lovers(30, 20).observe(0), by="leave-k-out", k=1, rng=0)
    low, high = (f"{share:.3g}" for share in (by_k.share.min(), by_k.share.max()))
    with pytest.raises(UndefinedError, match=facts("Uniform", "shares", low, high)):
        held_out(Uniform().fit(by_k), by_k)
    bare = LOG.take(np.arange(100), share=None)
    with pytest.raises(UndefinedError, match=facts("Known", "no share")):
        held_out(Known(WORLD.propensities).fit(LOG), bare)


def test_a_curve_by_hand():
    pi = np.array([0.1, 0.1, 0.3, 0.5])
    found = HeldOut(
        p=pi, pi=pi, observed=np.array([0.0, 1.0, 0.0, 1.0]), weight=np.array([1.0, 1.0, 1.0, 3.0]), s=pi, t=pi
    )
    low, high = _curve(found, 2)
    assert (low.predicted, low.observed, low.weight, low.n) == pytest.approx((0.5 / 3, 1 / 3, 3.0, 3))
    assert (high.predicted, high.observed, high.weight, high.n) == pytest.approx((0.5, 1.0, 3.0, 1))
    # √(Σ(o − ō)²)/3 = √(1/9 + 4/9 + 1/9)/3
    assert low.stderr == pytest.approx(np.sqrt(6 / 9) / 3)
    assert high.stderr == 0.0
