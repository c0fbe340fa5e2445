"""All pairs and EM: both find θ where it is identified without user effects; EM also answers where it is not."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.data.click_worlds import click_world
from openloop.errors import UndefinedError
from openloop.kernels.harvesting import Cells
from openloop.propensity.solvers.click_models import all_pairs, em
from openloop.propensity.solvers.grouping import KEYS, group
from openloop.propensity.solvers.harvesting import harvest
from tests.facts import facts


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


def test_all_pairs_and_harvest_agree_where_groups_are_large():
    log = click_world(1500, 6, 3, shuffle=1.0).observe(rng=0)
    key = KEYS["item"](log)
    np.testing.assert_allclose(
        all_pairs(group(log, key, every=True).cells, 3), harvest(log, group(log, key)).theta, rtol=0.02
    )


def test_em_answers_where_nothing_is_identified_and_harvest_refuses():
    """One deterministic ranker shows a user an item at one position only."""
    log = click_world(500, 6, 3, logging="deterministic").observe(rng=0)
    key = KEYS["user-item"](log)
    found = em(group(log, key, every=True).cells, 3)
    assert np.isfinite(found).all()
    assert found[2] > 0.45  # the start's .5, not the world's ⅓
    with pytest.raises(UndefinedError, match=facts("nothing is identified")):
        harvest(log, group(log, key))


def test_em_goes_as_many_rounds_as_it_is_told():
    cells = expected(np.array([0.9, 0.5]), np.array([0.2, 0.5]), 100)
    np.testing.assert_allclose(em(cells, 2, rounds=0), [1, 0.5])
    assert em(cells, 2, rounds=1)[1] != 0.5
