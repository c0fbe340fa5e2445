"""Balanced weights: the shares and sums that they must have, what cannot be balanced, and a world where they help."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import openloop as ol
from openloop.core.covariates import Covariates
from openloop.core.feedback import Feedback
from openloop.errors import InputError, LeakError, RatingError, UndefinedError
from openloop.propensity import Balanced, Calibrated, Known, Logistic, LowRank, NaiveBayes, Popularity, Uniform
from tests.facts import facts

U, I = 200, 30


def world(seed=0, rate=0.2):
    """Ratings, and a chance of being observed that grows with the rating and with the item's popularity."""
    rng = np.random.default_rng(seed)
    popular = np.exp(rng.normal(0, 0.6, I))
    Y = np.clip(np.rint(3 + 0.5 * np.log(popular) + rng.normal(0, 1, (U, I))), 1, 5)
    p = popular * 1.6 ** (Y - 3)
    return Y, np.minimum(p * rate / p.mean(), 0.95)


def observed(Y, p, seed=1):
    user, item = np.nonzero(np.random.default_rng(seed).random(Y.shape) < p)
    return Feedback.from_arrays(user, item, Y[user, item], users=U, items=I)


Y, P = world()
LOG = observed(Y, P)
SAMPLE = np.random.default_rng(2).choice(Y.ravel(), 300, replace=False)


def level_shares(log, w, levels=(1, 2, 3, 4, 5)):
    return np.array([w[log.rating == r].sum() for r in levels]) / w.sum()


# -- laws ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "kept"),
    [(Logistic(), True), (Popularity(gamma=1), True), (LowRank(rank=1, radius=1.0), True), (Uniform(), False),
     (Known(P), False), (Calibrated(Logistic(), method=None, floor=0.1), True)],
    ids=lambda given: type(given).__name__ if hasattr(given, "fit") else "",
)  # fmt: skip
def test_levels_have_the_samples_shares_and_items_keep_what_the_model_gave_them(model, kept):
    fitted = Balanced(model).fit(LOG, uniform=SAMPLE)
    p = fitted.predict(LOG)
    wanted = (np.bincount(SAMPLE.astype(int), minlength=6)[1:] + 1) / (len(SAMPLE) + 5)
    np.testing.assert_allclose(level_shares(LOG, p.weights), wanted, rtol=1e-6)
    np.testing.assert_allclose(fitted.sample_.shares, wanted)
    before, after = (np.bincount(LOG.item, w) for w in (1 / p.base, p.weights))
    assert np.allclose(before, after, rtol=1e-8) == kept
    assert after.sum() == pytest.approx(before.sum())
    assert (fitted.keeps_items_, p.by_items, p.blind) == (kept, kept, False)
    np.testing.assert_allclose(p.base, fitted.inner_.predict(LOG).used)


def test_a_weight_is_the_models_times_the_factors_of_level_and_item():
    fitted = Balanced(Logistic()).fit(LOG, uniform=SAMPLE)
    p = fitted.predict(LOG)
    g, h = fitted.factors_[LOG.rating.astype(int) - 1], fitted.item_factors_[LOG.item]
    np.testing.assert_allclose(p.weights, g * h / p.base)


def test_of_uniform_it_is_naive_bayes():
    # Both weigh by the rating alone; NaiveBayes has Σw = U·I by its own levels, and so has this.
    balanced, bayes = (model.fit(LOG, uniform=SAMPLE).predict(LOG) for model in (Balanced(Uniform()), NaiveBayes()))
    np.testing.assert_allclose(balanced.values, bayes.values, rtol=1e-7)


def test_a_part_has_the_weights_of_the_log():
    fitted = Balanced(Logistic()).fit(LOG, uniform=SAMPLE)
    train, test = ol.split(LOG, 0.3, rng=0)
    own = fitted.predict(LOG).values
    np.testing.assert_array_equal(fitted.predict(test).values, own[np.isin(LOG.cell, test.cell)])
    assert len(fitted.refit(train).predict(train)) == len(train)


def test_a_model_survives_pickling_and_a_refit_keeps_the_choices():
    fitted = Balanced(Logistic(reg=3.0), margins={"sex": {"f": 0.5, "m": 0.5}})
    features = Covariates(values=np.eye(2)[np.arange(U) % 2], names=("sex=f", "sex=m"), ids=LOG.users)
    fitted.fit(LOG, uniform=SAMPLE, user_features=features)
    again = pickle.loads(pickle.dumps(fitted)).refit(LOG)  # noqa: S301, made here
    np.testing.assert_allclose(again.predict(LOG).values, fitted.predict(LOG).values)
    assert again.side_.keys() == fitted.side_.keys()


