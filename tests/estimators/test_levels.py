"""Weights from a uniform sample of ratings: the value is that of the weights, the error that of post-stratification."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.core.levels import LevelSample
from openloop.core.propensities import Propensities
from openloop.core.totals import leave_one_out
from openloop.estimators.levels import by_level, drawn_by_user, sample_effects
from openloop.estimators.weighted import ips, snips
from openloop.sources.arrays.rows import Outcome
from tests.examples import moments, rows_of, same

P = np.array([0.05, 0.08, 0.15, 0.3, 0.5])  # by rating


def world(seed: int, users: int = 150, items: int = 40) -> tuple[np.ndarray, np.ndarray, Feedback]:
    """Ratings, predictions that err more on low ratings and by user, and a log in which p depends on the rating."""
    rng = np.random.default_rng(seed)
    taste = 3 + 0.8 * rng.standard_normal((users, 1)) + 0.5 * np.random.default_rng(1).standard_normal(items)
    Y = np.clip(np.rint(taste + rng.standard_normal((users, items))), 1, 5)
    predictions = Y + rng.standard_normal(Y.shape) * (1 + 0.4 * (Y < 3))
    user, item = np.nonzero(rng.random(Y.shape) < P[Y.astype(int) - 1])
    return Y, predictions, Feedback.from_arrays(user, item, Y[user, item], users=users, items=items)


def naive_bayes(Y: np.ndarray, log: Feedback, size: int, *, named: bool = False, seed: int = 0):
    cells = np.random.default_rng(seed).choice(Y.size, size, replace=False)
    user, item = np.divmod(cells, Y.shape[1])
    ratings = Y[user, item]
    given = Feedback.from_arrays(user, item, ratings, users=len(Y), items=Y.shape[1]) if named else ratings
    return ol.propensity.NaiveBayes().fit(log, uniform=given)


def balanced():
    return ol.propensity.Balanced(ol.propensity.Uniform())


def score(models, log, seen, *metrics, estimators=("ips", "snips"), **more):
    return ol.evaluate(models, log, seen, metrics=metrics, estimators=estimators, threshold=4, **more)


def plain(seen, log):
    """The same p as bare numbers: taken as known."""
    return Propensities(values=seen.predict(log).values)


# -- by hand -------------------------------------------------------------------------------------------------


def test_the_samples_variance_is_that_of_a_multinomial_mean():
    sample = LevelSample(levels=[1, 2, 3], shares=[0.5, 0.3, 0.2], size=40, rows=1)
    means = np.array([1.0, 2.0, 4.0])
    theta = sample.shares @ means
    effects = sample_effects(sample, sample.shares * (means - theta))
    assert np.sum(effects**2) == pytest.approx(np.sum(sample.shares * (means - theta) ** 2) / 40)
    same(sample_effects(sample, sample.shares * means), effects)  # ips: centred all the same


def test_two_users_and_two_levels_by_hand():
    # Level 1: user 0 has w 2 with δ 1 and 3, user 1 has δ 5. Level 2: user 0 has w 1 with δ 0, user 1 with δ 4.
    top, mass = np.array([[8.0, 0.0], [10.0, 4.0]]), np.array([[4.0, 1.0], [2.0, 1.0]])
    sample = LevelSample(levels=[1, 2], shares=[0.75, 0.25], size=10, rows=5)
    function = by_level(sample, mass.sum(axis=0), 5, None)
    columns = np.hstack([top, mass, mass])
    same(function(columns.sum(axis=0)), 22 / 8)
    # without user 0 the means are 5 and 4, without user 1 they are 2 and 0; the shares stay 6/8 and 2/8
    same(leave_one_out(function, columns), [0.75 * 5 + 0.25 * 4 - 22 / 8, 0.75 * 2 - 22 / 8])


@pytest.mark.parametrize("estimator", [ips, snips])
def test_all_users_as_one_have_the_variance_over_cells_though_the_sample_names_users(estimator):
    Y, predictions, log = world(0)
    user, item = np.divmod(np.random.default_rng(0).choice(Y.size, 300, replace=False), Y.shape[1])
    level, code = Y[user, item].astype(np.int64) - 1, log.rating.astype(np.int64) - 1
    sample = LevelSample(levels=np.arange(1.0, 6), shares=np.bincount(level, minlength=5) / 300, size=300,
                         rows=len(log), user=user.astype(np.int32), level=level)  # fmt: skip
    rows = rows_of(log, probability=P[code], stratum=code, edges=(1.5, 2.5, 3.5, 4.5))
    whole = replace(moments(ol.metric("mae"), rows, Outcome(prediction=predictions[log.user, log.item])), sample=sample)
    a, b = estimator(whole), estimator(whole.as_one_user())
    same(a.value, b.value)
    same(a.cell_variance, b.cell_variance)
    assert a.cell_variance > 0


def test_the_ratings_drawn_are_counted_by_user_and_level():
    sample = LevelSample(levels=[1, 2], shares=[0.5, 0.5], size=3, rows=1, user=np.array([2, 0, 2], np.int32),
                         level=np.array([1, 0, 1]))  # fmt: skip
    same(drawn_by_user(sample, 3), [[1, 0], [0, 0], [0, 2]])
    assert drawn_by_user(replace(sample, user=None), 3) is None


# -- laws ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("named", [False, True], ids=["ratings", "a Feedback"])
@pytest.mark.parametrize("share", [1, 0.3])
def test_the_value_is_that_of_the_weights(named, share):
    Y, predictions, log = world(0)
    seen = naive_bayes(Y, log, 300, named=named)
    test = log if share == 1 else ol.split(log, test=share, rng=0)[1]
    metrics = ("mae", "rmse", "dcg@3", "recall@3")
    found, known = (score({"m": predictions}, test, p, *metrics) for p in (seen, plain(seen, test)))
    assert found.estimates.keys() == known.estimates.keys()
    for key, estimate in found.estimates.items():
        assert estimate.value == pytest.approx(known[key].value, rel=1e-12)
        assert (estimate.p_taken, known[key].p_taken) == ("corrected", "known")


def test_a_sample_without_end_leaves_the_jackknife_with_held_shares():
    Y, predictions, log = world(0)
    seen = naive_bayes(Y, log, 300)
    endless = replace(seen.predict(log), sample=replace(seen.sample_, size=10**15))
    found = score({"m": predictions}, log, endless, "mae")["m", "mae", "snips"]
    level, delta = (log.rating - 1).astype(int), np.abs(predictions[log.user, log.item] - log.rating)
    pi = seen.population_share_

    def held(rows):
        means = np.bincount(level[rows], delta[rows], minlength=5) / np.bincount(level[rows], minlength=5)
        return pi @ means

    users = np.unique(log.user)
    moves = np.array([held(log.user != u) for u in users]) - held(log.user >= 0)
    m = len(users)
    assert found.stderr == pytest.approx(np.sqrt((m - 1) / m * np.sum(moves**2)), rel=1e-6)


def test_a_small_part_of_the_log_has_the_error_of_known_propensities_and_the_samples():
    Y, predictions, log = world(0)
    seen = naive_bayes(Y, log, 10**3)
    part = replace(seen.predict(log), sample=replace(seen.sample_, rows=1e12, size=10**15))
    found, known = (score({"m": predictions}, log, p, "mae")["m", "mae", "snips"] for p in (part, plain(seen, log)))
    same(found.deviations, known.deviations, atol=1e-9)
    assert found.cell_stderr == pytest.approx(known.cell_stderr, rel=1e-6)


def test_leaving_out_a_user_is_nearly_a_fit_without_her():
    # The sample names users: without one, her ratings leave the sample too.
    Y, predictions, log = world(0, users=40)
    seen = naive_bayes(Y, log, 400, named=True)
    found = score({"m": predictions}, log, seen, "mae")["m", "mae", "snips"]
    sample = seen.side_["uniform"]
    for user in range(5):
        again = ol.propensity.NaiveBayes().fit(log.take(log.user != user), uniform=sample.take(sample.user != user))
        left = log.take(log.user != user)
        value = score({"m": predictions}, left, again, "mae")["m", "mae", "snips"].value
        assert found.deviations[user] == pytest.approx(value - found.value, abs=0.1 * found.stderr)


def test_over_cells_by_the_formula():
    Y, predictions, log = world(0)
    seen = naive_bayes(Y, log, 200)
    found = score({"m": predictions}, log, seen, "mae")["m", "mae", "snips"]
    p, level = seen.predict(log).values, (log.rating - 1).astype(int)
    w, delta = 1 / p, np.abs(predictions[log.user, log.item] - log.rating)
    means = np.bincount(level, delta) / np.bincount(level)
    pi = seen.population_share_
    expected = np.sum((1 - p) * (w * (delta - means[level])) ** 2) / w.sum() ** 2
    expected += np.sum(pi * (means - found.value) ** 2) / 200
    assert found.cell_stderr == pytest.approx(np.sqrt(expected))


def test_equal_models_differ_by_nothing():
    Y, predictions, log = world(0)
    result = score({"a": predictions, "b": predictions.copy()}, log, naive_bayes(Y, log, 100), "mae", "recall@3")
    for metric in ("mae", "recall@3"):
        gap = result.difference("a", "b", metric=metric, estimator="snips")
        assert (gap.value, gap.stderr) == (0, 0)


def test_a_difference_shares_the_sample():
    # Two models whose losses differ by a constant at every rating: the sample does not matter to which is better.
    Y, _, log = world(0)
    result = score({"a": Y + 1.0, "b": Y + 3.0}, log, naive_bayes(Y, log, 50), "mae", "mse")
    gap = result.difference("a", "b", metric="mae", estimator="snips")
    assert gap.value == pytest.approx(-2)
    assert gap.stderr < 1e-9
    assert gap.cell_stderr < 1e-6


def test_the_bootstrap_draws_users_and_samples():
    Y, predictions, log = world(0)
    for named in (False, True):
        result = score({"m": predictions}, log, naive_bayes(Y, log, 100, named=named), "mse", "recall@3")
        for found in result.estimates.values():
            boot = ol.bootstrap(found, replicates=4000, rng=0)
            assert boot.stderr == pytest.approx(found.stderr, rel=0.08)


def test_many_levels_are_merged_for_the_variance():
    rng = np.random.default_rng(0)
    sample = LevelSample(levels=np.arange(100.0), shares=np.full(100, 0.01), size=500, rows=1,
                         user=rng.integers(5, size=500), level=rng.integers(100, size=500))  # fmt: skip
    few = sample.grouped(10)
    same(few.levels, np.arange(0, 100, 10))
    same(few.shares, np.full(10, 0.1))
    same(few.level, sample.level // 10)
    assert sample.grouped(100) is sample


# -- simulation with known truth -----------------------------------------------------------------------------


def test_intervals_cover_where_known_propensities_would_not():
    # 100 logs of new users: 95 % ± 3 standard errors of a binomial is at least 88 %. mse depends on the level much.
    truth = np.mean([np.mean((y - q) ** 2) for y, q, _ in (world(10_000 + s) for s in range(60))])
    covered = {"corrected": 0, "known": 0}
    for seed in range(100):
        Y, predictions, log = world(seed)
        seen = naive_bayes(Y, log, 60, seed=seed)
        for name, p in (("corrected", seen), ("known", plain(seen, log))):
            found = score({"m": predictions}, log, p, "mse", estimators=["snips"])["m", "mse", "snips"]
            covered[name] += truth in found.interval()
    assert covered["corrected"] >= 88
    assert covered["corrected"] >= covered["known"]


# -- under exclude -------------------------------------------------------------------------------------------


def test_shares_follow_the_samples_as_steeply_as_excluded_cells_make_them():
    sample = LevelSample(levels=[1, 2], shares=[0.5, 0.5], size=40, rows=1, leverage=np.array([2.0, 1.0]))
    same(sample_effects(sample, np.array([0.1, -0.2])), np.array([0.2, -0.2]) / np.sqrt(20))
    named = replace(sample, user=np.zeros(40, np.int32), level=np.repeat([0, 1], 20))
    function = by_level(named, np.array([1.0, 1.0]), 1, None)
    totals = np.array([1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 22.0, 20.0])  # Σwδ, Σw, Σ_all w; 22 drawn where 20 were
    same(function(totals), 1.2 / 2.2)  # a tenth more of π_1 is a fifth more of its candidates


@pytest.mark.parametrize("estimator", ["ips", "snips"])
@pytest.mark.parametrize("fit", [ol.propensity.NaiveBayes, balanced])
def test_the_samples_variance_is_that_of_what_another_sample_would_change(fit, estimator):
    _, predictions, log = world(3)
    train, test = ol.split(log, test=0.4, rng=0)
    drawn = 2000 * np.array([0.2, 0.2, 0.2, 0.2, 0.2])

    def found(counts):
        seen = fit().fit(log, uniform=np.repeat([1.0, 2.0, 3.0, 4.0, 5.0], counts.astype(int)))
        return score({"m": predictions}, test, seen, "dcg@10", estimators=[estimator], exclude=train)[
            "m", "dcg@10", estimator
        ]

    step = 20 * np.eye(5)
    slope = np.array([(found(drawn + s).value - found(drawn - s).value) / 40 for s in step])  # of one more rating
    variance = drawn @ slope**2 - (drawn @ slope) ** 2 / drawn.sum()
    assert found(drawn).sample_variance == pytest.approx(variance, rel=0.01)
