"""The cap of clipped weights."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.data.simulate import World
from openloop.estimators.clipping import CAPS, tuned_cap
from openloop.metrics.naming import metric
from openloop.sources.arrays.rows import Rows
from openloop.sources.terms import Common, Needed, assemble
from tests.examples import small_world

P = np.array([0.5, 0.25, 1.0, 0.1])
W = 1 / P
DELTA = np.array([1.0, -2.0, 3.0, 0.0])
ROWS = Rows(
    user=np.array([0, 0, 1, 1], np.int32), rating=np.zeros(4), relevant=np.ones(4), cells=np.full(2, 5.0), probability=P
)


def tuned(p, delta, *, name="mae", items=50):
    """The estimate with a tuned cap, of losses `delta` in cells of propensity `p`."""
    n = len(p)
    log = Feedback.from_arrays(np.arange(n) // items, np.arange(n) % items, np.zeros(n), items=items, propensity=p)
    grid = np.zeros((log.n_users, items))
    grid[log.user, log.item] = delta if name == "mae" else p  # gains that depend on p: cutting biases them
    found = ol.evaluate({"m": grid}, log, metrics=[name], estimators=["clipped", "ips", "snips"], threshold=0)
    return found["m", name, "clipped"], found["m", name, "ips" if name == "mae" else "snips"]


@pytest.mark.parametrize("name", ["mae", "adg"])
def test_mild_weights_are_not_cut(name):
    rng = np.random.default_rng(1)
    cut, whole = tuned(rng.uniform(0.3, 0.9, 1000), rng.uniform(0.5, 1.5, 1000), name=name)
    assert cut.diagnostics.clipped_share == 0
    assert cut.value == whole.value


@pytest.mark.parametrize("name", ["mae", "adg"])
def test_one_extreme_weight_is_cut_and_the_others_are_not(name):
    rng = np.random.default_rng(1)
    p = rng.uniform(0.3, 0.9, 1000)
    p[17] = 1e-5
    cut, whole = tuned(p, rng.uniform(0.5, 1.5, 1000), name=name)
    assert cut.diagnostics.clipped_share == 1 / 1000
    assert 4 <= cut.diagnostics.cap < 1e5
    assert cut.stderr < whole.stderr / 2


def test_it_takes_the_least_of_squared_bias_and_variance():
    rng = np.random.default_rng(3)
    p, delta = rng.uniform(0.002, 0.5, 2000), rng.uniform(0, 2, 2000)
    w, cells = 1 / p, 2000
    mse = {}
    for cap in CAPS[: int(np.sum(np.array(CAPS) < w.max())) + 1]:
        c = np.minimum(w, cap)
        # E(T_c − T)² + 2 Cov(T_c, T); the variance of T is the same for all caps
        mse[cap] = (((w - c) * delta).sum() / cells) ** 2 + 2 * ((1 - p) * w * c * delta**2).sum() / cells**2
    assert tuned(p, delta)[0].diagnostics.cap == min(mse, key=mse.get)


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


def test_models_are_compared_under_one_cap():
    world = small_world()
    log = world.observe(1)
    result = ol.evaluate(dict(world.predictions), log, metrics=["mae"], estimators=["clipped"])
    caps = {result[m, "mae", "clipped"].diagnostics.cap for m in world.predictions}
    assert len(caps) == 1


def test_the_cap_is_chosen_over_all_models_together():
    sums = {name: np.full((2, 1), 4.0) for name in ("n", "gain", "weight", "wgain")}
    common = Common(cells=np.full(2, 1.0), base={}, weights=None)

    def of(*errors):  # no bias, these variances
        caps = {f"cap{j}_{i}": np.array([[v]]) for j, e in enumerate(errors) for i, v in enumerate((1, 8, 0, 0, 4 * e))}
        return assemble(metric("mae"), sums | caps, Needed(caps=(2.0, 4.0)), common)

    assert tuned_cap([of(1.0, 2.0)]) == 2
    assert tuned_cap([of(1.0, 2.0), of(5.0, 1.0)]) == 4
    assert tuned_cap([of(1.0, 1.0)]) == 4  # of two that are as good, the one that cuts less
