"""Logistic regression on pairs of covariates is scikit-learn's, and its probabilities add up to the rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from openloop.studies.schnabel2016.pair_logistic import PENALTIES, Classes, pair_propensities


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


def test_the_sum_of_probabilities_is_the_number_of_rows_at_any_penalty():
    rng = np.random.default_rng(1)
    cells = rng.integers(1, 9, size=(4, 5)).astype(float)
    classes = Classes(
        X=rng.normal(size=(4, 2)), Z=rng.normal(size=(5, 3)), cells=cells, seen=rng.binomial(8, 0.3, (4, 5)) / 8 * cells
    )
    for reg in (100.0, 0.1):
        P = expit(classes.logits(classes.fit(reg)))
        assert np.sum(cells * P) == pytest.approx(classes.seen.sum(), rel=1e-3)


def test_a_large_penalty_leaves_the_share_of_rows():
    classes = Classes(X=np.eye(2), Z=np.eye(2), cells=np.full((2, 2), 10.0), seen=np.array([[1.0, 9.0], [9.0, 1.0]]))
    assert expit(classes.logits(classes.fit(1e9))) == pytest.approx(np.full((2, 2), 0.5), abs=1e-4)
    # each class has its own product here, so that without a penalty the shares are met
    assert expit(classes.logits(classes.fit(1e-9))) == pytest.approx(classes.seen / 10, abs=1e-3)
