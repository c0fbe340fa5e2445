"""All pairs and EM find θ where it is identified without user effects."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.kernels.harvesting import Cells
from openloop.propensity.solvers.click_models import all_pairs, em


def expected(theta, gamma, shown):
    """Every group at every position as often as said, with the clicks that θγ expects."""
    G, K = len(gamma), len(theta)
    n = np.full(G * K, float(shown))
    return Cells(np.arange(0, G * K + 1, K), np.tile(np.arange(K), G), n, n * np.outer(gamma, theta).ravel())


@pytest.mark.parametrize("method", [all_pairs, em])
def test_they_find_the_theta_of_expected_clicks(method):
    theta = np.array([0.9, 0.5, 0.3])
    found = method(expected(theta, np.array([0.2, 0.5, 0.8]), 100), 3)
    np.testing.assert_allclose(found, theta / theta[0], rtol=0.02)