def test_a_sample_of_users_of_the_log_names_them():
    cells = np.sort(np.random.default_rng(3).choice(U * I, 50, replace=False))
    sample = Feedback.from_arrays(cells // I, cells % I, Y.ravel()[cells], users=U, items=I, uniform=True)
    found = Balanced(Uniform()).fit(LOG, uniform=sample).sample_
    assert found.size == 50
    assert found.rows == len(LOG)
    np.testing.assert_array_equal(found.user, cells // I)
    np.testing.assert_array_equal(found.levels[found.level], Y.ravel()[cells])


# -- by simulation -------------------------------------------------------------------------------------------


def test_200_ratings_take_out_most_of_the_bias_of_a_blind_model():
    # δ = Y: what selection by the rating distorts most; and its sum over an item's cells.
    off = {"blind": [], "balanced": []}
    for seed in range(12):
        truth, p = world(seed)
        log = observed(truth, p, seed + 50)
        sample = np.random.default_rng(seed + 100).choice(truth.ravel(), 200, replace=False)
        for name, model in (("blind", Logistic()), ("balanced", Balanced(Logistic()))):
            fitted = model.fit(log, **({"uniform": sample} if name == "balanced" else {}))
            w = fitted.predict(log).weights
            off[name].append(np.average(log.rating >= 4, weights=w) - np.mean(truth >= 4))
    assert np.mean(off["blind"]) > 0.06
    assert abs(np.mean(off["balanced"])) < 3 * 0.035 / np.sqrt(12)  # √(π(1 − π)/200) of a share near .3


# -- levels --------------------------------------------------------------------------------------------------


def test_a_level_without_a_row_leaves_its_share_to_its_neighbours():
    log = LOG.take(LOG.rating != 2)
    fitted = Balanced(Uniform()).fit(log, uniform=[1, 2, 2, 3, 3, 3, 4, 5])
    pi = np.array([2, 3, 4, 2, 2]) / 13
    np.testing.assert_allclose(
        level_shares(log, fitted.predict(log).weights),
        [pi[0] + pi[1] / 2, 0, pi[2] + pi[1] / 2, pi[3], pi[4]],
        rtol=1e-6,
    )
    assert fitted.unseen_share_ == pytest.approx(pi[1])
    assert any("23" in note and " 2.0" in note for note in fitted.notes_)
    assert Balanced(Uniform()).fit(LOG, uniform=SAMPLE).unseen_share_ == 0


def test_a_fine_scale_is_balanced_by_at_most_ten_groups():
    rng = np.random.default_rng(0)
    fine = Feedback.from_arrays(LOG.user, LOG.item, LOG.rating + rng.uniform(0, 1, len(LOG)), users=U, items=I)
    sample = SAMPLE + rng.uniform(0, 1, len(SAMPLE))
    fitted = Balanced(Uniform()).fit(fine, uniform=sample)
    assert len(fitted.levels_) == 10
    assert any("10 groups" in note for note in fitted.notes_)
    w = fitted.predict(fine).weights
    shares = [w[fitted.sample_.codes(fine.rating) == r].sum() / w.sum() for r in range(10)]
    np.testing.assert_allclose(shares, fitted.sample_.shares, rtol=1e-6)
    np.testing.assert_allclose(fitted.sample_.shares, 0.1, atol=0.01)
    fitted.predict(fine.take(slice(0, 1), rating=np.array([99.0])))  # groups have no gaps


def test_a_rating_of_no_level_is_refused():
    fitted = Balanced(Uniform()).fit(LOG, uniform=SAMPLE)
    with pytest.raises(RatingError, match=facts("Balanced", "2.5")):
        fitted.predict(LOG.take(slice(0, 1), rating=np.array([2.5])))


# -- items that cannot keep their sums -----------------------------------------------------------------------


def test_items_with_few_rows_do_not_keep_their_sums_and_a_note_says_why():
    few = LOG.take(np.arange(len(LOG)) % 8 == 0)
    median = np.median(np.bincount(few.item)[few.item])
    fitted = Balanced(Popularity(gamma=1)).fit(few, uniform=SAMPLE)
    assert not fitted.keeps_items_
    assert any(f"{median:.0f} rows" in note for note in fitted.notes_)
    assert not fitted.predict(few).by_items


def test_items_do_not_keep_sums_that_contradict_what_is_balanced():
    rating = np.where(LOG.item % 2, 5.0, 1.0)  # the rating follows from the item
    log = Feedback.from_arrays(LOG.user, LOG.item, rating, users=U, items=I)
    fitted = Balanced(Logistic()).fit(log, uniform=[1] * 90 + [5] * 10)
    assert not fitted.keeps_items_
    assert any("keep" in note for note in fitted.notes_)
    np.testing.assert_allclose(level_shares(log, fitted.predict(log).weights, (1, 5)), [91 / 102, 11 / 102], rtol=1e-6)


# -- margins and functions -----------------------------------------------------------------------------------

AGES = Covariates(
    values=np.eye(3)[np.arange(U) % 3], names=("age=young", "age=middle", "age=old"), ids=LOG.users
)  # fmt: skip


def test_margins_of_users_have_their_shares_without_a_sample():
    fitted = Balanced(Uniform(), margins={"age": {"young": 0.5, "old": 0.2, "middle": 0.3}}).fit(
        LOG, user_features=AGES
    )
    w = fitted.predict(LOG).weights
    np.testing.assert_allclose([w[LOG.user % 3 == k].sum() / w.sum() for k in range(3)], [0.5, 0.3, 0.2], rtol=1e-6)
    assert (fitted.sample_, fitted.predict(LOG).sample) == (None, None)


def test_levels_margins_and_functions_hold_together():
    fitted = Balanced(
        Popularity(gamma=1), margins={"age": {"young": 0.5, "old": 0.2, "middle": 0.3}},
        functions={"even items": (lambda _user, item, _rating: item % 2 == 0, 0.4)},
    ).fit(LOG, uniform=SAMPLE, user_features=AGES)  # fmt: skip
    w = fitted.predict(LOG).weights
    np.testing.assert_allclose(level_shares(LOG, w), fitted.sample_.shares, rtol=1e-5)
    assert w[LOG.user % 3 == 0].sum() / w.sum() == pytest.approx(0.5, rel=1e-5)
    assert w[LOG.item % 2 == 0].sum() / w.sum() == pytest.approx(0.4, rel=1e-5)
    assert not fitted.keeps_items_  # the items' sums say something else


@pytest.mark.parametrize(
    ("margins", "told"),
    [
        ({"age": {"young": 0.5, "old": 0.5}}, ("age=middle", "age=young")),
        ({"age": {"young": 0.5, "old": 0.2, "middle": 0.1}}, ("age", "0.8")),
        ({"height": {"tall": 1.0}}, ("height", "age=young")),
    ],
)
def test_margins_that_no_population_has_are_refused(margins, told):
    with pytest.raises(InputError, match=facts("Balanced", *told)):
        Balanced(Uniform(), margins=margins).fit(LOG, user_features=AGES)


def test_targets_out_of_reach_are_named():
    functions = {"mean rating": (lambda _user, _item, rating: rating, 7.0), "one": (lambda u, _i, _r: u >= 0, 1.0)}
    with pytest.raises(InputError, match=facts("mean rating", 7)):
        Balanced(Uniform(), functions=functions).fit(LOG)


@pytest.mark.parametrize("given", [3.0, (lambda: 1, "x"), (1.0, 2.0)], ids=["number", "text", "no function"])
def test_functions_come_with_their_means(given):
    with pytest.raises(InputError, match=facts("functions['h']")):
        Balanced(Uniform(), functions={"h": given}).fit(LOG)


def test_a_function_gives_one_number_per_row():
    with pytest.raises(InputError, match=facts("functions['h']", "(1,)")):
        Balanced(Uniform(), functions={"h": (lambda _user, _item, rating: rating[:1], 3.0)}).fit(LOG)


# -- refusals ------------------------------------------------------------------------------------------------


def test_it_needs_to_know_something():
    with pytest.raises(InputError, match=facts("Balanced", "uniform=sample", "margins=")):
        Balanced(Logistic()).fit(LOG)


def test_positives_have_nothing_to_balance():
    clicks = LOG.take(slice(None), positives=True)
    with pytest.raises(UndefinedError, match=facts("Balanced", "positives", "column")):
        Balanced(Logistic()).fit(clicks, uniform=SAMPLE)


def test_there_is_no_matrix():
    with pytest.raises(UndefinedError, match=facts("Balanced", "predict(feedback)")):
        Balanced(Uniform()).fit(LOG, uniform=SAMPLE).matrix()


def test_its_own_sample_is_not_scored():
    sample, rest = ol.split(LOG, 0.5, rng=0)
    fitted = Balanced(Uniform()).fit(rest, uniform=sample)
    with pytest.raises(LeakError, match=facts("Balanced")):
        fitted.predict(sample)


def test_balancing_comes_last():
    with pytest.raises(UndefinedError, match=facts("Calibrated", "Balanced(Calibrated(model))")):
        Calibrated(Balanced(Uniform()), method=None, floor=0.1).fit(LOG, uniform=SAMPLE)
