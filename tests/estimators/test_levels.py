"""Weights from a uniform sample of ratings: the value is that of the weights, the error that of post-stratification."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.core.levels import LevelSample, spread
from openloop.core.propensities import Propensities
from openloop.core.totals import leave_one_out
from openloop.estimators.levels import by_level
from tests.examples import same

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


def test_two_users_and_two_levels_by_hand():
    # Level 1: user 0 has w 2 with δ 1 and 3, user 1 has δ 5. Level 2: user 0 has w 1 with δ 0, user 1 with δ 4.
    top, mass = np.array([[8.0, 0.0], [10.0, 4.0]]), np.array([[4.0, 1.0], [2.0, 1.0]])
    sample = LevelSample(levels=[1, 2], shares=[0.75, 0.25], size=10, rows=5)
    function = by_level(sample, mass.sum(axis=0), 5, None)
    columns = np.hstack([top, mass, mass])
    same(function(columns.sum(axis=0)), 22 / 8)
    # without user 0 the means are 5 and 4, without user 1 they are 2 and 0; the shares stay 6/8 and 2/8
    same(leave_one_out(function, columns), [0.75 * 5 + 0.25 * 4 - 22 / 8, 0.75 * 2 - 22 / 8])


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


def test_a_difference_shares_the_sample():
    # Two models whose losses differ by a constant at every rating: the sample does not matter to which is better.
    Y, _, log = world(0)
    result = score({"a": Y + 1.0, "b": Y + 3.0}, log, naive_bayes(Y, log, 50), "mae", "mse")
    gap = result.difference("a", "b", metric="mae", estimator="snips")
    assert gap.value == pytest.approx(-2)
    assert gap.stderr < 1e-9
    assert gap.cell_stderr < 1e-6


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


def test_levels_that_are_absent_leave_their_shares_to_the_nearest_on_both_sides():
    shares, present = np.array([0.1, 0.2, 0.3, 0.4]), np.array([False, True, False, True])
    np.testing.assert_allclose(spread(shares, present), [0, 0.2 + 0.1 + 0.15, 0, 0.4 + 0.15])
    np.testing.assert_allclose(spread(shares, np.ones(4, bool)), shares)
    np.testing.assert_allclose(spread(shares, np.array([True, False, False, False])), [1, 0, 0, 0])
