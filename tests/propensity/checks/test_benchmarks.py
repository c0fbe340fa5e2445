"""How far p moves without a part of the model."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.propensity.checks.benchmarks import benchmarks, moved

USERS, ITEMS = 60, 40


def test_odds_by_hand():
    # odds 1 and 3, 3 and 1, 1 and 1
    assert moved(np.array([0.5, 0.75]), np.array([0.75, 0.5])) == pytest.approx(3)
    assert moved(np.array([0.5]), np.array([0.5])) == 1
    assert moved(np.full(100, 0.5), np.where(np.arange(100) < 4, 0.9, 0.5)) == 1  # in 96 % of the rows


def test_each_covariate_is_left_out_in_turn():
    rng = np.random.default_rng(1)
    X, Z = rng.normal(size=(USERS, 2)), rng.normal(size=(ITEMS, 1))
    chance = 1 / (1 + np.exp(1 - 2 * X[:, :1] * Z.T))  # the first covariate matters, the second does not
    user, item = np.nonzero(rng.random((USERS, ITEMS)) < chance)
    rows = ol.Feedback.from_arrays(user, item, np.ones(len(user)), users=USERS, items=ITEMS)
    model = ol.propensity.Logistic(reg=1.0).fit(rows, user_features=X, item_features=Z)
    first, second = benchmarks(model, rows)
    assert first.factor > 5 * second.factor
    assert first.without in str(first)
    assert "95%" in str(first)
