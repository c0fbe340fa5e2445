"""Logistic regression on pairs of covariates is scikit-learn's, and its probabilities add up to the rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from openloop.studies.schnabel2016.pair_logistic import PENALTIES, pair_propensities


@pytest.fixture(scope="module")
def seen():
    """Covariates that many share, and a log that follows their products."""
    rng = np.random.default_rng(0)
    X, Z = rng.integers(2, size=(60, 3)).astype(float), rng.integers(2, size=(50, 2)).astype(float)
    P = expit(X @ rng.normal(size=(3, 2)) @ Z.T - 1.5)
    user, item = np.nonzero(rng.random(P.shape) < P)
    return {"user_covariates": X, "item_covariates": Z, "user": user, "item": item}, P


def test_pairs_are_fitted_as_by_scikit_learn(seen):
    from sklearn.linear_model import LogisticRegression

    given, _ = seen
    found = pair_propensities(given, folds=3, seed=0)
    X, Z = given["user_covariates"], given["item_covariates"]
    features = np.einsum("uk,il->uikl", X, Z).reshape(len(X) * len(Z), -1)
    O = np.zeros((len(X), len(Z)))
    O[given["user"], given["item"]] = 1
    other = LogisticRegression(C=1 / float(found["reg"]), tol=1e-8, max_iter=1000).fit(features, O.ravel())
    P = other.predict_proba(features)[:, 1].reshape(O.shape)
    assert found["p"] == pytest.approx(P[given["user"], given["item"]], abs=2e-4)


def test_propensities_come_near_the_truth(seen):
    given, P = seen
    found = pair_propensities(given, folds=3, seed=0)
    assert np.abs(found["p"] - P[given["user"], given["item"]]).max() < 0.1
    assert float(found["reg"]) == PENALTIES[int(np.argmax(found["scores"]))] < PENALTIES[0]
