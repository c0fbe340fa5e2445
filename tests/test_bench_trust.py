"""The bench of trust: its worlds have the truth that they claim, and its page says what came out."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import openloop as ol
from bench import positions
from bench.trust import decisions, turning
from bench.trust.biases import BIASES, given_of, propensities, truth_of
from bench.trust.cases import answer
from bench.trust.worlds import exact_gamma
from openloop.data.datasets import Data


def verdict(level, winner=None):
    return SimpleNamespace(verdict=SimpleNamespace(level=level, winner=winner))


def test_an_answer_is_held_against_the_truth():
    assert answer(verdict("verdict", "a"), "a") == "right"
    assert answer(verdict("verdict", "a"), "b") == "wrong"
    assert answer(verdict("verdict", "a"), None) == "wrong"  # equal models: any verdict is
    assert answer(verdict("none"), "a") == "undecided"
    assert answer(verdict("conditional"), "a") == "conditional"


def test_gamma_by_bisection_is_the_closed_form_without_exclusion():
    # One user, items 0 and 1 held out of 4, nothing excluded but items 2 and 3, which cannot be recommended.
    train = ol.Feedback.from_arrays([0, 0], [2, 3], [5.0, 5.0], users=1, items=4, share=np.full(2, 0.5))
    p = np.array([0.5, 0.25])
    test = ol.Feedback.from_arrays([0, 0], [0, 1], [4.0, 3.0], users=1, items=4, share=np.full(2, 0.5), propensity=p)
    a, b = np.array([[2.0, 1, 0, 0]]), np.array([[1.0, 2, 0, 0]])
    # d = ±(1 − 1/log2 3) times the rating, a = (1 − t)/s = 1, b = (1/p − 1)/s = 2 and 6.
    D, A, B = 4.0 - 3.0, 2 * 4.0, 6 * 3.0
    D, A, B = -D, B, A  # D + A − B < 0: the pair is turned
    assert exact_gamma(a, b, train, test) == pytest.approx((D + np.sqrt(D * D + 4 * A * B)) / (2 * B), rel=1e-9)


# -- worlds of real data -------------------------------------------------------------------------------------


def data(*, uniform: bool) -> Data:
    world = ol.simulate.schnabel_world(users=60, items=50, rank=3, observed=0.14, rng=0)
    drawn = ol.simulate.World(ratings=world.ratings, propensities=np.full(world.ratings.shape, 0.15)).observe(rng=1)
    return Data(name="made up", log=world.observe(rng=0), open_loop=drawn if uniform else None)


@pytest.mark.parametrize("bias", BIASES)
def test_a_bias_observes_as_much_as_asked(bias):
    truth = truth_of(given_of(data(uniform=False), 60, 50), np.random.default_rng(0))
    p = propensities(bias, truth, 0.1, np.random.default_rng(1))
    assert p.mean() == pytest.approx(0.1, rel=1e-6)
    assert p.min() > 0
    assert p.std() > 0.02


def test_a_log_of_uniform_cells_is_one_of_the_whole_grid():
    truth = truth_of(given_of(data(uniform=True), 0, 0), np.random.default_rng(0))
    p = propensities("item", truth, 0.3, np.random.default_rng(1))
    sums = [float((1 / decisions.log_of(truth, p, np.random.default_rng(s)).propensity).sum()) for s in range(200)]
    error = np.std(sums) / np.sqrt(len(sums))
    assert abs(np.mean(sums) - truth.Y.size) < 4 * error


# -- parts and page ------------------------------------------------------------------------------------------


def test_logs_at_the_turning_point_have_equal_models_and_a_tilted_p():
    found = turning.trial({}, at=1.5, first=0, count=3)["gamma_low"]
    assert all(low >= 1 for low in found)


def test_the_bench_of_positions_measures_values_examination_and_verdicts():
    errors = positions.value_errors(0, fitted=True)
    assert set(errors) == set(positions.VALUES)
    assert abs(errors["snpbm"][0]) < 0.1  # five standard errors of one log
    relative, inside = positions.theta_errors(0)
    assert len(relative) == len(inside) == 4
    assert positions.verdict_of("pbm, half shuffled", 0) == "right"
    assert positions.verdict_of("pbm, one ranker, 5 of 10 shown", 0) == "refused"
    assert positions.verdict_of("equal rankers", 0) == "no verdict"
