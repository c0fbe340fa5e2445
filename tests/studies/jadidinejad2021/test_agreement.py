"""Agreement: Kendall's τ as others compute it, paired differences, and picking without looking."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kendalltau

from openloop.audits.rankings import compare_tau, kendall, steiger, williams
from openloop.studies.jadidinejad2021 import agreement
from openloop.studies.jadidinejad2021.agreement import EVERY, Agreement, Lead, RelativeGain, Weightings, doubt
from openloop.studies.jadidinejad2021.open_loop import TARGETS
from openloop.studies.jadidinejad2021.scores import RankedCells, holdout


def test_weightings_are_paired_halves_and_draws_of_all_users():
    w = agreement.weightings(9, np.random.default_rng(0), draws=5, halves=3)
    one, other = w.halves
    assert w.values[0].tolist() == [1] * 9
    assert w.values[w.bootstrap].sum(axis=1).tolist() == [9] * 5
    assert (w.values[one] + w.values[other] == 1).all()
    assert w.values[one].sum(axis=1).tolist() == [4] * 3


def table(means, splits=2, halves=2, draws=3, names=("a", "b")):
    """An Agreement with these mean τ (methods, targets), the same in every split and weighting."""
    values = np.broadcast_to(np.array(means)[:, :, None, None], (len(means), 4, splits, 1 + draws + 2 * halves))
    weighted = Weightings(values=np.zeros((1 + draws + 2 * halves, 1)), draws=draws)
    return Agreement(methods=names, values=values.copy(), weighted=weighted, halves=np.ones(4))


def test_differences_are_paired():
    found = table([[0.5] * 4, [0.3] * 4])
    noise = np.random.default_rng(0).normal(size=found.values.shape[1:])
    found.values[:] += noise  # the same for both
    ahead = found.ahead("a", "b", "published")
    assert (ahead.value, ahead.won, ahead.splits) == (pytest.approx(0.2), 2, 2)
    assert ahead.drawn == pytest.approx([0.2] * 3)
    assert found.error("a", "published") > 0.1
    assert str(ahead) == "+0.200 (+0.200 … +0.200), ahead in 2 of 2 splits"


def test_a_method_is_compared_with_the_mean_of_several_and_with_0():
    found = table([[0.5] * 4, [0.3] * 4, [0.1] * 4], names=("a", "b", "c"))
    assert found.ahead("a", ["b", "c"], "published").value == pytest.approx(0.3)
    above = found.above_zero("c", "published")
    assert (above.value, above.clear) == (pytest.approx(0.1), True)
    found.values[2, :, :, 1:4] += np.array([-1.0, 0.0, 1.0])  # the draws
    assert not found.above_zero("c", "published").clear


def test_the_relative_gain_is_that_of_the_means_with_quantiles_of_the_draws():
    found = table([[0.3] * 4, [0.2] * 4], draws=3)
    found.values[0, :, :, 1:4] = np.array([0.2, 0.3, 0.4])
    gain = found.relative_gain("a", "b", "published")
    assert (gain.value, gain.undefined, gain.interval) == (pytest.approx(0.5), 0, pytest.approx((0.0, 1.0)))
    found.values[1] = -0.2
    assert np.isnan(found.relative_gain("a", "b", "published").value)


@pytest.mark.parametrize(("undefined", "limits"), [(1, (0.01, 0.98)), (2, (0.0, 0.99)), (4, (-np.inf, np.inf))])
def test_draws_without_a_relative_gain_are_below_and_above_all_others(undefined, limits):
    drawn = np.arange(100) / 100
    gain = RelativeGain(value=0.5, drawn=np.append(drawn, np.full(undefined, np.nan)))
    assert gain.undefined == undefined
    assert gain.interval == pytest.approx(limits)


def test_a_difference_and_its_relative_gain_have_limits_on_the_same_side_of_0():
    """Normal limits of one and quantiles of the other would not: draws are skewed."""
    found = table([[0.3] * 4, [0.2] * 4], draws=200)
    for least in (-0.001, 0.001):
        found.values[0, :, :, 1:201] = 0.2 + np.append(np.full(10, least), np.linspace(0.09, 0.12, 190))
        lead, gain = found.ahead("a", "b", "published"), found.relative_gain("a", "b", "published")
        assert (lead.interval[0] > 0) == (gain.interval[0] > 0) == lead.clear == (least > 0)


def lead(low, high):
    """A lead with these limits."""
    return Lead(value=(low + high) / 2, drawn=np.linspace(low, high, 3), won=1, splits=2)


@pytest.mark.parametrize(
    ("leads", "enough", "decided"),
    [
        ([(0.1, 0.2)], None, True), ([(-0.1, 0.2)], None, False), ([(-0.2, -0.1)], None, True),
        ([(0.1, 0.2), (-0.1, 0.2)], None, False), ([(-0.2, -0.1), (-0.1, 0.2)], None, True),
        ([(0.1, 0.2)] * 2 + [(-0.1, 0.2)], 2, True), ([(0.1, 0.2)] + [(-0.1, 0.2)] * 2, 2, False),
        ([(-0.2, -0.1)] * 2 + [(-0.1, 0.2)], 2, True), ([(-0.2, -0.1)] + [(-0.1, 0.2)] * 2, 2, False),
    ],
)  # fmt: skip
def test_intervals_that_contain_0_leave_open_what_no_others_decide(leads, enough, decided):
    assert (doubt([lead(*limits) for limits in leads], enough) == "") is decided


def test_the_test_as_coded_says_where_one_is_ahead():
    rng = np.random.default_rng(0)
    goal = rng.normal(size=(2, 104))
    poor = goal + 5 * rng.normal(size=goal.shape)
    good = goal + 0.1 * rng.normal(size=goal.shape)
    good[1] = poor[1]
    assert agreement.ahead_as_coded(good, poor, goal).tolist() == [True, False]
    assert agreement.ahead_as_coded(poor, good, goal).tolist() == [False, False]


def test_without_halves_nothing_is_said_of_the_open_loops_own_agreement():
    w = agreement.weightings(9, np.random.default_rng(0), draws=5, halves=0)
    assert len(w.values) == 6


def test_every_target_is_the_mean_over_targets():
    found = table([[0.1, 0.2, 0.3, 0.4], [0.9, 0.0, 0.0, 0.0]])
    assert found.mean("a", EVERY)[0] == pytest.approx(0.25)
    assert (found.best(["a", "b"], "published"), found.best(["a", "b"], EVERY)) == ("b", "a")
    assert found.by_split("a", TARGETS[2]).tolist() == [0.3, 0.3]


def test_a_pick_by_luck_does_not_pay_on_the_other_half():
    means = [[0.0] * 4, [0.0] * 4, [0.1] * 4]
    lucky = table(means, names=("ours: a", "ours: b", "c"))
    steady = table(means, names=("a", "b", "ours: c"))
    for found in (lucky, steady):
        one, other = found.weighted.halves
        found.values[0, :, :, one] = 1.0  # a shines on one half only, b on the other
        found.values[1, :, :, other] = 1.0
    assert lucky.chosen_blind("published").value == pytest.approx(-0.1)
    blind = steady.chosen_blind("published")
    assert (blind.value, blind.error, blind.picked) == (pytest.approx(0.1), pytest.approx(0), "ours: c")
    assert (blind.times, blind.halves) == (4, 4)
    assert str(blind) == "+0.100 (+0.100 … +0.100, from half-samples)"


def test_rivals_may_be_given_to_a_blind_pick():
    found = table([[0.3] * 4, [0.1] * 4, [0.5] * 4], names=("ours: a", "b", "c"))
    assert found.chosen_blind("published").value == pytest.approx(-0.2)
    assert found.chosen_blind("published", rivals=["b"]).value == pytest.approx(0.2)


def test_the_error_over_halves_is_that_of_all_users():
    """For a mean over users, whose standard error is known."""
    x = np.random.default_rng(0).normal(size=200)
    w = agreement.weightings(200, np.random.default_rng(1), draws=0, halves=2000)
    means = w.values[1:] @ x / 100
    assert means.std(ddof=1) == pytest.approx(x.std(ddof=1) / np.sqrt(200), rel=0.05)


def test_users_of_whom_a_method_says_nothing_do_not_pick_it():
    found = table([[0.3] * 4, [0.2] * 4, [0.0] * 4], names=("ours: a", "ours: b", "c"))
    found.values[0, :, :, found.weighted.halves[0]] = np.nan
    blind = found.chosen_blind("published")
    assert blind.picked in ("ours: a", "ours: b")
    assert np.isfinite(blind.value)


def some_scores(rng, models=6, users=9, each=3):
    """Scores of models that rank each user's cells at random among 50."""
    rank = rng.integers(1, 51, (models, users * each))
    places = np.stack([rank - 1, np.ones_like(rank), rank - 1, np.ones_like(rank), rank], axis=1)
    user = np.repeat(np.arange(users), each)
    return holdout(RankedCells(user=user, item=np.arange(len(user)), places=places, n_users=users), "all", None)


