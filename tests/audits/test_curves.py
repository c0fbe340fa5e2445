"""Curves against Γ, and Γ* of a log's estimates."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.audits.contrasts import contrasts
from openloop.audits.curves import critical, curves, tilted
from openloop.data.simulate import schnabel_world
from openloop.evaluation import prepared
from openloop.metrics.naming import metric
from openloop.moments.question import Question
from tests.audits.cases import found, popular_world
from tests.examples import same


def test_curves_start_at_the_estimates_and_cross_zero_at_gamma_star():
    world = popular_world(gap_tail=0.2, gap_head=-1.0)
    ready, result, _ = found(world.predictions, world.observe(1), p=world.propensities)
    own = contrasts(result, "mae", "snips")
    single, _, pair = curves(ready.source, ready.metrics[0], own, "a")
    same(single.low[0], result["a", "mae", "snips"].value)
    same(single.high[0], result["a", "mae", "snips"].value)
    same(pair.low[0], own[0].value)
    gamma = own[0].gamma
    crossed = np.interp(0.0, pair.high, pair.at) if own[0].value < 0 else np.interp(0.0, pair.low[::-1], pair.at[::-1])
    assert pair.at[0] < gamma < pair.at[-1]
    assert abs(crossed / gamma - 1) < 0.02  # between points of the curve


RATED = schnabel_world(60, 80, 5, alpha=0.5, observed=0.2, rng=0)
SEEN = RATED.observe(1)
TRAIN, TEST = ol.split(SEEN, test=0.5, rng=0)
NOISE = np.random.default_rng(2).normal(size=(2, *RATED.ratings.shape))
MODELS = {"a": RATED.ratings + 2 * NOISE[0], "b": np.rint(RATED.ratings + 2.5 * NOISE[1])}  # b ties many
COMBINATIONS = [
    *[(name, method) for name in ("mae", "mse", "rmse", "dcg@10", "prec@5") for method in ("snips", "ips")],
    *[(name, method) for name in ("recall@10", "adg", "atop") for method in ("snips", "snips_user")],
    ("ndcg@10", "snips"), ("ndcg", "snips"),
]  # fmt: skip
METRICS = list(dict.fromkeys(name for name, _ in COMBINATIONS))


@pytest.fixture(scope="module", params=["whole", "part"])
def evaluated(request):
    log, exclude = (SEEN, None) if request.param == "whole" else (TEST, TRAIN)
    options = {"metrics": METRICS, "estimators": ["snips", "ips", "snips_user"], "exclude": exclude, "threshold": 4}
    ready = prepared(MODELS, log, None, Question(**options))
    return ready.source, ready.compare("all")


def test_at_gamma_one_bounds_are_the_estimates(evaluated):
    found, result = evaluated
    for name, method in COMBINATIONS:
        x, which = metric(name), f"{method} of {name}"
        rows, (a, b) = found.scored(x, ("a", "b"))
        for model, outcome in (("a", a), ("b", b)):
            low, high = tilted(x, method, rows, outcome, None, [1.0, 1.5], float(rows.cells.sum()))
            estimate = result[model, name, method].value
            same((low[0], high[0]), estimate, err_msg=which)
            assert low[1] < estimate < high[1], which
        difference = tilted(x, method, rows, a, b, [1.0, 1.5])
        if name == "rmse":
            assert difference is None, which
        else:
            wanted = result.difference("a", "b", metric=name, estimator=method).value
            same((difference[0][0], difference[1][0]), wanted, err_msg=which)
            assert difference[0][1] < wanted < difference[1][1], which


@pytest.mark.parametrize(("name", "method"), [("ndcg@10", "snips"), ("recall@10", "snips_user"), ("adg", "snips_user")])
def test_the_bound_crosses_zero_at_the_critical_gamma(evaluated, name, method):
    found, result = evaluated
    x = metric(name)
    rows, (a, b) = found.scored(x, ("a", "b"))
    gamma = critical(x, method, rows, a, b)
    assert 1 < gamma < 100
    low, high = tilted(x, method, rows, a, b, [gamma, gamma * (1 + 2e-6)])
    beyond = low if result.difference("a", "b", metric=name, estimator=method).value > 0 else -high
    assert beyond[0] >= 0 >= beyond[1]
