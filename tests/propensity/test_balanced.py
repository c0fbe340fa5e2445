"""Balanced weights: the shares and sums that they must have, what cannot be balanced, and a world where they help."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import openloop as ol
from openloop.core.covariates import Covariates
from openloop.core.feedback import Feedback
from openloop.errors import (
    BalanceWarning,
    InputError,
    LeakError,
    PredictionError,
    UndefinedError,
)
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


def test_of_uniform_it_is_naive_bayes():
    # Both weigh by the rating alone; NaiveBayes has Σw = U·I by its own levels, and so has this.
    balanced, bayes = (model.fit(LOG, uniform=SAMPLE).predict(LOG) for model in (Balanced(Uniform()), NaiveBayes()))
    np.testing.assert_allclose(balanced.values, bayes.values, rtol=1e-7)


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


# -- margins and functions -----------------------------------------------------------------------------------

AGES = Covariates(
    values=np.eye(3)[np.arange(U) % 3], names=("age=young", "age=middle", "age=old"), ids=LOG.users
)  # fmt: skip


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


def test_targets_out_of_reach_are_named():
    functions = {"mean rating": (lambda _user, _item, rating: rating, 7.0), "one": (lambda u, _i, _r: u >= 0, 1.0)}
    with pytest.raises(InputError, match=facts("mean rating", 7)):
        Balanced(Uniform(), functions=functions).fit(LOG)


# -- predictions ---------------------------------------------------------------------------------------------

F = np.clip(Y + np.random.default_rng(7).normal(0, 1, Y.shape), 0.5, 5.5).astype(np.float32)
G = 2.5 + 0.4 * (Y.mean(axis=0) - 2.5) + np.random.default_rng(8).normal(0, 0.3, Y.shape)


def means(grid, log, w):
    """The weighted mean of rows, and that of all cells."""
    return np.average(grid[log.user, log.item].astype(float), weights=w), grid.mean(dtype=float)


@pytest.mark.parametrize("more", [{}, {"imputed": G}, {"uniform": SAMPLE}], ids=["f", "f and g", "f and ratings"])
@pytest.mark.parametrize("model", [Known(P), Logistic(), Uniform()], ids=lambda model: type(model).__name__)
def test_the_population_means_of_predictions_are_met(model, more):
    fitted = Balanced(model).fit(LOG, predictions=F, **more)
    p = fitted.predict(LOG)
    for grid in (F, F**2, *((np.abs(F - G), (F - G) ** 2) if "imputed" in more else ())):
        found, wanted = means(grid, LOG, p.weights)
        assert found == pytest.approx(wanted, rel=1e-6)
    if "uniform" in more:
        np.testing.assert_allclose(level_shares(LOG, p.weights), fitted.sample_.shares, rtol=1e-5)
    assert p.weights.sum() == pytest.approx((1 / p.base).sum())


def test_two_by_two_by_hand():
    # f is 3 in one of four cells; of the two rows one has 1 and one 3: the first stands for three cells.
    f, g = np.array([[1.0, 1.0], [1.0, 3.0]]), np.ones((2, 2))
    log = Feedback.from_arrays([0, 1], [0, 1], [2, 4], users=2, items=2)
    for side in ({"predictions": f}, {"predictions": f, "imputed": g}, {"imputed": f}):
        with pytest.warns(BalanceWarning):  # two rows carry nothing
            fitted = Balanced(Uniform()).fit(log, **side)
        np.testing.assert_allclose(fitted.predict(log).weights, [3, 1], rtol=1e-9)
        assert fitted.targets_[0].means[:2] == pytest.approx([1.5, 3.0])


def test_losses_that_were_imputed_rightly_are_estimated_without_error():
    # δ̂ = δ in every cell, so mae and mse are among the means; whatever p says.
    seen = Balanced(Uniform()).fit(LOG, predictions=F, imputed=Y)
    found = ol.evaluate({"f": F}, LOG, seen, metrics=["mae", "mse"], estimators=["snips", "ips"])
    for (_, metric, _), e in found.estimates.items():
        truth = np.abs(F - Y).mean() if metric == "mae" else np.square(F - Y).mean()
        assert e.value == pytest.approx(truth, rel=1e-6)


# -- refusals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("side", "told"),
    [
        ({"predictions": F[:, :-1]}, ("predictions", f"({U}, {I - 1})")),
        ({"predictions": np.where(F > 5, np.nan, F)}, ("predictions", "not finite")),
        ({"imputed": G.T}, ("imputed", f"({I}, {U})")),
    ],
    ids=["shape", "NaN", "imputed"],
)
def test_what_is_no_prediction_of_every_cell_is_refused(side, told):
    with pytest.raises(PredictionError, match=facts(*told)):
        Balanced(Logistic()).fit(LOG, **side)


def test_it_needs_to_know_something():
    with pytest.raises(InputError, match=facts("Balanced", "uniform=sample", "margins=")):
        Balanced(Logistic()).fit(LOG)


def test_positives_have_nothing_to_balance():
    clicks = LOG.take(slice(None), positives=True)
    with pytest.raises(UndefinedError, match=facts("Balanced", "positives", "column")):
        Balanced(Logistic()).fit(clicks, uniform=SAMPLE)


def test_its_own_sample_is_not_scored():
    sample, rest = ol.split(LOG, 0.5, rng=0)
    fitted = Balanced(Uniform()).fit(rest, uniform=sample)
    with pytest.raises(LeakError, match=facts("Balanced")):
        fitted.predict(sample)


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
