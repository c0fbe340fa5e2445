"""Metrics on predicted ratings, by hand."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.errors import PredictionError, UndefinedError
from tests.examples import same
from tests.facts import facts

# Three users, four items; what is not rated is nan.
Y = np.array([[5, 1, np.nan, 3], [np.nan, 2, 4, np.nan], [np.nan] * 4])
Y_HAT = np.array([[4.0, 3.0, 0.0, 3.4], [0.0, 2.5, 1.0, 0.0], [0.0] * 4])


def log_of(Y):
    user, item = np.nonzero(np.isfinite(Y))
    return Feedback.from_arrays(user, item, Y[user, item], users=Y.shape[0], items=Y.shape[1])


def naive(metric, Y=Y, Y_hat=Y_HAT):
    return ol.evaluate({"m": Y_hat}, log_of(Y), metrics=[metric], estimators=["naive"])["m", metric, "naive"].value


def test_errors_by_hand():
    same(naive("mae"), (1 + 2 + 0.4 + 0.5 + 3) / 5)
    same(naive("mse"), (1 + 4 + 0.16 + 0.25 + 9) / 5)
    same(naive("rmse"), np.sqrt((1 + 4 + 0.16 + 0.25 + 9) / 5))


def test_accuracy_rounds_to_the_nearest_rating_that_occurs():
    # Levels 1 … 5: 4 → 4 ≠ 5, 3 ≠ 1, 3.4 → 3, 2.5 lies on a midpoint and goes up to 3 ≠ 2, 1 ≠ 4.
    same(naive("accuracy"), 1 / 5)
    # Levels 1 and 5 only: the midpoint is 3.
    same(naive("accuracy", np.array([[5.0, 1.0, 5.0]]), np.array([[3.0, 2.9, -7.0]])), 2 / 3)


def test_ratings_without_levels_have_no_accuracy():
    many = np.arange(100.0)[None, :]
    with pytest.raises(UndefinedError, match=facts("accuracy", "distinct ratings", "mae")):
        naive("accuracy", many, many)


def test_cg_averages_the_ratings_of_what_is_recommended():
    # Eq. 7 on a complete O: the mean over users of the mean rating of their k recommendations.
    full = np.array([[5, 1, 2, 3], [1, 2, 4, 3]], float)
    recommended = np.array([[1, 0, 0, 1], [0, 1, 1, 0]], float)
    same(naive("cg@2", full, recommended), ((5 + 3) / 2 + (2 + 4) / 2) / 2)


def test_cg_of_the_top_k_is_prec_at_k():
    rng = np.random.default_rng(0)
    full, scores = rng.integers(1, 6, (6, 9)).astype(float), rng.random((6, 9))
    top = (scores >= np.sort(scores)[:, -3:-2]).astype(float)
    same(naive("cg@3", full, top), naive("prec@3", full, scores))


def test_cg_wants_zeros_and_ones():
    with pytest.raises(PredictionError, match=facts("cg@k", "0/1", 4.0, "prec@k")):
        naive("cg@2")
