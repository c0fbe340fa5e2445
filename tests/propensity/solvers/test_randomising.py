"""Rates at drawn positions: by hand, their influence, and the two curves of trust bias."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from openloop.core.feedback import Vocabulary
from openloop.core.impressions import Impressions
from openloop.data.click_worlds import click_world
from openloop.errors import ColumnError, UndefinedError
from openloop.propensity.solvers.randomising import affine, logged_weights, randomised, rates, shuffled_rows
from tests.facts import facts


def shown(**changes):
    """Two lists of two and one of one; clicks at 1, at 1 and 2, and at 1."""
    columns = {
        "request": [0, 0, 1, 1, 2], "position": [1, 2, 1, 2, 1], "item": [0, 1, 1, 0, 0],
        "reward": [1.0, 0.0, 1.0, 1.0, 1.0], "user": [0, 0, 1, 1, 1], "requests": Vocabulary.range(3),
    }  # fmt: skip
    return Impressions.from_arrays(**(columns | changes))


def everything(log):
    return np.arange(len(log))


def test_by_hand():
    log = shown(reward=[1.0, 0.0, 0.0, 1.0, 1.0])
    found = rates(log, everything(log))
    np.testing.assert_allclose(found.at, [2 / 3, 1 / 2])
    np.testing.assert_allclose(found.first, [2 / 3, 1 / 2])  # request 2 does not reach position 2
    np.testing.assert_allclose(randomised(log, everything(log)).theta, [1, 1])
    np.testing.assert_allclose(found.at_parts[:, 1], [-0.25, 0.25])
    np.testing.assert_allclose(found.first_parts[:, 1], [0.25, -0.25])
    np.testing.assert_allclose(randomised(log, everything(log)).parts, [[0, -2], [0, 2]])


def test_the_influence_is_the_slope_in_a_users_weight():
    log = click_world(50, 6, 3).observe(rng=0)
    weight = 1 / log.propensity
    psi = randomised(log, everything(log), weight).parts
    user = log.user[log.request]
    for u in range(3):
        up, down = (
            np.log(randomised(log, everything(log), weight * (1 + h * (user == u))).theta) for h in (1e-5, -1e-5)
        )
        np.testing.assert_allclose(psi[u], 50 * (up - down) / 2e-5, rtol=1e-5, atol=1e-6)


def test_refusals_name_what_is_missing():
    with pytest.raises(ColumnError, match=facts("shuffled=", "propensity=")):
        shuffled_rows(shown())
    with pytest.raises(UndefinedError, match=facts("no shuffled requests")):
        shuffled_rows(shown(shuffled=[False] * 5))
    with pytest.raises(ColumnError, match=facts("shuffled=", "propensity=")):
        logged_weights(shown())
    with pytest.raises(UndefinedError, match=facts("1 of 5 rows", "π0 = 1")):
        logged_weights(shown(propensity=[0.5, 0.5, 0.5, 0.5, 1.0]))
    with pytest.raises(UndefinedError, match=facts("2 of 5 rows", "exposure")):
        logged_weights(shown(exposure=[[0.5, 0.0], [0.5, 0.5], [0.5, 0.5], [0.0, 0.5], [0.5, 0.5]]))
    with pytest.raises(UndefinedError, match=facts("no clicks at position 2 of 2")):
        rates(log := shown(reward=[1.0, 0.0, 1.0, 0.0, 1.0]), everything(log))
    with pytest.raises(UndefinedError, match=facts("reaches position 2", "position 1")):
        rates(log := shown(reward=[0.0, 1.0, 0.0, 0.0, 1.0]), everything(log))


# -- trust ------------------------------------------------------------------------------------------------------


def test_affine_finds_the_world_of_trust_and_covers_it():
    world = click_world(2500, 6, 3, model="trust", logging="shuffled", shuffle=1.0, requests=8)
    a, b = world.affine
    logs, z = 20, []
    for seed in range(logs):
        found = affine(world.observe(rng=seed))
        U = len(found.offset_influence)
        errors = [
            np.sqrt(np.square(psi).sum(axis=0) / U / (U - 1))[1:] for psi in (found.slope.parts, found.offset_influence)
        ]
        z.append([np.log(found.slope.theta / a)[1:] / errors[0], (found.offset - b)[1:] / errors[1]])
        np.testing.assert_allclose(found.slope.parts.sum(axis=0), 0, atol=1e-6)
        assert (found.slope.theta[0], found.offset[0]) == (1, 0)
    z = np.array(z)  # (logs, 2, K − 1)
    assert np.abs(z.mean(axis=0)).max() < 4 / np.sqrt(logs)
    assert (np.abs(z) < 1.96).sum(axis=0).min() >= binom.ppf(1e-4, logs, 0.95)
