"""The fits of the factorial experiment: corners that are the learners, equal steps, a search that leaves no edge."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.kernels.pair_design import Budget, PairCell
from openloop.studies.lim2015.designs import (
    CELLS,
    EQUAL_UPDATES,
    HALF,
    NO_SETTING,
    OF_ADG,
    OF_AUC,
    POPULARITY,
    Lattice,
    all_arms,
    at_most,
    baseline_trial,
    cell_trial,
    fitted,
    lattice_search,
    levels_of,
    training_positives,
)
from openloop.studies.lim2015.protocol import FACTORS, GAMMA, SVD, parts, trial
from openloop.studies.lim2015.published import MEASURES
from tests.studies.lim2015.fitted import positives

MANY = 10**9


def feedback(given):
    users, items = given["shape"].tolist()
    return Feedback.from_arrays(given["user"], given["item"], np.ones(len(given["user"])), users=users, items=items)


# -- cells ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "learner"),
    [(OF_ADG, lambda **kw: ol.learners.ADG(FACTORS, gamma=GAMMA, **kw)), (OF_AUC, ol.learners.AUC)],
    ids=["MF-ADG", "MF-AUC"],
)
def test_two_corners_are_the_learners_to_the_bit_where_nothing_is_regularised(cell, learner):
    log, rate, n = feedback(positives(1)), 0.1, 3000
    model = learner(reg=0.0, updates=n, rate=rate, rng=np.random.default_rng(5)).fit(log)
    V, W, tally = fitted(log, cell, Budget(rate, 0.0, MANY, n), np.random.default_rng(5))
    assert tally.updates == n
    assert tally.steps / n == pytest.approx(model.history_[0, 0])
    np.testing.assert_array_equal(V[:, :FACTORS], model.user_factors_)
    np.testing.assert_array_equal(W[:, :FACTORS], model.item_factors_)
    np.testing.assert_array_equal(W[:, FACTORS], model.item_bias_)


def test_the_half_of_the_design_has_both_learners_and_every_single_change_of_mf_auc():
    assert set(HALF) == {
        OF_ADG, OF_AUC, OF_AUC._replace(unliked=False), OF_AUC._replace(weighted=True), OF_AUC._replace(until=True),
    }  # fmt: skip
    assert len(set(CELLS)) == 8


# -- positives -----------------------------------------------------------------------------------------------


def test_at_most_so_many_positives_per_user_stay_and_fewer_are_a_part_of_more():
    train = feedback(positives(2))
    few, more = (at_most(train, n, np.random.default_rng(3)) for n in (4, 9))
    counts = np.diff(train.user_ptr)
    np.testing.assert_array_equal(np.diff(few.user_ptr), np.minimum(counts, 4))
    np.testing.assert_array_equal(np.diff(more.user_ptr), np.minimum(counts, 9))
    assert set(few.cell) < set(more.cell) < set(train.cell)
    assert at_most(train, 0, np.random.default_rng(3)) is train


def test_numbers_of_positives_that_cut_nothing_are_not_tried_apart():
    # 40 positives leave 28 for training: a limit of 50 would be all again.
    given = {"user": np.zeros(40, int), "item": np.arange(40), "shape": np.array([1, 40])}
    assert levels_of(given) == (12, 25, 0)


def test_training_positives_are_what_the_parts_leave():
    given = positives(2)
    train, _, _ = parts(feedback(given), np.random.default_rng(0))
    np.testing.assert_array_equal(training_positives(given), np.diff(train.user_ptr))


# -- a trial -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", [OF_ADG, OF_AUC, PairCell(unliked=True, weighted=True, until=True)], ids=str)
def test_a_trial_takes_its_steps_and_measures_both_parts(cell):
    given = positives(0)
    setting = {"seed": 0, "fold": 1, "most": 5, "cell": list(cell), "budget": [3000, 90_000], "rate": 0.1, "reg": 0.02}
    found = cell_trial(given, **setting)
    assert found["tally"][1] == 3000
    assert found["test"].shape == found["validation"].shape == (len(MEASURES), 60)
    again = cell_trial(given, **setting)
    assert all(np.array_equal(found[name], again[name], equal_nan=True) for name in found)


def test_all_fits_of_a_fold_are_measured_on_the_same_users_and_candidates():
    given, shared = positives(0), {"seed": 0, "fold": 0}
    svd = baseline_trial(given, most=5, learner=SVD, factors=4, **shared)
    cell = cell_trial(given, most=0, cell=OF_AUC, budget=[500, 5000], rate=0.1, reg=0.1, **shared)
    table1 = trial(given, learner=SVD, factors=4, **shared)
    for part in ("test", "validation"):
        np.testing.assert_array_equal(np.isnan(svd[part]), np.isnan(cell[part]))
    whole = baseline_trial(given, most=0, learner=SVD, factors=4, **shared)
    np.testing.assert_array_equal(whole["test"], table1["test"])  # on all positives it is Table 1's


def test_popularity_ranks_by_the_positives_that_it_is_given():
    given = positives(0)
    few, whole = (baseline_trial(given, seed=0, fold=0, most=n, learner=POPULARITY) for n in (3, 0))
    train, _, _ = parts(feedback(given), np.random.default_rng([0, 0, 0]))
    assert np.bincount(train.item).max() > 3
    assert not np.array_equal(few["test"], whole["test"], equal_nan=True)


def test_a_fit_that_diverges_is_empty():
    setting = {"seed": 0, "fold": 0, "most": 0, "cell": OF_AUC, "budget": [2000, 5000], "rate": 1e6, "reg": 0.0}
    assert cell_trial(positives(0), **setting) == {}


# -- the search ----------------------------------------------------------------------------------------------


class Peak:
    """A run whose trials score by their distance from a peak."""

    def __init__(self, *peak):
        self.peak, self.calls = peak, 0

    def map(self, _trial, _given, settings, what):
        self.calls += len(settings)
        return [self.outcome(s) for s in settings]

    def outcome(self, setting):
        score = -abs(setting["a"] - self.peak[0]) - abs(setting["b"] - self.peak[1])
        return {} if setting["a"] > 90 else {"validation": np.full((len(MEASURES), 3), score)}


def lattice(bound):
    return Lattice(((0, 0), (1, 0)), (-bound, -bound), (bound, bound), lambda p: {"a": p[0], "b": p[1]})


def test_a_search_goes_on_until_the_best_has_no_untried_neighbour():
    run = Peak(5, -4)
    (found,) = lattice_search(run, None, None, [{"fold": 0}], lattice(10), "test")
    assert found.best.setting == {"fold": 0, "a": 5, "b": -4}
    tried = {(s["a"], s["b"]) for s in found.tried}
    assert {(a, b) for a in (4, 5, 6) for b in (-5, -4, -3)} <= tried
    assert len(tried) == run.calls  # none twice


def test_a_search_stops_at_its_bounds():
    (found,) = lattice_search(Peak(5, 0), None, None, [{}], lattice(3), "test")
    assert found.best.setting == {"a": 3, "b": 0}
    assert max(s["a"] for s in found.tried) == 3


def test_each_task_is_searched_by_itself_and_a_task_without_settings_is_one_trial():
    run = Peak(0, 0)
    both = lattice_search(run, None, None, [{"k": 0}, {"k": 1}], lattice(2), "test")
    assert [s.best.setting for s in both] == [{"k": k, "a": 0, "b": 0} for k in (0, 1)]
    (alone,) = lattice_search(Peak(0, 0), None, None, [{"a": 1, "b": 1}], NO_SETTING, "test")
    assert alone.tried == ({},)


# -- the experiment ------------------------------------------------------------------------------------------


def test_mf_auc_gets_as_many_updates_as_mf_adg_needed(monkeypatch):
    from openloop.studies.lim2015 import designs

    class Run:
        seed = 0

        def either(self, full, quick):
            return quick

        def map(self, trial, given, settings, what):
            return [trial(given, **s) for s in settings]

    monkeypatch.setattr(designs, "positives", lambda _run, _name: (positives(0), (60, 80, 0)))
    monkeypatch.setattr(designs, "SHORT_RATES_AND_REGS", Lattice(((0, 0),), (0, 0), (0, 0), designs.rate_and_reg))
    found = all_arms(Run(), "ml-1m")
    assert set(found.found) == {(n, arm) for n in (12, 0) for arm in (*HALF, EQUAL_UPDATES, SVD, POPULARITY)}
    for n in (12, 0):
        for fold in range(2):
            adg, auc = (found.found[n, arm][fold].best.outcome["tally"] for arm in (OF_ADG, EQUAL_UPDATES))
            assert auc[0] == adg[0]
            assert auc[1] < adg[1]
    assert found.users(0, OF_ADG, "adg").shape == (2, 60)
