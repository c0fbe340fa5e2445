"""How many users an A/B test needs: the formula by hand, the promised power by simulation, and refusals."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import openloop as ol
from openloop.audits.contrasts import Arm, Contrast
from openloop.audits.planning import cell_variance_of_user, plan, user_variance
from openloop.errors import UndefinedError
from tests.examples import same
from tests.facts import facts

ARM = Arm(stderr=0.05, cell_stderr=0.03, loss_variance=2.0, users=1000, scored_users=900)
FIELDS = {"a": "A", "b": "B", "metric": "mae", "estimator": "snips", "estimand": "per cell", "effect": 0.1, "df": 500.0}
PAIR = Contrast(
    **FIELDS, value=-0.2, stderr=0.05, low=-0.3, high=-0.1, pvalue=1e-4, holm=1e-4, better="A", arms=(ARM, ARM)
)


def test_users_per_arm_by_hand():
    # τ² = 1000(.0025 − .0009) = 1.6; σ² = 1.6 + .4/20 = 1.62; n = (1.959964 + .841621)² · 3.24/.04
    found = plan(PAIR, impressions=20, power=0.8)
    same(found.variances, (1.62, 1.62))
    assert found.users_per_arm == math.ceil((1.959964 + 0.841621) ** 2 * 3.24 / 0.04) == 636
    lower = 0.2 - stats.t.ppf(0.9, 500) * 0.05
    same(found.lower_limit, lower)
    assert found.users_at_lower_limit == math.ceil((1.959964 + 0.841621) ** 2 * 3.24 / lower**2)


def test_no_plan_has_fewer_users_than_a_verdict_needs():
    found = plan(replace(PAIR, value=-2.0))  # 2.801586² · 3.24/4 is 6.4
    assert (found.users_per_arm, found.users_at_lower_limit) == (30, 30)


def test_a_user_with_one_impression_varies_as_losses_do_and_with_endlessly_many_as_users_do():
    same(cell_variance_of_user(ARM, 1), 2.0)
    same(cell_variance_of_user(ARM, 1e12), 1.6)


def test_a_metric_of_users_has_the_variance_over_users():
    found = plan(replace(PAIR, metric="recall@10", estimand="per relevant item", arms=(ARM, replace(ARM, stderr=0.1))))
    same(found.variances, (900 * 0.05**2, 900 * 0.1**2))
    assert found.impressions is None
    same(user_variance(ARM), 2.25)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"value": 0.0}, ("A", "B", "mae", 0)),
        ({"estimand": "on what was seen", "estimator": "naive"}, ("naive", "mae", "on what was seen")),
        ({"arms": None}, ("A", "B", "standard error")),
        ({"arms": (ARM, replace(ARM, stderr=math.nan))}, ("A", "B", "standard error")),
        ({"arms": (ARM, replace(ARM, cell_stderr=None))}, ("variance over cells", "snips")),
        ({"arms": (ARM, replace(ARM, loss_variance=None))}, ("variance over cells", "snips")),
    ],
    ids=["no difference", "what was seen", "no arms", "one user", "no error over cells", "no variance of losses"],
)
def test_what_is_missing_is_said(changed, told):
    with pytest.raises(UndefinedError, match=facts("plan", *told)):
        plan(replace(PAIR, **changed))


# -- a world whose users are known -----------------------------------------------------------------------------


def world(users=1500, items=60, rng=0):
    """Users differ in how well they are predicted; popular items are seen five times as often."""
    rng = np.random.default_rng(rng)
    Y = rng.integers(1, 6, (users, items)).astype(np.float32)
    a, b = (Y + size * rng.normal(size=Y.shape) * np.exp(rng.normal(0, 0.4, (users, 1))) for size in (1.0, 1.25))
    p = np.broadcast_to(np.where(np.arange(items) < 12, 0.5, 0.1), Y.shape)
    return ol.simulate.World(ratings=Y, propensities=p, predictions={"a": a, "b": b})


WORLD = world()
LOSSES = {name: np.abs(WORLD.ratings - Y_hat) for name, Y_hat in WORLD.predictions.items()}


def contrast(estimator, metric="mae"):
    found = ol.audit(WORLD.predictions, WORLD.observe(1), metrics=[metric], estimators=[estimator])
    return found.contrasts[metric, estimator][0]


def test_a_test_of_that_size_has_the_promised_power():
    truth = LOSSES["a"].mean() - LOSSES["b"].mean()
    rng, runs, m = np.random.default_rng(3), 1500, 5
    n = plan(replace(contrast("snips"), value=truth), impressions=m, power=0.8).users_per_arm
    means = []
    for losses in LOSSES.values():
        user = rng.integers(len(losses), size=(runs, n, 1))
        means.append(losses[user, rng.integers(losses.shape[1], size=(runs, n, m))].mean(axis=2))  # (runs, n)
    z = (means[0].mean(axis=1) - means[1].mean(axis=1)) / np.sqrt(sum(x.var(axis=1, ddof=1) for x in means) / n)
    power = np.mean(np.abs(z) > stats.norm.ppf(0.975))
    assert abs(power - 0.8) < 3 * math.sqrt(0.16 / runs) + 0.03  # the variances are estimates themselves
