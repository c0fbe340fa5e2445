"""OrdinalMF: the contract, recovery of what data were drawn from, interruption, and refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, norm

import openloop as ol
from openloop.core.feedback import Feedback, Vocabulary
from openloop.errors import InputError, RatingError, UndefinedError
from openloop.learners import OrdinalMF
from tests.contracts import PersonalRecommenderContract
from tests.facts import facts

QUICK = {"sweeps": 60, "burn": 30, "thin": 10, "chains": 2}


class TestOrdinalMF(PersonalRecommenderContract):
    size, weighted = 14, False

    def make(self):
        return OrdinalMF(factors=2, **QUICK)


def world(seed, U=40, I=30, d=2, share=0.5):
    """A log drawn from the model, its thresholds relative to the mean score of its rows, and all chances (U, I, L)."""
    rng = np.random.default_rng(seed)
    u, v = rng.normal([0.6, 0.0], 0.7, (U, d)), rng.normal([-0.5, 0.3], 0.7, (I, d))
    scales = [4 / rng.gamma(5, size=n) for n in (U, I)]
    b, m, s = np.array([-1.2, -0.2, 1.0]), u @ v.T, np.sqrt(np.outer(*scales))
    chances = np.diff(norm.cdf((b - m[..., None]) / s[..., None]), prepend=0, append=1)
    rating = 1 + np.sum(rng.random((U, I, 1)) > np.cumsum(chances, axis=2), axis=2)
    user, item = np.nonzero(rng.random((U, I)) < share)
    log = Feedback.from_arrays(user, item, rating[user, item], users=U, items=I)
    return log, b - m[user, item].mean(), chances


@pytest.fixture(scope="module")
def fitted():
    log, b, chances = world(0)
    return OrdinalMF(factors=2, sweeps=300, burn=100, thin=10, chains=2).fit(log), log, b, chances


def test_it_finds_the_chances_that_ratings_were_drawn_with(fitted):
    model, log, b, chances = fitted
    user, item = (codes.ravel() for codes in np.indices(chances.shape[:2]))
    found = model.predict_proba(user, item).reshape(chances.shape)
    np.testing.assert_allclose(found.sum(axis=2), 1, rtol=1e-12)
    shares = np.bincount(log.rating.astype(int) - 1) / len(log)
    assert np.mean((found - chances) ** 2) < 0.5 * np.mean((shares - chances) ** 2)
    for l in range(3):
        watched = model.diagnostics_[f"threshold {l + 1} - mean score"]
        assert abs(watched["mean"] - b[l]) < 3.5 * watched["sd"]


def from_prior(rng, U=10, I=8, d=2):
    """A log whose parameters are the prior's: thresholds relative to its mean score, and chances of its cells."""
    b = np.array([1.0, 0.0])
    while not b[0] < b[1]:
        b = rng.normal([-0.5, 0.5])
    u, v = (rng.normal(rng.standard_normal(d), np.sqrt(2 / rng.gamma(3, size=d)), (n, d)) for n in (U, I))
    m, s = u @ v.T, np.sqrt(np.outer(*(4 / rng.gamma(5, size=n) for n in (U, I))))
    code = np.searchsorted(b, m + s * rng.standard_normal((U, I)))
    user, item = np.nonzero(rng.random((U, I)) < 0.6)
    log = Feedback.from_arrays(user, item, code[user, item], users=U, items=I)
    return log, np.array([*(b - m[user, item].mean()), norm.cdf((b[0] - m[0, 0]) / s[0, 0])])


def test_draws_lie_around_the_truth_as_often_as_they_should():
    # Parameters are drawn from the prior, so a truth's rank among draws of the posterior is uniform: intervals of 90 %
    # and of 50 %, and the lower half, hold as many of 20 truths as a binomial does, but for one seed in a thousand.
    rng, ranks = np.random.default_rng(0), []
    while len(ranks) < 20:
        log, truth = from_prior(rng)
        if len(np.unique(log.rating)) < 3:
            continue
        model = OrdinalMF(factors=2, sweeps=150, burn=50, thin=1, chains=1, threads=1, rng=len(ranks)).fit(log)
        m = np.einsum("nsd,nsd->ns", model.user_draws_[log.user], model.item_draws_[log.item])
        b, score = model.threshold_draws_, np.sum(model.user_draws_[0] * model.item_draws_[0], axis=1)
        chance = norm.cdf((b[:, 0] - score) / np.sqrt(model.user_scale_draws_[0] * model.item_scale_draws_[0]))
        drawn = np.column_stack([b - m.mean(axis=0)[:, None], chance])  # (S, 3)
        ranks.append((drawn < truth).mean(axis=0))
    away = np.abs(np.array(ranks) - 0.5)  # (20, 3)
    for share, held in ((0.9, away <= 0.45), (0.5, away <= 0.25), (0.5, np.array(ranks) < 0.5)):
        low, high = binom.ppf([0.0005, 0.9995], 20, share)
        assert np.all((low <= held.sum(axis=0)) & (held.sum(axis=0) <= high)), (share, held.sum(axis=0))


