"""The accuracy of estimates: a root mean squared error by hand, its interval by simulation, its table by place."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from openloop.studies.schnabel2016.accuracy import accuracy, published_rmse, ratio


def test_accuracy_is_the_root_of_the_mean_squared_error_with_a_positive_interval():
    truth, estimates = np.array([1.0, 2.0]), np.array([[1.0, 2.5], [2.0, 2.0], [1.0, 2.0]])
    found = accuracy(estimates, truth)
    assert found["RMSE"] == pytest.approx(math.sqrt((0.25 + 1.0) / 6))
    assert 0 < found["low"] < found["RMSE"] < found["high"]
    assert found["low"] * found["high"] == pytest.approx(found["RMSE"] ** 2)
    assert accuracy(np.tile(truth, (3, 1)), truth) == {"RMSE": 0.0, "low": 0.0, "high": 0.0}


@pytest.mark.parametrize("among", [1, 42])
def test_the_interval_of_a_ratio_is_students_of_its_draws(among):
    a, b = np.random.default_rng(3).normal(size=(2, 50, 5))
    squares_a, squares_b = np.square(a).mean(axis=1), np.square(b).mean(axis=1)
    logs = 0.5 * (squares_a / squares_a.mean() - squares_b / squares_b.mean())
    half = stats.t(49).ppf(1 - 0.05 / (2 * among)) * stats.sem(logs)
    found = ratio(a, b, np.zeros(5), among)
    assert math.log(found.high / found.value) == pytest.approx(half)
    assert math.log(found.value / found.low) == pytest.approx(half)
    assert half > stats.norm.ppf(1 - 0.05 / (2 * among)) * stats.sem(logs)  # 50 draws are not normal far out


def test_the_rmse_of_printed_means_and_deviations_is_that_of_the_draws():
    draws, truth = np.random.default_rng(2).normal(1, 2, (50, 2)), np.zeros(2)
    rows = {
        str(j): {"true": truth[j], "ips": (draws[:, j].mean(), draws[:, j].std(ddof=1))} for j in range(draws.shape[1])
    }
    assert published_rmse(rows, "ips", 50) == pytest.approx(accuracy(draws, truth)["RMSE"])
