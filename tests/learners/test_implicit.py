"""WMF: by hand, its objective over all cells, and a singular value decomposition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openloop.core.feedback import Feedback
from openloop.core.propensities import Propensities
from openloop.data.simulate import checkerboard
from openloop.errors import AlignmentError, EmptyError
from openloop.learners import WMF
from tests.contracts import PersonalRecommenderContract
from tests.facts import facts

EXACT = {"tol": 1e-9, "iterations": 3000}
TARGETS = pytest.mark.parametrize("target", ["one", "rating"])


class TestWMF(PersonalRecommenderContract):
    implicit = True

    def make(self):
        return WMF(2)


class TestRatedWMF(PersonalRecommenderContract):
    def log(self):
        shown = super().log()
        return shown.take(shown.rating == 5)

    def make(self):
        return WMF(2, target="rating")


def groups(users=40, items=30, seed=0) -> Feedback:
    """Two kinds of users, who like two kinds of items."""
    rng = np.random.default_rng(seed)
    taste = np.where(np.arange(users)[:, None] % 2 == np.arange(items) % 2, 0.5, 0.05)
    user, item = np.nonzero(rng.random((users, items)) < taste)
    return Feedback.from_arrays(user, item, rng.integers(4, 9, len(user)), users=users, items=items)


@pytest.fixture(scope="module")
def log() -> Feedback:
    return groups()


@pytest.fixture(scope="module")
def w(log) -> np.ndarray:
    return np.random.default_rng(1).gamma(3.0, size=len(log)) + 0.1


def cells(model: WMF, log: Feedback, w=None) -> tuple[np.ndarray, np.ndarray]:
    """C and R of every cell, (U, I)."""
    C, R = np.full((log.n_users, log.n_items), model.rest), np.zeros((log.n_users, log.n_items))
    w = np.ones(len(log)) if w is None else w / w.mean()
    C[log.user, log.item] += (model.positive - model.rest) * w
    R[log.user, log.item] = log.rating if model.target == "rating" else 1
    return C, R


def objective(model: WMF, log: Feedback, w=None) -> float:
    C, R = cells(model, log, w)
    V, W = model.user_factors_.astype(np.float64), model.item_factors_.astype(np.float64)
    return float(np.sum(C * (R - V @ W.T) ** 2) + model.reg * (np.sum(V**2) + np.sum(W**2)))


def everyone(model: WMF) -> np.ndarray:
    return model.scores(np.arange(len(model.users_)))


# --- by hand


def test_two_users_who_like_an_item_each():
    # R is the identity, C is 1 on it and 0.5 elsewhere; V = W = √s·I with s = 1 - λ, and 2·λ² + 4·λ·s.
    log = Feedback.from_arrays([0, 1], [0, 1], [1, 1])
    model = WMF(2, 0.2, rest=0.5, **EXACT).fit(log)
    np.testing.assert_allclose(everyone(model), 0.8 * np.eye(2), atol=1e-3)
    assert model.history_[-1] == pytest.approx(2 * 0.04 + 4 * 0.2 * 0.8, rel=1e-5)


@pytest.mark.parametrize("rest", [0.0, 0.5])
def test_where_every_cell_was_seen_it_is_a_singular_value_decomposition(rest):
    # Σ (R - S)² + 2λ‖S‖_*: each singular value of R falls by λ, and those below it are gone; no cell is left to `rest`.
    R = np.random.default_rng(0).normal(size=(20, 15))
    user, item = np.indices(R.shape).reshape(2, -1)
    model = WMF(15, 2.0, rest=rest, target="rating", **EXACT).fit(Feedback.from_arrays(user, item, R.ravel()))
    left, values, right = np.linalg.svd(R, full_matrices=False)
    np.testing.assert_allclose(everyone(model), left * np.maximum(values - 2, 0) @ right, atol=5e-3)


# --- by law


@TARGETS
@pytest.mark.parametrize("rest", [0.0, 0.01, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_history_is_the_objective_over_all_cells(log, w, target, rest, weighted):
    given = w if weighted else None
    for iterations in (1, 4, 100):
        model = WMF(4, 0.3, rest=rest, target=target, iterations=iterations).fit(log, given)
        assert model.history_[-1] == pytest.approx(objective(model, log, given), rel=1e-4)


def test_ratings_are_targets_only_where_asked(log):
    doubled = replace(log, rating=2 * log.rating)
    np.testing.assert_array_equal(everyone(WMF(4).fit(doubled)), everyone(WMF(4).fit(log)))
    ones = replace(log, rating=np.ones(len(log), np.float32))
    np.testing.assert_array_equal(everyone(WMF(4, target="rating").fit(ones)), everyone(WMF(4).fit(log)))


def test_propensities_weigh_by_their_inverse(log):
    p = np.random.default_rng(2).uniform(0.1, 1, len(log))
    weighted = WMF(4).fit(log, Propensities(values=p, fingerprint=log.fingerprint))
    np.testing.assert_array_equal(everyone(weighted), everyone(WMF(4).fit(log, 1 / p)))
    with pytest.raises(AlignmentError, match=facts("Propensities", "another Feedback")):
        WMF(4).fit(log, Propensities(values=p, fingerprint=groups(seed=5).fingerprint))


# --- difficult data, and what it refuses


def test_a_threshold_leaves_the_other_rows_among_the_unseen():
    log = checkerboard(20).everything()
    liked = log.take(log.rating >= 4)
    model = WMF(3, threshold=4).fit(log, np.where(log.rating >= 4, 2.0, 7.0))
    np.testing.assert_array_equal(model.scores([0, 5]), WMF(3).fit(liked).scores([0, 5]))
    with pytest.raises(EmptyError, match=facts("WMF", 6, 5, "threshold=")):
        WMF(3, threshold=6).fit(log)