def test_predictions_are_means_of_the_chances(fitted):
    model, log, *_ = fitted
    user, item = log.user[:50], log.item[:50]
    np.testing.assert_allclose(model.predict(user, item), model.predict_proba(user, item) @ [1, 2, 3, 4], rtol=1e-12)
    assert model.levels_.tolist() == [1, 2, 3, 4]
    assert set(model.diagnostics_["log-likelihood"]) == {"rhat", "ess", "mean", "sd"}


def test_a_saved_model_answers_with_the_same_bits(fitted, tmp_path):
    model, log, *_ = fitted
    model.save(tmp_path / "m.safetensors")
    again = ol.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict_proba(log.user, log.item), model.predict_proba(log.user, log.item))
    assert again.diagnostics_ == model.diagnostics_


def test_threads_do_not_matter_and_seeds_do(monkeypatch):
    monkeypatch.setattr("openloop.kernels.parts.PART", 20)  # several parts inside a chain
    monkeypatch.setattr("openloop.kernels.ordinal_prediction.PART", 5)
    log, *_ = world(1, U=15, I=12)
    assert len(log) > 60
    one, two, other = (
        OrdinalMF(factors=2, threads=threads, rng=rng, **QUICK).fit(log) for threads, rng in ((1, 0), (2, 0), (2, 1))
    )
    np.testing.assert_array_equal(one.user_draws_, two.user_draws_)
    np.testing.assert_array_equal(one.scores([0, 3]), two.scores([0, 3]))
    assert not np.array_equal(one.user_draws_, other.user_draws_)


def test_an_interrupted_fit_goes_on(tmp_path, monkeypatch):
    from openloop.learners import ordinal_mf

    log, *_ = world(2, U=15, I=12)
    model, sweep = OrdinalMF(factors=2, checkpoint=tmp_path / "at.npz", **QUICK), ordinal_mf.sweep

    def interrupted(rows, state, key, pool):
        if key.sweep == 45:
            raise KeyboardInterrupt
        return sweep(rows, state, key, pool)

    monkeypatch.setattr(ordinal_mf, "sweep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(log)
    assert not hasattr(model, "users_")
    monkeypatch.setattr(ordinal_mf, "sweep", sweep)
    whole = OrdinalMF(factors=2, **QUICK).fit(log)
    np.testing.assert_array_equal(model.fit(log).user_draws_, whole.user_draws_)
    assert model.diagnostics_ == whole.diagnostics_
    model.save(tmp_path / "m.safetensors")  # with a path among its parameters
    assert ol.load(tmp_path / "m.safetensors").checkpoint == str(tmp_path / "at.npz")


def test_who_has_no_rating_is_predicted_by_the_prior():
    log, *_ = world(3, U=15, I=12)
    wider = replace(log, users=Vocabulary.range(17))
    model = OrdinalMF(factors=2, **QUICK).fit(wider)
    assert any("2 users" in note and "prior" in note for note in model.notes_)
    cold, warm = model.scores([16])[0], model.scores(np.arange(15))
    assert abs(cold.mean() - warm.mean()) < 1
    assert np.ptp(cold) < np.ptp(warm)


def test_few_sweeps_leave_a_note():
    log, *_ = world(4, U=10, I=8)
    notes = OrdinalMF(factors=1, sweeps=20, burn=5, thin=5, chains=2).fit(log).notes_
    assert any("sweeps=" in note and "R̂" in note for note in notes)


def test_what_cannot_be_fitted_is_refused():
    log, *_ = world(5, U=10, I=8)
    model = OrdinalMF(factors=2, **QUICK)
    with pytest.raises(InputError, match=facts("OrdinalMF", "sample_weight", "MF")):
        model.fit(log, sample_weight=np.ones(len(log)))
    with pytest.raises(InputError, match=facts("OrdinalMF", "propensities=")):
        model.fit(log, propensities=np.full(len(log), 0.5))
    with pytest.raises(UndefinedError, match=facts("OrdinalMF", "positives")):
        model.fit(replace(log, positives=True))
    with pytest.raises(RatingError, match=facts("OrdinalMF", 2, 20, 1)):
        model.fit(replace(log, rating=np.ones(len(log), np.float32)))
    with pytest.raises(InputError, match=facts("OrdinalMF", "factors", 8, 9)):
        OrdinalMF(factors=9).fit(log)
    for name, value in {"factors": 0, "sweeps": 1.5, "burn": -1, "thin": 0, "chains": 0, "threads": 0}.items():
        with pytest.raises(InputError, match=facts("OrdinalMF", name, value)):
            OrdinalMF(**{"factors": 2, **QUICK, name: value}).fit(log)
    with pytest.raises(InputError, match=facts("OrdinalMF", "rng")):
        OrdinalMF(factors=2, rng=-1).fit(log)
