"""Contract checks for what you write yourself: recommenders, propensity models, metrics and estimators.

Each takes your object, tries it on small worlds made here, and raises an AssertionError that says what is violated;
it returns None where nothing is. They are for your own tests, as scikit-learn's check_estimator is.

    from openloop.testing import check_recommender

    def test_mine():
        check_recommender(Mine())
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable
from dataclasses import fields, replace
from itertools import permutations
from typing import Any

import numpy as np

from openloop.core.estimate import Estimate
from openloop.core.feedback import Array, Feedback, Floats
from openloop.core.metric import Metric
from openloop.core.propensities import Propensities, predicted_by
from openloop.core.protocols import on_host, predicted_block
from openloop.data.simulate import World, checkerboard, movie_lovers, withhold_diagonal
from openloop.errors import OpenloopError, UndefinedError
from openloop.estimators.naming import Method, method
from openloop.evaluation import evaluate

Fit = Callable[[Any, Feedback], Any]
RTOL, ATOL = 1e-5, 1e-6  # scores are often of single precision
SIZE = 20  # users and items of the checkerboard
FIRST_ORDER = 0.1  # of the influence's length: what leaving out one of 400 users changes beyond the first order
ERRORS = 5.0  # standard errors that an estimate may be off
PRIOR = 0.02  # of an estimate from 4,800 cells: what a prior may add


def check_recommender(model: Any, *, log: Feedback | None = None, fit: Fit | None = None) -> None:
    """Check a recommender, unfitted: an instance with `fit`, and `predict` or `scores`, or both.

    `log` is what it is fitted on, by default a checkerboard of ratings 1 and 5; `fit(model, log)` where its own fit
    wants more than that.
    """
    log = withhold_diagonal(checkerboard(SIZE).everything())[0] if log is None else log
    name, fit = _check_instance(model, ("fit",)), fit or _plain_fit
    _require(
        hasattr(model, "predict") or hasattr(model, "scores"),
        f"{name}: has neither predict(user, item) nor scores(users); rankings need scores, ratings need predict.",
    )
    fitted = _fitted(name, model, log, fit)
    answers = _answers(name, fitted, log)
    _check_scores(name, fitted, log)
    _check_predictions(name, fitted, log)
    _check_same(
        name, "answers", answers, _answers(name, fitted, log), "it is asked a second time; answers may not move"
    )
    _check_refits(name, (model, fitted), log, fit, lambda one: _answers(name, one, log), answers)
    if fit is _plain_fit and _takes_weights(model):
        ones = _fitted(name, model, log, lambda one, log: one.fit(log, sample_weight=np.ones(len(log))))
        _check_same(name, "answers", answers, _answers(name, ones, log), "every row has sample_weight 1, which is none")


def check_propensity_model(model: Any, *, log: Feedback | None = None, fit: Fit | None = None) -> None:
    """Check a model of propensities, unfitted: an instance with `fit(feedback)` and `predict(feedback)`.

    `matrix()` may be missing; what it gives must be what `predict` gives. A model
    whose p changes with the ratings says sees_rating = True, and one that says so must have such p.
    """
    log = movie_lovers(users=30, items=20).observe(7) if log is None else log
    name, fit = _check_instance(model, ("fit", "predict")), fit or _plain_fit
    fitted = _fitted(name, model, log, fit)
    p = _propensities(name, fitted, log)
    _check_same(name, "p", p.values, _propensities(name, fitted, log).values, "it is asked a second time")
    _check_part(name, fitted, log, p)
    _check_matrix(name, fitted, log, p)
    _check_refits(name, (model, fitted), log, fit, lambda one: _propensities(name, one, log).values, p.values)
    _check_blind(name, (model, fitted), log, fit, p)


def check_metric(metric: Any) -> None:
    """Check a metric: finite gains, ties as their expectation, gains that are a user's own, and its better side.

    Of three models, one that knows the ratings, one that scores all items alike and one that has them the wrong way
    round, the first must be best and the last worst.
    """
    _require(isinstance(metric, Metric), f"{metric!r}: is no Metric; decorate a function with @ol.metric(...).")
    world = _rated_world()
    name, log = f"metric {metric.name!r}", world.everything()
    found = _values(name, metric, world.predictions, log)
    sign = 1.0 if metric.better == "higher" else -1.0
    _require(
        sign * (found["knows"] - found["wrong"]) > 0,
        f"{name}: better={metric.better!r}, and a model that knows the ratings has {found['knows']:.6g}, one that has "
        f"them the wrong way round {found['wrong']:.6g}; the first must be better.",
    )
    if metric.on == "rank":
        _check_ties(name, metric)
    _check_users(name, metric, world)


def check_estimator(estimator: Any) -> None:
    """Check an estimator by mae: its influence against leaving users out, and its value against a known truth.

    The log is observed with known p that does not depend on losses, so weighted and plain averages are right; then all
    of it with p = 1, where there is nothing to correct. A prior may add a little.
    """
    _require(isinstance(estimator, Method), f"{estimator!r}: is no estimator; decorate a function with @ol.estimator.")
    name, world = f"estimator {estimator.name!r}", _rated_world(users=400)
    truth = _estimate(name, method("naive"), world, world.everything()).value
    e = _estimate(name, estimator, world, world.observe(5))
    _check_influence(name, e)
    _check_truth(name, e, truth, "where known p have nothing to do with losses")
    certain = replace(world, propensities=np.ones(world.ratings.shape))
    e = replace(_estimate(name, estimator, certain, certain.everything()), squared_deviations=0.0)
    _check_truth(name, e, truth, "where every cell is observed with p = 1")


def _check_truth(name: str, e: Estimate, truth: float, where: str) -> None:
    _require(
        abs(e.value - truth) <= ERRORS * e.stderr + PRIOR * truth,
        f"{name}: {where} it gives {e.value:.6g}, and the truth is {truth:.6g}; an estimate must be near it.",
    )


# -- models --------------------------------------------------------------------------------------------------


def _check_instance(model: Any, needed: tuple[str, ...]) -> str:
    name = model.__name__ if isinstance(model, type) else type(model).__name__
    _require(not isinstance(model, type), f"{name}: is a class; give an instance, {name}().")
    for verb in needed:
        _require(callable(getattr(model, verb, None)), f"{name}: has no method {verb}; write it.")
    return name


def _plain_fit(model: Any, log: Feedback) -> Any:
    return model.fit(log)


def _fitted(name: str, model: Any, log: Feedback, fit: Fit) -> Any:
    """A copy of the model after its fit, which must leave the log alone and return the model."""
    own = copy.deepcopy(model)
    before = _columns(log)
    try:
        fitted = fit(own, log)
    except ValueError as error:
        _require("read-only" not in str(error), f"{name}: fit changes the feedback that it is given; work on a copy.")
        raise
    _require(fitted is own, f"{name}: fit must return self, got {type(fitted).__name__}; end it with `return self`.")
    _unchanged(name, "fit", before, log)
    return fitted


def _columns(log: Feedback) -> dict[str, Array]:
    found = {f.name: getattr(log, f.name) for f in fields(log)}
    return {name: values.copy() for name, values in found.items() if isinstance(values, np.ndarray)}


def _unchanged(name: str, verb: str, before: dict[str, Array], log: Feedback) -> None:
    for column, values in before.items():
        _require(
            np.array_equal(values, getattr(log, column)),
            f"{name}: {verb} changes the {column} of the feedback that it is given; work on a copy.",
        )


def _check_refits(
    name: str, models: tuple[Any, Any], log: Feedback, fit: Fit, answers: Callable[[Any], Floats], wanted: Floats
) -> None:
    """The same log teaches the same: a new model, one that was fitted before (`models`), and a clone."""
    new, before = (answers(_fitted(name, one, log, fit)) for one in models)
    _check_same(name, "answers", wanted, new, "it is fitted again from the start; draw by a seed that is a parameter")
    _check_same(name, "answers", wanted, before, "a fitted model is fitted again; fit must forget what it learned")
    if not hasattr(models[0], "get_params"):
        return
    from sklearn.base import clone

    try:
        twin: Any = clone(models[0])
    except (TypeError, RuntimeError) as error:
        raise AssertionError(f"{name}: cannot be cloned: {error}; let __init__ only assign its parameters.") from error
    _check_same(
        name, "answers", wanted, answers(_fitted(name, twin, log, fit)), "a clone is fitted; keep all parameters"
    )


def _takes_weights(model: Any) -> bool:
    refuses = getattr(model, "needs_propensities", False) or not getattr(model, "takes_weights", True)
    return not refuses and "sample_weight" in inspect.signature(model.fit).parameters


def _users(log: Feedback) -> Array:
    return np.arange(log.n_users)


def _answers(name: str, model: Any, log: Feedback) -> Floats:
    """What a recommender says of all cells, or of the rows where it predicts alone."""
    if hasattr(model, "scores"):
        return _array(name, "scores(users)", model.scores(_users(log)), (log.n_users, log.n_items))
    return _array(name, "predict(user, item)", model.predict(log.user, log.item), (len(log),))


def _array(name: str, call: str, found: Any, shape: tuple[int, ...]) -> Floats:
    values = on_host(found)
    _require(values.shape == shape, f"{name}: {call} gives shape {values.shape}, and must give {shape}.")
    _require(values.dtype.kind in "fiu", f"{name}: {call} gives {values.dtype}, and must give real numbers.")
    bad = int(np.count_nonzero(~np.isfinite(values)))
    _require(bad == 0, f"{name}: {bad:,} of {values.size:,} values of {call} are not finite; repair them.")
    return values.astype(np.float64)


def _check_scores(name: str, model: Any, log: Feedback) -> None:
    if not hasattr(model, "scores"):
        return
    whole, some = _answers(name, model, log), np.array([3, 0, 3])
    part = _array(name, "scores(users)", model.scores(some), (len(some), log.n_items))
    _check_same(
        name, "scores", whole[some], part, "users are asked in another block, [3, 0, 3]; a row is one user's own"
    )


def _check_predictions(name: str, model: Any, log: Feedback) -> None:
    if not hasattr(model, "predict"):
        return
    user, item = log.user[:50], log.item[:50]
    found = _array(name, "predict(user, item)", model.predict(user, item), (len(user),))
    turned = _array(name, "predict(user, item)", model.predict(user[::-1], item[::-1]), (len(user),))
    _check_same(
        name, "predictions", found, turned[::-1], "pairs are in another order; a pair has a prediction of its own"
    )
    if hasattr(model, "scores"):
        block = np.asarray(predicted_block(model, _users(log)), np.float64)
        _check_same(
            name, "predictions", block[user, item], found,
            "predict is compared with scores; where scores are no ratings, add predictions(users), a block of these",
        )  # fmt: skip


# -- propensities --------------------------------------------------------------------------------------------


def _propensities(name: str, model: Any, log: Feedback) -> Propensities:
    before = _columns(log)
    try:
        found = model.predict(log)
    except (OpenloopError, TypeError) as error:
        raise AssertionError(f"{name}: predict(feedback) fails: {error}") from error
    _unchanged(name, "predict", before, log)
    _require(
        isinstance(found, Propensities),
        f"{name}: predict(feedback) gives {type(found).__name__}, and must give ol.Propensities(values=p, "
        "fingerprint=feedback.fingerprint).",
    )
    _require(len(found) == len(log), f"{name}: predict gives {len(found):,} values for {len(log):,} rows; one per row.")
    _require(
        found.fingerprint == log.fingerprint,
        f"{name}: its Propensities have the fingerprint {found.fingerprint}, and must have that of the feedback; pass "
        "fingerprint=feedback.fingerprint.",
    )
    return found


def _check_part(name: str, model: Any, log: Feedback, p: Propensities) -> None:
    keep = np.arange(len(log)) % 3 == 0
    part = log.take(keep, share=np.full(int(keep.sum()), 1 / 3))
    _check_same(
        name, "p", p.values[keep], _propensities(name, model, part).values,
        "a third of the rows is asked about; p is of the whole log, whatever part of it is asked about",
    )  # fmt: skip


def _check_matrix(name: str, model: Any, log: Feedback, p: Propensities) -> None:
    if not hasattr(model, "matrix"):
        return
    try:
        grid = _array(name, "matrix()", model.matrix(), (log.n_users, log.n_items))
    except UndefinedError:  # p depends on the rating
        return
    _require(bool(np.all((grid > 0) & (grid <= 1))), f"{name}: matrix() has values outside (0, 1]; floor them.")
    _check_same(name, "p", p.values, grid[log.user, log.item], "predict is compared with matrix()")


def _check_blind(name: str, models: tuple[Any, Any], log: Feedback, fit: Fit, p: Propensities) -> None:
    """p that was fitted, and is the same whatever the ratings were, must say that it is blind to them."""
    if p.sample is not None or p.base is not None:  # fitted with ratings drawn at random, which are not these
        return
    model, fitted = models
    other = replace(log, rating=log.rating[np.random.default_rng(0).permutation(len(log))])
    moved = _propensities(name, _fitted(name, model, other, fit), other).values
    blind = predicted_by(name, fitted, log).blind
    same = bool(np.allclose(moved, p.values, rtol=RTOL, atol=ATOL))
    half = log.take(np.arange(len(log)) % 2 == 0, share=np.full((len(log) + 1) // 2, 0.5))
    learned = _propensities(name, _fitted(name, model, half, fit), log).values if same and not blind else p.values
    _require(
        bool(np.allclose(learned, p.values, rtol=RTOL, atol=ATOL)),  # given, like a column of the log: nobody fitted it
        f"{name}: says that it sees ratings, and its p is the same after ratings are exchanged between rows; set "
        "sees_rating = False, or pass blind=True to its Propensities: a verdict then asks for more.",
    )
    _require(
        same or not blind,
        f"{name}: does not say that it sees ratings, and its p changes when ratings are exchanged between rows; set "
        "sees_rating = True.",
    )


# -- metrics and estimators ----------------------------------------------------------------------------------


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
        _require(math.isfinite(value), f"{name}: the value of model {model!r} is {value}; give finite gains.")
    return values


def _check_ties(name: str, metric: Metric) -> None:
    """A block of three tied items against the mean over its six orders, each a user of its own."""
    rated, tied = np.array([5.0, 5.0, 1.0, 4.0, 1.0]), np.array([3.0, 1.0, 1.0, 1.0, 0.0])
    orders = np.array([[3.0, *(1.0 + 0.1 * np.array(order)), 0.0] for order in permutations(range(3))])  # (6, 5)
    log = World(ratings=np.tile(rated, (6, 1)), propensities=np.ones((6, 5)), predictions={}).everything()
    found = _values(name, metric, {"tied": np.tile(tied, (6, 1)), "ordered": orders}, log)
    _require(
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
        _check_same(name, f"a user's gains under {model!r}", wanted, found, "other users leave the log")


def _estimate(name: str, estimator: Method, world: World, log: Feedback) -> Estimate:
    try:
        found = evaluate({"m": world.predictions["wrong"]}, log, metrics=["mae"], estimators=[estimator])
    except OpenloopError as error:
        raise AssertionError(f"{name}: cannot estimate mae: {error}") from error
    return found["m", "mae", estimator.name]


def _check_influence(name: str, e: Estimate) -> None:
    """ψ has mean 0, and −ψ_u/U is to the first order what leaving out user u changes."""
    largest = float(np.abs(e.influence).max())
    _require(
        abs(float(e.influence.mean())) <= 1e-8 * largest,
        f"{name}: the influence of users has mean {e.influence.mean():.3g}, and must have mean 0.",
    )
    left = -e.n_users * e.deviations
    gap = float(np.linalg.norm(left - left.mean() - e.influence) / np.linalg.norm(e.influence))
    _require(
        gap < FIRST_ORDER,
        f"{name}: its influence is off by {gap:.0%} from what leaving out single users changes; use "
        "openloop.core.totals.smooth, which differentiates its own function.",
    )


# -- saying so -----------------------------------------------------------------------------------------------


def _require(holds: bool, message: str) -> None:  # noqa: FBT001, the condition is what it is about
    if not holds:
        raise AssertionError(message)


def _check_same(name: str, what: str, wanted: Any, found: Any, when: str) -> None:
    a, b = np.asarray(wanted, np.float64), np.asarray(found, np.float64)
    if a.shape == b.shape and np.allclose(a, b, rtol=RTOL, atol=ATOL):
        return
    gap = float(np.abs(a - b).max()) if a.shape == b.shape else math.nan
    raise AssertionError(f"{name}: {what} differ by up to {gap:.3g} when {when}.")
