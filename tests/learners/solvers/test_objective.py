"""The objective of matrix factorisation: its penalty by hand, its slope by differences."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.kernels.losses import Loss
from openloop.learners.solvers.objective import Objective

# --- its terms


def test_the_penalty_by_hand():
    P = np.array([[1, 2, 10], [3, 0, 20]], np.float32)
    assert Objective(factors=2, reg=3.0, bias_reg=0.5).penalty_of(P) == 3 * (1 + 4 + 9) + 0.5 * (100 + 400)


@pytest.mark.parametrize("loss", list(Loss), ids=["squared", "absolute", "logistic"])
def test_the_slope_is_the_derivative(loss):
    objective = Objective(factors=1, reg=1.0, loss=loss, smoothing=0.3)
    z, h = np.linspace(-1, 1, 41) + 1e-3, 1e-6
    for y in (np.zeros(41), np.ones(41)):
        difference = (objective.losses(y, z + h)[0] - objective.losses(y, z - h)[0]) / (2 * h)
        np.testing.assert_allclose(objective.losses(y, z)[1], difference, atol=1e-8)
