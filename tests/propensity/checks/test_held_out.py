"""Held-out cells: which they are, what π they have, and that nothing of them leaks into the fit."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from openloop.core.feedback import Feedback
from openloop.core.propensities import Propensities
from openloop.data.simulate import World, movie_lovers
from openloop.data.splitting import split
from openloop.errors import InputError, UndefinedError
from openloop.propensity.base import CellModel, counts
from openloop.propensity.checks.held_out import HeldOut, _curve, calibration, held_out, to_p, to_pi, unobserved
from openloop.propensity.known import Known
from openloop.propensity.uniform import Uniform
from tests.facts import facts


class ItemCounts(CellModel):
    """p_i = (n_i + ½)/(U + 1)."""

    def __init__(self):
        pass

    def fit(self, feedback):
        self.p_ = np.minimum((counts(self, feedback)[1] + 0.5) / (feedback.n_users + 1), 1.0)
        return self._remember(feedback)

    def _at(self, user, item):
        return np.broadcast_to(self.p_[item], np.broadcast(user, item).shape)


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


@pytest.mark.parametrize(("s", "t"), [(0.8, 0.2), (0.3, 0.1)])
def test_p_comes_back_from_pi(s, t):
    p = np.geomspace(1e-8, 1, 20)
    np.testing.assert_allclose(to_p(to_pi(p, s, t), s, t), p, rtol=1e-12)


def test_the_unobserved_cells_are_counted_in_order():
    own = np.array([0, 1, 4, 7, 9])
    np.testing.assert_array_equal(unobserved(own, np.arange(7)), [2, 3, 5, 6, 8, 10, 11])  # of 12 cells


def test_every_cell_outside_train_is_judged_once_a_fold():
    found = held_out(Uniform().fit(LOG), LOG, folds=4)
    grid, n = 80 * 60, len(LOG)
    assert len(found) == 4 * grid - 3 * n
    assert found.observed.sum() == n
    assert set(found.weight) == {1.0}
    np.testing.assert_allclose(found.s + found.t, 1.0)


def test_the_shares_are_the_realised_ones():
    log = LOG.take(np.arange(103))
    found = held_out(Uniform().fit(log), log, folds=5)
    assert np.unique(found.t).round(12).tolist() == [round(20 / 103, 12), round(21 / 103, 12)]


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


def test_a_sample_stands_for_all_cells():
    model = Known(WORLD.propensities).fit(LOG)
    whole, some = held_out(model, LOG), held_out(model, LOG, cells=3000)
    assert len(some) <= 3000 < len(whole)
    assert some.weight.sum() == pytest.approx(whole.weight.sum())
    assert some.weight @ some.observed == pytest.approx(len(LOG))
    for column in ("pi", "p"):
        total = [found.weight @ getattr(found, column) for found in (some, whole)]
        assert total[0] == pytest.approx(total[1], rel=0.1)


def test_no_judged_cell_is_in_its_train_part():
    # The parrot says 0.9 of what it was fitted on, and of no cell that is judged.
    found = held_out(Parrot().fit(LOG), LOG)
    assert set(found.p) == {0.001}


def test_learning_by_heart_is_found_out():
    judged = calibration(Parrot().fit(LOG), LOG)
    assert judged.log_likelihood < judged.uniform
    assert judged.error > 0.9 * judged.mean_observed


def test_a_better_model_has_the_greater_likelihood():
    truth = calibration(Known(WORLD.propensities).fit(LOG), LOG)
    items = calibration(ItemCounts().fit(LOG), LOG)
    assert truth.log_likelihood > items.log_likelihood > items.uniform
    assert truth.uniform == pytest.approx(items.uniform)


def test_uniform_has_its_own_likelihood():
    judged = calibration(Uniform().fit(LOG), LOG)
    assert judged.log_likelihood == pytest.approx(judged.uniform, rel=1e-12)
    assert judged.error < 1e-9


def test_the_same_seed_gives_the_same_cells():
    model = ItemCounts().fit(LOG)
    one, two, other = (held_out(model, LOG, rng=rng, cells=3000) for rng in (4, 4, 5))
    np.testing.assert_array_equal(one.p, two.p)
    np.testing.assert_array_equal(one.observed, two.observed)
    assert not np.array_equal(one.p[:500], other.p[:500])


def test_any_object_with_the_protocol_is_judged():
    class Tenth(BaseEstimator):
        def fit(self, feedback):
            self.users_ = feedback.users
            return self

        def predict(self, feedback):
            return Propensities(values=np.full(len(feedback), 0.1))

        def matrix(self):
            return np.full((80, 60), 0.1)

    assert set(held_out(Tenth().fit(LOG), LOG).p) == {0.1}


def test_p_that_depends_on_more_than_the_cell_has_no_held_out_cells():
    with pytest.raises(UndefinedError, match=facts("observed cells", "Known(values=)")):
        held_out(Known().fit(LOG), LOG)


def test_parts_that_do_not_tell_the_share_of_a_cell_are_refused():
    by_k, _ = split(movie_lovers(30, 20).observe(0), by="leave-k-out", k=1, rng=0)
    low, high = (f"{share:.3g}" for share in (by_k.share.min(), by_k.share.max()))
    with pytest.raises(UndefinedError, match=facts("Uniform", "shares", low, high)):
        held_out(Uniform().fit(by_k), by_k)
    bare = LOG.take(np.arange(100), share=None)
    with pytest.raises(UndefinedError, match=facts("Known", "no share")):
        held_out(Known(WORLD.propensities).fit(LOG), bare)


@pytest.mark.parametrize("folds", [1, 0, 2.5, 10**6])
def test_folds_must_leave_rows_on_both_sides(folds):
    with pytest.raises(InputError, match=facts("held_out", "folds", f"{len(LOG):,}", folds)):
        held_out(Uniform().fit(LOG), LOG, folds=folds)


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


def test_equal_predictions_share_a_bin():
    assert len(calibration(Known(np.full((80, 60), 0.1)).fit(LOG), LOG, bins=10).curve) <= 2  # two sizes of folds


def test_the_error_is_the_weighted_distance_from_the_diagonal():
    judged = calibration(Known(WORLD.propensities**2).fit(LOG), LOG, bins=7)
    W = sum(b.weight for b in judged.curve)
    assert judged.error == pytest.approx(sum(b.weight * abs(b.predicted - b.observed) for b in judged.curve) / W)
    assert judged.error > 5 * judged.chance


def test_the_error_of_the_truth_is_what_chance_gives():
    errors = []
    for seed in range(10):
        log = WORLD.observe(seed)
        judged = calibration(Known(WORLD.propensities).fit(log), log, rng=seed)
        errors.append(judged.error / judged.chance)
    assert 0.7 < np.mean(errors) < 1.3


def test_a_certain_cell_that_was_not_observed_costs_much_and_not_everything():
    log = Feedback.from_arrays([0, 0, 1, 1], [0, 1, 0, 1], np.ones(4), users=3, items=2)
    judged = calibration(Known(np.ones((3, 2))).fit(log), log, folds=2)
    assert -30 < judged.log_likelihood < -5


def test_bins_must_be_some():
    with pytest.raises(InputError, match=facts("calibration", "bins", 0)):
        calibration(Uniform().fit(LOG), LOG, bins=0)
