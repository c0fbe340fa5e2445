"""Weights nearest to given ones with given means: by hand, by iterated raking, and where there are none."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.propensity.solvers.calibration import calibrate, rake


def raked_by_hand(w, level, shares, item, rounds=3000):
    """Iterated proportional fitting."""
    sums, w = np.bincount(item, w), w.copy()
    for _ in range(rounds):
        w *= (shares * sums.sum() / np.bincount(level, w, minlength=len(shares)))[level]
        w *= (sums / np.bincount(item, w))[item]
    return w


def rows(rng, n=400, levels=4, items=7):
    return rng.uniform(1, 9, n), rng.integers(0, levels, n), rng.integers(0, items, n)


def test_levels_alone_are_scaled_each_by_one_factor():
    w, level = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0, 0, 1, 1])
    found = rake(w, level, np.array([0.6, 0.4]))
    np.testing.assert_allclose(found.factor, [2, 2, 4 / 7, 4 / 7], rtol=1e-9)
    np.testing.assert_allclose(np.diff(found.mu), np.log(4 / 7 / 2), rtol=1e-9)


def test_levels_and_blocks_are_those_of_iterated_raking():
    w, level, item = rows(np.random.default_rng(0))
    shares = np.array([0.4, 0.3, 0.2, 0.1])
    found = rake(w, level, shares, item)
    np.testing.assert_allclose(w * found.factor, raked_by_hand(w, level, shares, item), rtol=1e-6)
    np.testing.assert_allclose(np.bincount(item, w * found.factor), np.bincount(item, w), rtol=1e-9)
    np.testing.assert_allclose(np.bincount(level, w * found.factor) / w.sum(), shares, rtol=1e-9)


def test_a_mean_is_met_by_an_exponential_tilt():
    rng = np.random.default_rng(1)
    w, h = rng.uniform(1, 5, 300), rng.normal(size=(300, 1))
    found = calibrate(w, h, np.array([0.7]))
    assert found.converged
    assert np.average(h[:, 0], weights=w * found.factor) == pytest.approx(0.7, abs=1e-10)
    assert (w * found.factor).sum() == pytest.approx(w.sum())
    np.testing.assert_allclose(
        np.log(found.factor) - h[:, 0] * found.mu[0], np.log(found.factor[0] / np.exp(h[0, 0] * found.mu[0]))
    )


@pytest.mark.parametrize("mean", [1.0, 1.5, -0.1])
def test_means_beyond_what_rows_hold_are_not_reached(mean):
    rng = np.random.default_rng(4)
    w, h = rng.uniform(1, 5, 100), rng.uniform(0, 0.9, (100, 1))
    found = calibrate(w, h, np.array([mean]))
    assert not found.converged
    assert np.isfinite(found.factor).all()
