"""The cap of clipped weights."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.data.simulate import World

P = np.array([0.5, 0.25, 1.0, 0.1])


def tuned(p, delta, *, name="mae", items=50):
    """The estimate with a tuned cap, of losses `delta` in cells of propensity `p`."""
    n = len(p)
    log = Feedback.from_arrays(np.arange(n) // items, np.arange(n) % items, np.zeros(n), items=items, propensity=p)
    grid = np.zeros((log.n_users, items))
    grid[log.user, log.item] = delta if name == "mae" else p  # gains that depend on p: cutting biases them
    found = ol.evaluate({"m": grid}, log, metrics=[name], estimators=["clipped", "ips", "snips"], threshold=0)
    return found["m", name, "clipped"], found["m", name, "ips" if name == "mae" else "snips"]


@pytest.mark.parametrize("name", ["mae", "adg"])
def test_one_extreme_weight_is_cut_and_the_others_are_not(name):
    rng = np.random.default_rng(1)
    p = rng.uniform(0.3, 0.9, 1000)
    p[17] = 1e-5
    cut, whole = tuned(p, rng.uniform(0.5, 1.5, 1000), name=name)
    assert cut.diagnostics.clipped_share == 1 / 1000
    assert 4 <= cut.diagnostics.cap < 1e5
    assert cut.stderr < whole.stderr / 2


@pytest.mark.parametrize("name", ["mae", "adg"])
def test_over_draws_the_tuned_cap_errs_less_than_none_where_weights_are_wild(name):
    rng = np.random.default_rng(0)
    Y = rng.choice([1.0, 5.0], (100, 40))
    P = 10 ** rng.uniform(-4, 0, Y.shape)
    scores = rng.random(Y.shape) + Y / 5
    world = World(ratings=Y.astype(np.float32), propensities=P, predictions={"m": scores})
    whole = "ips" if name == "mae" else "snips"
    options = {"metrics": [name], "estimators": ["clipped", whole], "pairs": ()}
    truth = np.abs(Y - scores).mean() if name == "mae" else None
    if truth is None:
        rank = 1 + (scores[:, None, :] > scores[:, :, None]).sum(axis=2)
        truth = (1 / np.log2(1 + rank))[Y == 5].mean()
    found = [ol.evaluate({"m": scores}, world.observe(rng), **options) for _ in range(200)]
    error = {e: np.mean([(f["m", name, e].value - truth) ** 2 for f in found]) for e in ("clipped", whole)}
    assert error["clipped"] < 0.8 * error[whole]
