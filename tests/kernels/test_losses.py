"""Losses as squares: by hand, above the loss and touching it."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.kernels.losses import Loss, squares_numpy

EPSILON = 0.3
EVERY = pytest.mark.parametrize("loss", list(Loss), ids=["squared", "absolute", "logistic"])
# Far out, near 0, at 0, and where single precision rounds 1 - e^-|z| to 0.
LOGITS = np.array([-800.0, -30, -4, -1, -1e-3, -1e-9, 0, 1e-300, 1e-6, 0.5, 3, 36, 700])


def rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, which serve as ratings too, predictions and weights."""
    z = np.concatenate([LOGITS, LOGITS])
    return np.repeat([0.0, 1.0], len(LOGITS)), z, np.random.default_rng(0).gamma(2.0, size=len(z))


# --- by hand


def test_a_squared_error_is_its_own_square():
    loss, v, e = squares_numpy(Loss.SQUARED, 0.0, np.array([1.0, 5]), np.array([3.0, 4]))
    assert (loss.tolist(), v.tolist(), e.tolist()) == ([4, 1], [1, 1], [-2, 1])


def test_an_absolute_error_has_the_weight_of_half_its_inverse():
    loss, v, e = squares_numpy(Loss.ABSOLUTE, 0.5, np.array([0.0, 0]), np.array([4.0, 0.25]))
    np.testing.assert_allclose(loss, [4, 0.25**2 + 0.25])
    np.testing.assert_allclose(v, [1 / 8, 1])
    assert e.tolist() == [-4, -0.25]


def test_a_logistic_loss_at_0_has_half_its_curvature_as_weight():
    # λ = 1/8, half of σ′(0) = 1/4, and the residual ±½/2λ = ±2
    loss, v, e = squares_numpy(Loss.LOGISTIC, 0.0, np.array([0.0, 1]), np.zeros(2))
    np.testing.assert_allclose(loss, np.log(2), rtol=1e-15)
    assert v.tolist() == [0.125, 0.125]
    assert e.tolist() == [-2, 2]


# --- by law


@EVERY
def test_the_square_touches_the_loss_and_lies_above_it(loss):
    t = np.linspace(-40, 40, 2001)
    y, z, _ = (part[np.abs(rows()[1]) < 100] for part in rows())
    for label, at in zip(y, z, strict=True):
        here, v, e = squares_numpy(loss, EPSILON, np.array([label]), np.array([at]))
        there = squares_numpy(loss, EPSILON, np.full_like(t, label), t)[0]
        square = here - v * e**2 + v * (e + at - t) ** 2
        assert np.all(square >= there - 1e-12 * (1 + np.abs(square)))
    slope = (squares_numpy(loss, EPSILON, y, z + 1e-6)[0] - squares_numpy(loss, EPSILON, y, z - 1e-6)[0]) / 2e-6
    _, weights, residuals = squares_numpy(loss, EPSILON, y, z)
    np.testing.assert_allclose(-2 * weights * residuals, slope, atol=1e-6)
