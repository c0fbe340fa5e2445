"""OrdinalMF: the contract, recovery of what data were drawn from, and refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from openloop.core.feedback import Feedback
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
    with pytest.raises(InputError, match=facts("OrdinalMF", "rng")):
        OrdinalMF(factors=2, rng=-1).fit(log)
