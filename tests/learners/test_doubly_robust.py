"""DR and RelMF: by law, right if p or r̃ is right, the dense grid as oracle, and what they refuse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.errors import InputError, UndefinedError
from openloop.learners import DR, MF, Bias, RelMF
from openloop.learners.base import FactorLearner
from openloop.learners.doubly_robust import VARIANTS, imputation_weights, row_terms, tilt
from openloop.learners.imputing import cross_imputed
from tests.contracts import PersonalRecommenderContract
from tests.facts import facts

U, I = 40, 30
EXACT = {"tol": 1e-12, "iterations": 3000}
BOTH_VARIANTS = pytest.mark.parametrize("variant", VARIANTS)


class TestDR(PersonalRecommenderContract):
    weighted = False

    def make(self):
        return DR(2, 0.5, imputation=MF(2, 0.5))

    def log(self):
        return replace(super().log(), share=np.ones(1))  # what is not on the diagonal is all there is


class TestRelMF(PersonalRecommenderContract):
    weighted = False
    implicit = True

    def make(self):
        return RelMF(2, 0.05)

    def log(self):
        return replace(super().log(), share=np.ones(1))


class Fixed(FactorLearner):
    """Predicts scale·Y + shift, whatever the log; Y is of rank 1."""

    def __init__(self, left, right, shift=0.0):
        self.left, self.right, self.shift = left, right, shift

    def fit(self, feedback, sample_weight=None, propensities=None):
        self.user_factors_, self.item_factors_ = np.asarray(self.left), np.asarray(self.right)
        self.user_bias_, self.item_bias_ = np.zeros(feedback.n_users), np.zeros(feedback.n_items)
        self.intercept_ = self.shift
        return self._remember(feedback)


def world(seed=0) -> tuple[Feedback, np.ndarray]:
    """A log of about a third of the cells, people rating what they like, and p of all cells."""
    rng = np.random.default_rng(seed)
    Y = np.clip(np.rint(3 + rng.normal(size=(U, 2)) @ rng.normal(size=(2, I))), 1, 5)
    P = 0.08 * 1.7 ** (Y - 1) * rng.uniform(0.6, 1, (U, I))
    user, item = np.nonzero(rng.random((U, I)) < P)
    return Feedback.from_arrays(user, item, Y[user, item], users=U, items=I), P


@pytest.fixture(scope="module")
def log() -> Feedback:
    return world()[0]


@pytest.fixture(scope="module")
def P() -> np.ndarray:
    return world()[1]


def everyone(model) -> np.ndarray:
    return model.scores(np.arange(len(model.users_)))


def grid(log: Feedback, values) -> np.ndarray:
    out = np.zeros((log.n_users, log.n_items))
    out[log.user, log.item] = values
    return out


def imputed(model: DR, log: Feedback, P) -> np.ndarray:
    """r̃ of all cells, as the model saw it."""
    v = imputation_weights(model, P[log.user, log.item])
    return cross_imputed(model, model.imputation, log, v, np.random.default_rng(model.rng))[0].dense()


def loss(f, log: Feedback, P, R, variant="textbook") -> float:
    """Σ_D ê + Σ_O (e − ê)/p, or Σ_D ê + Σ_O e/p − Σ_O ê as coded, cell by cell."""
    O, Y = grid(log, 1.0), grid(log, log.rating)
    e, guess = (f - Y) ** 2, (f - R) ** 2
    return float(np.sum(guess + O * (e / P - (guess if variant == "as_coded" else guess / P))))


def penalties(model) -> float:
    own, offsets = model.reg, model.reg if model.bias_reg is None else model.bias_reg
    return own * (np.sum(model.user_factors_**2) + np.sum(model.item_factors_**2)) + offsets * (
        np.sum(model.user_bias_**2) + np.sum(model.item_bias_**2)
    )


def two_guesses(R) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(9)
    return R + rng.normal(0, 0.5, R.shape), 0.5 * R + rng.normal(0, 0.5, R.shape)


# --- the objective


def terms(log, P, R, variant="textbook", targeted=False):
    p, r = P[log.user, log.item], R[log.user, log.item]
    extra = tilt(p, 1 / p, np.sum(1 / P - 1) if targeted else None, variant)
    return row_terms(log.rating.astype(float), r, 1 / p, extra, variant)


def low_rank_plus_rows(f, log, R, t) -> float:
    own = f[log.user, log.item]
    return float(np.sum((f - R) ** 2) + np.sum(t.v * own**2 - 2 * t.s * own) + t.constant)


def test_the_loss_is_least_squares_on_the_pseudo_outcome(log, P):
    R = Bias().fit(log).scores(np.arange(U))
    M = R + grid(log, (log.rating - R[log.user, log.item]) / P[log.user, log.item])
    f, g = two_guesses(R)
    assert loss(f, log, P, R) - loss(g, log, P, R) == pytest.approx(np.sum((f - M) ** 2) - np.sum((g - M) ** 2))
    assert low_rank_plus_rows(f, log, R, terms(log, P, R)) == pytest.approx(np.sum((f - M) ** 2))


@BOTH_VARIANTS
def test_the_slope_is_0_at_what_was_learned(log, P, variant):
    model = DR(4, 3.0, imputation=MF(3, 2.0), variant=variant, **EXACT).fit(log, propensities=P)
    R, O = imputed(model, log, P), grid(log, 1.0)
    w, rest = O / P, 1 - O
    f, Y = everyone(model), grid(log, log.rating)
    half = (f - R) + w * (R - Y) if variant == "textbook" else w * (f - Y) + rest * (f - R)
    half *= len(log) / (U * I)
    np.testing.assert_allclose(half @ model.item_factors_ + 3 * model.user_factors_, 0, atol=2e-3)
    np.testing.assert_allclose(half.sum(axis=0) + 3 * model.item_bias_, 0, atol=2e-3)


# --- doubly robust in fact


def truth(seed=5) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    left, right = rng.uniform(1, 2.2, (U, 1)), rng.uniform(1, 2.2, (I, 1))
    Y = left @ right.T
    return left, right, Y, np.clip(0.05 * Y**1.5, 0.02, 0.9)


RIGHT_P = pytest.mark.parametrize("right_p", [True, False], ids=["p right", "p wrong"])
RIGHT_R = pytest.mark.parametrize("right_r", [True, False], ids=["r right", "r wrong"])


@RIGHT_P
@RIGHT_R
def test_it_is_right_where_p_or_the_imputation_is(right_p, right_r):
    left, right, Y, P = truth()
    given = P if right_p else np.full_like(P, P.mean())
    imputation = Fixed(left, right) if right_r else Fixed(0.6 * left, right, 2.0)
    model = DR(0, 1e9, imputation=imputation, iterations=1, tol=1.0)
    rng, levels, slopes = np.random.default_rng(7), [], []
    h = (right - right.mean())[:, 0]  # one direction of the gradient Σ_D (f − m)h
    R = everyone(imputation.fit(Feedback.from_arrays([0], [0], [1], users=U, items=I)))
    for _ in range(60):
        user, item = np.nonzero(rng.random(P.shape) < P)
        rating = (Y + rng.normal(0, 0.5, Y.shape))[user, item]  # the right r̃ is the mean, not the rating itself
        drawn = Feedback.from_arrays(user, item, rating, users=U, items=I)
        levels.append(model.fit(drawn, propensities=given).intercept_)  # the mean of m
        m = R + grid(drawn, terms(drawn, given, R).s)
        slopes.append(np.mean(m * h))
    for found, wanted in ((levels, Y.mean()), (slopes, np.mean(Y * h))):
        z = (np.mean(found) - wanted) / (np.std(found) / np.sqrt(len(found)))
        assert abs(z) < 4 if right_p or right_r else abs(z) > 10


# --- p


@pytest.mark.parametrize("targeted", [False, True], ids=["plain", "targeted"])
def test_clip_is_a_floor_of_p(log, P, targeted):
    cut = DR(2, clip=5, targeted=targeted).fit(log, propensities=P)
    floored = DR(2, targeted=targeted).fit(log, propensities=np.maximum(P, 0.2))
    np.testing.assert_array_equal(everyone(cut), everyone(floored))


# --- what DR refuses


def test_without_p_there_is_no_fit(log):
    for model in (DR(), RelMF()):
        with pytest.raises(UndefinedError, match=facts(type(model).__name__, "propensities=", "ol.propensity")):
            model.fit(log)


def test_weights_alone_are_refused(log, P):
    w = 1 / P[log.user, log.item]
    with pytest.raises(InputError, match=facts("DR", "sample_weight", "propensities=")):
        DR().fit(log, sample_weight=w)
    with pytest.raises(InputError, match=facts("DR", "sample_weight", "propensities=")):
        DR().fit(log, sample_weight=w, propensities=P)


def test_a_part_without_a_share_is_refused(log, P):
    with pytest.raises(UndefinedError, match=facts("DR", "share", "time")):
        DR(2).fit(replace(log, share=None), propensities=P)


# --- RelMF


def test_relmf_is_least_squares_on_clicks_over_p(log, P):
    model = RelMF(3, 0.5, floor=0.2, threshold=4, **EXACT).fit(log, propensities=P)
    keep = log.rating >= 4
    clicks = log.take(keep)
    M = grid(clicks, 1 / np.maximum(P[clicks.user, clicks.item], 0.2))
    rho = len(clicks) / (U * I)
    assert model.intercept_ == pytest.approx(M.mean())
    assert model.history_[-1] == pytest.approx(rho * np.sum((everyone(model) - M) ** 2) + penalties(model), rel=1e-7)
    np.testing.assert_allclose(
        rho * (everyone(model) - M) @ model.item_factors_ + 0.5 * model.user_factors_, 0, atol=1e-3
    )
    assert f"{len(clicks):,} of {len(log):,} rows are positives" in model.notes_


def test_relmf_finds_how_many_cells_would_be_liked():
    rng = np.random.default_rng(2)
    liking, shown = rng.uniform(0.1, 0.9, (U, I)), rng.uniform(0.15, 0.9, (U, I))
    levels = []
    for _ in range(60):
        user, item = np.nonzero((rng.random((U, I)) < shown) & (rng.random((U, I)) < liking))
        clicks = Feedback.from_arrays(user, item, np.ones(len(user)), users=U, items=I, positives=True)
        levels.append(RelMF(0, iterations=1, tol=1.0).fit(clicks, propensities=shown).intercept_)
    assert abs(np.mean(levels) - liking.mean()) < 4 * np.std(levels) / np.sqrt(len(levels))


def test_relmf_refuses_p_that_were_fitted_on_clicks(log):
    clicks = replace(log, positives=True)
    popular = ol.propensity.Popularity().fit(clicks)
    with pytest.raises(UndefinedError, match=facts("RelMF", "shown", "liked")):
        RelMF(2).fit(clicks, propensities=popular)
