"""P(O=1 | Y=r): by hand, by law, guarded against its own sample, and in a world where the rating alone decides."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.data.simulate import World, movie_lovers, schnabel_world
from openloop.errors import InputError, LeakError, RatingError
from openloop.propensity.naive_bayes import NaiveBayes
from openloop.propensity.uniform import Uniform
from tests.contracts import PropensityModelContract
from tests.facts import facts

LOVERS = movie_lovers(users=30, items=20)


def feedback_of(ratings, users: int = 10, items: int = 10, **columns) -> Feedback:
    """A log of these ratings, in the first cells of the grid."""
    user, item = np.divmod(np.arange(len(ratings)), items)
    return Feedback.from_arrays(user, item, np.asarray(ratings, np.float32), users=users, items=items, **columns)


def uniform_part(world: World, n: int, seed: int) -> Feedback:
    """n cells of the world, drawn at random, and marked."""
    everything = world.everything()
    drawn = np.sort(np.random.default_rng(seed).choice(len(everything), n, replace=False))
    return everything.take(drawn, uniform=True)


class TestNaiveBayes(PropensityModelContract):
    has_matrix = has_margins = sums_to_log = False

    def make(self):
        return NaiveBayes()

    def fit(self, model, feedback):
        return model.fit(feedback, uniform=uniform_part(LOVERS, 100, 3))


# -- by hand -------------------------------------------------------------------------------------------------

# 10 × 10 cells, 20 observed: twelve 5s, six 3s, two 1s
LOG = feedback_of([5] * 12 + [3] * 6 + [1] * 2)
# of 8 random cells: one 5, three 3s, four 1s
SAMPLE = [5, 3, 3, 3, 1, 1, 1, 1]


def test_by_hand():
    model = NaiveBayes(smoothing=0).fit(LOG, uniform=SAMPLE)
    assert model.observation_rate_ == 0.2
    assert model.levels_.tolist() == [1, 3, 5]
    np.testing.assert_allclose(model.observed_share_, [0.1, 0.3, 0.6])
    np.testing.assert_allclose(model.population_share_, [4 / 8, 3 / 8, 1 / 8])
    # 0.1 · 0.2 / (4/8), 0.3 · 0.2 / (3/8), 0.6 · 0.2 / (1/8)
    assert model.propensity_by_rating_ == pytest.approx({1.0: 0.04, 3.0: 0.16, 5.0: 0.96})
    np.testing.assert_allclose(model.predict(LOG).values, [0.96] * 12 + [0.16] * 6 + [0.04] * 2)
    assert model.notes_ == ()


def test_smoothing_by_hand():
    # (4+1)/(8+3), (3+1)/11, (1+1)/11
    model = NaiveBayes().fit(LOG, uniform=SAMPLE)
    np.testing.assert_allclose(model.population_share_, np.array([5, 4, 2]) / 11)
    assert model.propensity_by_rating_ == pytest.approx({1.0: 0.02 * 11 / 5, 3.0: 0.06 * 11 / 4, 5.0: 0.12 * 11 / 2})


def test_more_than_one_is_capped_and_reported():
    # 0.6 · 0.2 / (1/10) = 1.2
    model = NaiveBayes(smoothing=0).fit(LOG, uniform=[5] + [3] * 4 + [1] * 5)
    assert model.propensity_by_rating_[5.0] == 1.0
    (note,) = model.notes_
    assert re.search(facts(5.0, "capped", 1), note)


def test_a_part_tells_the_propensities_of_the_whole_log():
    part = feedback_of([5] * 6 + [3] * 3 + [1], share=np.full(10, 0.5))
    model = NaiveBayes().fit(part, uniform=SAMPLE)
    assert model.propensity_by_rating_ == pytest.approx(NaiveBayes().fit(LOG, uniform=SAMPLE).propensity_by_rating_)


# -- by law --------------------------------------------------------------------------------------------------


def test_fitted_on_the_scored_log_ips_is_snips():
    world = schnabel_world(users=150, items=200, rank=5, rng=0)
    log = world.observe(1)
    model = NaiveBayes().fit(log, uniform=uniform_part(world, 400, 2))
    assert model.notes_ == ()  # no cap, and every level is in the log
    result = ol.evaluate(world.predictions, log, model, metrics=["mse", "mae"], estimators=["ips", "snips"])
    for name in world.predictions:
        for metric in ("mse", "mae"):
            ips, snips = (result[name, metric, e].value for e in ("ips", "snips"))
            assert np.isclose(ips, snips, rtol=1e-9)


def test_relabelling_the_ratings_relabels_the_propensities():
    new = {1.0: 10.0, 3.0: -4.0, 5.0: 0.5}  # another order, too
    plain = NaiveBayes().fit(LOG, uniform=SAMPLE)
    relabelled = NaiveBayes().fit(
        replace(LOG, rating=np.array([new[float(r)] for r in LOG.rating], np.float32)),
        uniform=[new[float(r)] for r in SAMPLE],
    )
    expected = {new[r]: p for r, p in plain.propensity_by_rating_.items()}
    assert relabelled.propensity_by_rating_ == pytest.approx(expected)


def test_where_log_and_sample_have_the_same_ratings_it_is_uniform():
    model = NaiveBayes(smoothing=0).fit(LOG, uniform=LOG.rating)
    np.testing.assert_allclose(model.predict(LOG).values, Uniform().fit(LOG).predict(LOG).values)


# -- the leak ------------------------------------------------------------------------------------------------


def test_the_sample_itself_may_not_be_scored():
    log = LOVERS.observe(0)
    for marked in (True, False):
        sample = replace(uniform_part(LOVERS, 100, 1), uniform=marked)
        model = NaiveBayes().fit(log, uniform=sample)
        with pytest.raises(LeakError, match=facts("NaiveBayes", "scored", "ol.split")):
            model.predict(sample)
        with pytest.raises(LeakError):
            ol.evaluate(LOVERS.predictions, sample, model, metrics=["mae"], estimators=["snips"])


def test_the_rest_of_the_log_that_the_sample_was_split_from_may_be_scored():
    # As the paper does with Yahoo! R3: 5 % of the uniform test log tells P(Y=r), the other 95 % are scored.
    test_log = replace(uniform_part(LOVERS, 400, 1), uniform=False)
    rest, sample = ol.split(test_log, test=0.05, rng=0)
    model = NaiveBayes().fit(LOVERS.observe(0), uniform=sample)
    assert len(model.predict(rest)) == 380
    again, _ = ol.split(rest, test=0.5, rng=1)
    assert len(model.predict(again)) == 190


def test_a_log_of_another_origin_may_share_cells_with_the_sample():
    log, sample = LOVERS.observe(0), uniform_part(LOVERS, 300, 1)
    assert np.isin(sample.cell, log.cell).any()
    model = NaiveBayes().fit(log, uniform=sample)
    assert len(model.predict(log)) == len(log)
    train, test = ol.split(log, test=0.5, rng=0)
    assert len(model.predict(train)) + len(model.predict(test)) == len(log)


# -- bad input -----------------------------------------------------------------------------------------------


def test_the_sample_is_needed_and_the_error_says_what_for():
    with pytest.raises(InputError, match=facts("NaiveBayes", "fit(log, uniform=sample)")):
        NaiveBayes().fit(LOG)


def test_a_rating_that_the_log_did_not_have_is_refused_by_predict():
    model = NaiveBayes().fit(LOG, uniform=[*SAMPLE, 2])
    for unseen in (2, 4.5, 0.5, 7):
        with pytest.raises(RatingError, match=facts("NaiveBayes", float(unseen), 1.0, 3.0, 5.0)):
            model.predict(feedback_of([1, 5, unseen]))


# -- by simulation: Schnabel et al., sections 6.2 and 6.4 ----------------------------------------------------


@pytest.fixture(scope="module")
def world() -> World:
    """As large as ML100K, α = 0.25, 5 % observed; P depends on the rating alone."""
    return schnabel_world(rng=0)


def true_propensities(world: World) -> np.ndarray:
    return np.array([world.propensities[world.ratings == r][0] for r in (1, 2, 3, 4, 5)])


def test_estimates_converge_to_the_true_propensities_as_the_sample_grows(world):
    true, rng, errors = true_propensities(world), np.random.default_rng(5), []
    log = world.observe(rng)
    for size in (100, 1000, 10_000, 100_000, 1_000_000):
        relative = []
        for _ in range(5):
            sample = rng.choice(world.ratings.ravel(), size, replace=False)
            p = NaiveBayes().fit(log, uniform=sample).propensity_by_rating_
            relative.append(np.array(list(p.values())) / true - 1)
        errors.append(np.sqrt(np.mean(np.square(relative))))
    assert errors == sorted(errors, reverse=True)
    # What is left at the end is the chance of this one log: a level has the relative error √((1−p)/n_r).
    rows = np.bincount(log.rating.astype(int))[1:]
    assert errors[-1] < 3 * np.sqrt(np.mean((1 - true) / rows))
