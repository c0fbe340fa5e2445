"""P(O=1 | Y=r): by hand, by law, guarded against its own sample, and in a world where the rating alone decides."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.data.simulate import World, movie_lovers, schnabel_world, withhold_diagonal
from openloop.errors import InputError, LeakError, RatingError, UndefinedError
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


class TestNaiveBayesOnPartOfItsSample(TestNaiveBayes):
    def make(self):
        return NaiveBayes(smoothing=0.5, sample_size=50, rng=8)


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


def test_levels_of_log_and_sample_together_are_smoothed():
    # K = 4: 1, 2, 3, 5. The 2 has no p, since the log has none.
    model = NaiveBayes().fit(LOG, uniform=[*SAMPLE, 2, 2])
    assert model.levels_.tolist() == [1, 2, 3, 5]
    np.testing.assert_allclose(model.population_share_, np.array([5, 3, 4, 2]) / 14)
    assert sorted(model.propensity_by_rating_) == [1, 3, 5]
    (note,) = model.notes_
    assert re.search(facts(2.0, "no p"), note)


def test_a_rating_that_the_sample_lacks_lives_of_smoothing_and_is_reported():
    model = NaiveBayes().fit(LOG, uniform=[1, 1, 3])
    np.testing.assert_allclose(model.population_share_, np.array([3, 2, 1]) / 6)
    assert any(re.search(facts(5.0, "smoothing"), note) for note in model.notes_)


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


def test_rows_with_different_shares_stand_for_different_numbers_of_rows():
    # A 5 kept with probability 1/4 stands for four of them.
    part = feedback_of([5, 1, 1], share=np.array([0.25, 1.0, 1.0]))
    model = NaiveBayes().fit(part, uniform=SAMPLE)
    np.testing.assert_allclose(model.observed_share_, [2 / 6, 0, 4 / 6])
    assert model.observation_rate_ == 0.06


@pytest.mark.parametrize("scale", [[0, 1], [0.5, 1.0, 1.5, 4.5], [0.1, 0.2, 0.3], [-2, 0, 2]])
def test_any_discrete_scale_will_do(scale):
    rng = np.random.default_rng(0)
    log, sample = feedback_of(rng.choice(scale, 60)), rng.choice(scale, 500)
    model = NaiveBayes().fit(log, uniform=sample)
    assert list(model.propensity_by_rating_) == scale  # 0.1, though the log holds its float32
    for r in scale:
        rows = np.isclose(log.rating, r)
        share = (np.sum(np.isclose(sample, r)) + 1) / (500 + len(scale))
        np.testing.assert_allclose(model.predict(log).values[rows], min(rows.mean() * 0.6 / share, 1))


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


def test_a_sample_may_be_feedback_of_any_grid_or_its_ratings():
    sample = feedback_of(SAMPLE, users=2, items=4)
    by_feedback, by_list = (NaiveBayes().fit(LOG, uniform=given) for given in (sample, SAMPLE))
    assert by_feedback.propensity_by_rating_ == by_list.propensity_by_rating_


def test_refit_keeps_the_sample():
    model = NaiveBayes().fit(LOG, uniform=SAMPLE)
    other = feedback_of([5] * 3 + [1] * 2)
    assert model.refit(other).propensity_by_rating_ == NaiveBayes().fit(other, uniform=SAMPLE).propensity_by_rating_


# -- a smaller sample on purpose -----------------------------------------------------------------------------


def test_a_sample_size_draws_that_many_without_replacement():
    sample = [1] * 6 + [3] * 3 + [5] * 1
    model = NaiveBayes(smoothing=0, sample_size=10, rng=0).fit(LOG, uniform=sample)
    np.testing.assert_allclose(model.population_share_, [0.6, 0.3, 0.1])
    smaller = NaiveBayes(sample_size=4, rng=0).fit(LOG, uniform=sample)
    counts = smaller.population_share_ * (4 + 3) - 1
    np.testing.assert_allclose(counts, np.rint(counts), atol=1e-9)
    assert np.isclose(counts.sum(), 4)
    assert counts[2] <= 1.01


def test_the_same_seed_draws_the_same_ratings_and_another_does_not():
    sample = np.random.default_rng(0).choice([1, 3, 5], 500)
    first, again, other = (NaiveBayes(sample_size=60, rng=seed).fit(LOG, uniform=sample) for seed in (1, 1, 2))
    assert first.propensity_by_rating_ == again.propensity_by_rating_ != other.propensity_by_rating_


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


def test_no_marked_feedback_may_be_scored():
    model = NaiveBayes().fit(LOVERS.observe(0), uniform=SAMPLE)
    with pytest.raises(LeakError, match=facts("NaiveBayes", "uniform sample")):
        model.predict(uniform_part(LOVERS, 100, 1))


def test_a_part_of_the_sample_may_not_be_scored():
    sample = replace(uniform_part(LOVERS, 100, 1), uniform=False)
    model = NaiveBayes().fit(LOVERS.observe(0), uniform=sample)
    for part in ol.split(sample, test=0.5, rng=0):
        with pytest.raises(LeakError):
            model.predict(part)


def test_the_rest_of_the_log_that_the_sample_was_split_from_may_be_scored():
    # As the paper does with Yahoo! R3: 5 % of the uniform test log tells P(Y=r), the other 95 % are scored.
    test_log = replace(uniform_part(LOVERS, 400, 1), uniform=False)
    rest, sample = ol.split(test_log, test=0.05, rng=0)
    model = NaiveBayes().fit(LOVERS.observe(0), uniform=sample)
    assert len(model.predict(rest)) == 380
    again, _ = ol.split(rest, test=0.5, rng=1)
    assert len(model.predict(again)) == 190


def test_what_contains_the_sample_may_not_be_scored():
    test_log = replace(uniform_part(LOVERS, 400, 1), uniform=False)
    _, sample = ol.split(test_log, test=0.05, rng=0)
    model = NaiveBayes().fit(LOVERS.observe(0), uniform=sample)
    other_split = ol.split(test_log, test=0.5, rng=1)
    leaking = [part for part in other_split if np.isin(sample.cell, part.cell).any()]
    assert leaking
    for part in (test_log, *leaking):
        with pytest.raises(LeakError):
            model.predict(part)


def test_a_part_of_a_part_may_not_be_scored_where_it_was_the_sample():
    _, sample = ol.split(replace(uniform_part(LOVERS, 400, 1), uniform=False), test=0.5, rng=0)
    model = NaiveBayes().fit(LOVERS.observe(0), uniform=sample)
    for part in ol.split(sample, test=0.5, rng=2):
        with pytest.raises(LeakError):
            model.predict(part)


def test_the_same_cells_are_the_sample_whatever_they_were_split_from():
    _, sample = ol.split(replace(uniform_part(LOVERS, 400, 1), uniform=False), test=0.5, rng=0)
    model = NaiveBayes().fit(LOVERS.observe(0), uniform=sample)
    read_again = replace(sample, origin=None)
    for part in (read_again, *ol.split(read_again, test=0.5, rng=0), *withhold_diagonal(sample)):
        with pytest.raises(LeakError):
            model.predict(part)


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


@pytest.mark.parametrize("uniform", [[], [[1, 2]], [[1], [2, 3]], "stars", {"rating": [1]}, ["a"], 3])
def test_a_sample_of_another_kind_is_refused(uniform):
    with pytest.raises(InputError, match=facts("NaiveBayes", "uniform", type(uniform).__name__, "ol.read")):
        NaiveBayes().fit(LOG, uniform=uniform)


def test_ratings_of_the_sample_must_be_finite():
    with pytest.raises(RatingError, match=facts("NaiveBayes", "1 of 3", "uniform")):
        NaiveBayes().fit(LOG, uniform=[1, np.nan, 5])


def test_without_smoothing_the_sample_needs_every_rating_of_the_log():
    with pytest.raises(RatingError, match=facts("NaiveBayes", 3.0, 5.0, "smoothing=1")):
        NaiveBayes(smoothing=0).fit(LOG, uniform=[1, 1])


def test_a_continuous_scale_is_refused():
    rng = np.random.default_rng(0)
    log = feedback_of(rng.random(700), users=30, items=30)
    with pytest.raises(RatingError, match=facts("NaiveBayes", "levels", "1,250")):
        NaiveBayes().fit(log, uniform=rng.random(550))


def test_a_rating_that_the_log_did_not_have_is_refused_by_predict():
    model = NaiveBayes().fit(LOG, uniform=[*SAMPLE, 2])
    for unseen in (2, 4.5, 0.5, 7):
        with pytest.raises(RatingError, match=facts("NaiveBayes", float(unseen), 1.0, 3.0, 5.0)):
            model.predict(feedback_of([1, 5, unseen]))


@pytest.mark.parametrize("smoothing", [-1, np.nan, np.inf, "1", None])
def test_smoothing_must_be_a_number_from_zero(smoothing):
    with pytest.raises(InputError, match=facts("NaiveBayes", "smoothing", repr(smoothing))):
        NaiveBayes(smoothing=smoothing).fit(LOG, uniform=SAMPLE)


@pytest.mark.parametrize("size", [0, -3, 2.5, True, "4"])
def test_a_sample_size_must_be_a_whole_number(size):
    with pytest.raises(InputError, match=facts("NaiveBayes", "sample_size", "whole number", repr(size))):
        NaiveBayes(sample_size=size, rng=0).fit(LOG, uniform=SAMPLE)


@pytest.mark.parametrize("rng", [None, -1, "seed", 0.5])
def test_a_sample_size_needs_rng(rng):
    with pytest.raises(InputError, match=facts("NaiveBayes", "sample_size=4", repr(rng), "rng=0")):
        NaiveBayes(sample_size=4, rng=rng).fit(LOG, uniform=SAMPLE)


def test_a_sample_size_beyond_the_sample_is_refused():
    with pytest.raises(InputError, match=facts("NaiveBayes", "sample_size=9", 8)):
        NaiveBayes(sample_size=9, rng=0).fit(LOG, uniform=SAMPLE)


def test_there_is_no_matrix_and_the_error_says_why():
    with pytest.raises(UndefinedError, match=facts("NaiveBayes", "rating", "predict(feedback)")):
        NaiveBayes().fit(LOG, uniform=SAMPLE).matrix()


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


@pytest.fixture(scope="module")
def errors(world) -> dict[str, np.ndarray]:
    """By estimator: its error of MSE, for 40 logs × the five predictions."""
    rng, Y = np.random.default_rng(11), world.ratings.ravel()
    delta = np.stack([np.square(Y_hat.ravel() - Y) for Y_hat in world.predictions.values()])  # (5, U·I)
    found: dict[str, list[np.ndarray]] = {}
    for _ in range(40):
        log = world.observe(rng)
        seen = delta[:, log.cell]  # (5, n)
        weights = {"naive": np.full(len(log), Y.size / len(log)), "true": 1 / log.propensity}
        for size in (1000, 10_000):
            model = NaiveBayes().fit(log, uniform=rng.choice(Y, size, replace=False))
            weights[f"nb {size}"] = model.predict(log).weights
        for name, w in weights.items():
            found.setdefault(name, []).append(seen @ w / Y.size - delta.mean(axis=1))
    return {name: np.array(rows) for name, rows in found.items()}


def rmse(errors: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))


@pytest.mark.parametrize("size", [1000, 10_000])
def test_ips_with_estimated_propensities_beats_naive_by_an_order_of_magnitude(errors, size):
    assert rmse(errors[f"nb {size}"]) < rmse(errors["naive"]) / 10


def test_from_ten_thousand_uniform_ratings_on_it_beats_the_true_propensities(errors):
    # Section 6.4. Estimated from the scored log, the weights of each rating add up to its share of the grid, and
    # that part of the log's chance is gone; what the sample does not know of P(Y=r) takes its place. Over 4 worlds
    # of 50 logs the ratio is 0.62 at 10⁴ (1.8 at 10³, 0.38 at 10⁵), and over 40 logs it has a standard error of
    # 0.08, so 0.85 leaves chance some room and is still a clear win. (SNIPS with true propensities, at a ratio of
    # 0.53, is beaten by 10⁵ ratings only.)
    assert rmse(errors["nb 10000"]) < 0.85 * rmse(errors["true"])
    assert rmse(errors["nb 1000"]) > rmse(errors["true"])


def test_evaluate_says_the_same_as_the_sums_above(world):
    log = world.observe(np.random.default_rng(3))
    model = NaiveBayes().fit(log, uniform=np.random.default_rng(4).choice(world.ratings.ravel(), 10_000))
    name, Y_hat = "ROTATE", world.predictions["ROTATE"]
    estimate = ol.evaluate({name: Y_hat}, log, model, metrics=["mse"], estimators=["ips"])[name, "mse", "ips"]
    delta = np.square(Y_hat[log.user, log.item] - log.rating)
    assert np.isclose(estimate.value, delta @ model.predict(log).weights / world.ratings.size)
