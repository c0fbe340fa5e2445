"""Contract checks of metrics and estimators: ties, users, influence, and a known truth."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np

from openloop.core.estimate import Estimate
from openloop.core.feedback import Feedback
from openloop.core.metric import Metric
from openloop.data.simulate import World
from openloop.errors import OpenloopError
from openloop.estimators.naming import Method, method
from openloop.evaluation import evaluate
from openloop.testing.saying import check_same, require

FIRST_ORDER = 0.1  # of the influence's length: what leaving out one of 400 users changes beyond the first order
ERRORS = 5.0  # standard errors that an estimate may be off
PRIOR = 0.02  # of an estimate from 4,800 cells: what a prior may add


def check_metric(metric: Any) -> None:
    """Check a metric: finite gains, ties as their expectation, gains that depend on one user only, and the better side.

    Of three models, one predicts the ratings, one scores all items alike, and one has them reversed. The first must be
    best and the last worst.

    Args:
        metric: A Metric, such as a function decorated with `@ol.metric(...)`.

    Raises:
        AssertionError: The metric violates the contract. The message says how.

    Examples:
        >>> from openloop.testing import check_metric
        >>> check_metric(ol.metric("recall@3"))
    """
    require(isinstance(metric, Metric), f"{metric!r}: is not a Metric; decorate a function with @ol.metric(...).")
    world = _rated_world()
    name, log = f"metric {metric.name!r}", world.everything()
    found = _values(name, metric, world.predictions, log)
    sign = 1.0 if metric.better == "higher" else -1.0
    require(
        sign * (found["knows"] - found["wrong"]) > 0,
        f"{name}: better={metric.better!r}, and a model that knows the ratings has {found['knows']:.6g}, one that has "
        f"them the wrong way round {found['wrong']:.6g}; the first must be better.",
    )
    if metric.on == "rank":
        _check_ties(name, metric)
    _check_users(name, metric, world)


def check_estimator(estimator: Any) -> None:
    """Check an estimator by mae: its influence against leaving users out, and its value against a known truth.

    The known p of the log do not depend on losses, so weighted and plain averages are right. Then the whole world is
    observed with p = 1, where there is nothing to correct. A prior may add a little.

    Args:
        estimator: A function decorated with `@ol.estimator(...)`.

    Raises:
        AssertionError: The estimator violates the contract. The message says how.

    Examples:
        >>> from openloop.testing import check_estimator
        >>> @ol.estimator("mine")
        ... def mine(s):
        ...     return s.wgain / s.weight
        >>> check_estimator(mine)
    """
    require(
        isinstance(estimator, Method), f"{estimator!r}: is not an estimator; decorate a function with @ol.estimator."
    )
    name, world = f"estimator {estimator.name!r}", _rated_world(users=400)
    truth = _estimate(name, method("naive"), world, world.everything()).value
    e = _estimate(name, estimator, world, world.observe(5))
    _check_influence(name, e)
    _check_truth(name, e, truth, "where known p have nothing to do with losses")
    certain = replace(world, propensities=np.ones(world.ratings.shape))
    e = replace(_estimate(name, estimator, certain, certain.everything()), squared_deviations=0.0)
    _check_truth(name, e, truth, "where every cell is observed with p = 1")


def _check_truth(name: str, e: Estimate, truth: float, where: str) -> None:
    require(
        abs(e.value - truth) <= ERRORS * e.stderr + PRIOR * truth,
        f"{name}: {where} it gives {e.value:.6g}, and the truth is {truth:.6g}; an estimate must be near it.",
    )


def _rated_world(users: int = 40) -> World:
    """Ratings 1 … 5 of users × 12 items, p in 0.3 … 0.9, and models that are right, wrong and constant."""
    rng = np.random.default_rng(0)
    Y = rng.integers(1, 6, (users, 12)).astype(np.float32)
    Y[:, 0], Y[:, 1] = 5, 1  # every user has a relevant item, and one that is not
    models = {"knows": Y.astype(np.float64), "constant": np.full(Y.shape, 3.0), "wrong": 6.0 - Y}
    return World(ratings=Y, propensities=rng.uniform(0.3, 0.9, Y.shape), predictions=models)


def _values(name: str, metric: Metric, models: dict[str, Any], log: Feedback) -> dict[str, float]:
    try:
        found = evaluate(models, log, metrics=[metric], estimators=["naive"], threshold=4)
    except OpenloopError as error:
        raise AssertionError(f"{name}: cannot be evaluated: {error}") from error
    values = {model: found[model, metric.name, "naive"].value for model in models}
    for model, value in values.items():
        require(math.isfinite(value), f"{name}: the value of model {model!r} is {value}; give finite gains.")
    return values


def _check_ties(name: str, metric: Metric) -> None:
    """A block of three tied items against the mean over its six orders, each a user of its own."""
    rated, tied = np.array([5.0, 5.0, 1.0, 4.0, 1.0]), np.array([3.0, 1.0, 1.0, 1.0, 0.0])
    orders = np.array([[3.0, *(1.0 + 0.1 * np.array(order)), 0.0] for order in permutations(range(3))])  # (6, 5)
    log = World(ratings=np.tile(rated, (6, 1)), propensities=np.ones((6, 5)), predictions={}).everything()
    found = _values(name, metric, {"tied": np.tile(tied, (6, 1)), "ordered": orders}, log)
    require(
        math.isclose(found["tied"], found["ordered"], rel_tol=1e-9, abs_tol=1e-12),
        f"{name}: three tied items have {found['tied']:.6g}, and the mean over their orders is {found['ordered']:.6g}; "
        "use x.by_rank, x.discount or x.hits, which average over ties, rather than x.above alone.",
    )


def _check_users(name: str, metric: Metric, world: World) -> None:
    """A user's gains are the same when other users leave the log."""
    log, models = world.everything(), world.predictions
    half = log.user < len(world.ratings) // 2
    whole, part = (evaluate(models, rows, metrics=[metric], estimators=["naive"]) for rows in (log, log.take(half)))
    at = np.unique(log.user[half])
    for model in models:
        wanted, found = (result[model, metric.name, "naive"].columns[at] for result in (whole, part))
        check_same(name, f"a user's gains under {model!r}", wanted, found, "other users leave the log")


def _estimate(name: str, estimator: Method, world: World, log: Feedback) -> Estimate:
    try:
        found = evaluate({"m": world.predictions["wrong"]}, log, metrics=["mae"], estimators=[estimator])
    except OpenloopError as error:
        raise AssertionError(f"{name}: cannot estimate mae: {error}") from error
    return found["m", "mae", estimator.name]


def _check_influence(name: str, e: Estimate) -> None:
    """ψ has mean 0, and −ψ_u/U is to the first order what leaving out user u changes."""
    largest = float(np.abs(e.influence).max())
    require(
        abs(float(e.influence.mean())) <= 1e-8 * largest,
        f"{name}: the influence of users has mean {e.influence.mean():.3g}, and must have mean 0.",
    )
    left = -e.n_users * e.deviations
    gap = float(np.linalg.norm(left - left.mean() - e.influence) / np.linalg.norm(e.influence))
    require(
        gap < FIRST_ORDER,
        f"{name}: its influence is off by {gap:.0%} from what leaving out single users changes; use "
        "openloop.core.totals.smooth, which differentiates its own function.",
    )