def test_a_method_that_is_the_target_agrees_wholly():
    rng = np.random.default_rng(0)
    goal, noise = some_scores(rng), some_scores(rng)
    weighted = agreement.weightings(9, rng, draws=4, halves=2)
    methods = {"same": lambda: goal, "noise": lambda: noise}
    found = agreement.agreement_of([(methods, dict.fromkeys(TARGETS, lambda: goal))] * 2, weighted)
    assert (found.values[0] == 1).all()
    assert found.halves == pytest.approx([_halves(goal.reweighted(weighted.values), weighted)] * 4)
    assert found.by_split("noise", "unseen") == pytest.approx([kendall(noise.value, goal.value).value] * 2)


def _halves(values, weighted):
    one, other = weighted.halves
    return np.mean([kendalltau(a, b).statistic for a, b in zip(values[one], values[other], strict=True)])


def test_the_tests_are_openloops():
    rng = np.random.default_rng(0)
    target = rng.normal(size=40)
    scores = {"x": target + rng.normal(size=40), "y": target + 3 * rng.normal(size=40)}
    (found,) = agreement.pair_tests(scores, target, 0)
    taus = [
        kendalltau(a, b).statistic for a, b in ((scores["x"], target), (scores["y"], target), tuple(scores.values()))
    ]
    assert found.difference == pytest.approx(taus[0] - taus[1])
    assert found.coded == pytest.approx(williams(*taus, 40).pvalue / 2)
    assert found.steiger == pytest.approx(steiger(*taus, 40).pvalue)
    assert found.models == compare_tau(scores["x"], scores["y"], target, rng=0).pvalue


def test_where_rankings_are_equal_pearsons_tests_say_nothing():
    target = np.arange(10.0)
    (found,) = agreement.pair_tests({"x": target, "y": -target}, target, 0)
    assert (found.coded, found.steiger) == (None, None)


def test_marks_name_the_others_by_number():
    rng = np.random.default_rng(0)
    target = rng.normal(size=104)
    near = target + 0.1 * rng.normal(size=104)
    found = agreement.significance_marks(
        {"a": near, "b": near + 1e-3 * rng.normal(size=104), "c": -target + rng.normal(size=104)}, target
    )
    assert found == {"a": "3", "b": "3", "c": "1/2"}
