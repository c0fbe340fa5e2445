"""Contract checks of recommenders and propensity models: fits, answers, refits and clones on small worlds."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np

from openloop.core.feedback import Array, Feedback, Floats
from openloop.core.propensities import Propensities, predicted_by
from openloop.core.protocols import on_host, predicted_block
from openloop.data.simulate import checkerboard, movie_lovers, withhold_diagonal
from openloop.errors import OpenloopError, UndefinedError
from openloop.testing.saying import ATOL, RTOL, check_same, require

Fit = Callable[[Any, Feedback], Any]
SIZE = 20  # users and items of the checkerboard


def check_recommender(model: Any, *, log: Feedback | None = None, fit: Fit | None = None) -> None:
    """Check a recommender: fits do not change the log, answers are finite and repeatable, refits and clones agree.

    Args:
        model: An unfitted instance with `fit`, and `predict`, `scores` or both.
        log: The log that it is fitted on; by default a checkerboard of ratings 1 and 5.
        fit: A function `fit(model, log)`, for a recommender whose own fit needs more than the log.

    Raises:
        AssertionError: The model violates the contract. The message says how.

    Examples:
        >>> from openloop.testing import check_recommender
        >>> check_recommender(ol.learners.Bias())
    """
    log = withhold_diagonal(checkerboard(SIZE).everything())[0] if log is None else log
    name, fit = _check_instance(model, ("fit",)), fit or _plain_fit
    require(
        hasattr(model, "predict") or hasattr(model, "scores"),
        f"{name}: has neither predict(user, item) nor scores(users); rankings need scores, ratings need predict.",
    )
    fitted = _fitted(name, model, log, fit)
    answers = _answers(name, fitted, log)
    _check_scores(name, fitted, log)
    _check_predictions(name, fitted, log)
    check_same(name, "answers", answers, _answers(name, fitted, log), "it is asked a second time; answers may not move")
    _check_refits(name, (model, fitted), log, fit, lambda one: _answers(name, one, log), answers)
    if fit is _plain_fit and _takes_weights(model):
        ones = _fitted(name, model, log, lambda one, log: one.fit(log, sample_weight=np.ones(len(log))))
        check_same(name, "answers", answers, _answers(name, ones, log), "every row has sample_weight 1, which is none")


def check_propensity_model(model: Any, *, log: Feedback | None = None, fit: Fit | None = None) -> None:
    """Check a propensity model: p of a part is that of the whole, `matrix` agrees, and blindness is declared.

    A model whose p changes with the ratings must say sees_rating = True, and one that says so must have such p.
    `matrix()` is optional.

    Args:
        model: An unfitted instance with `fit(feedback)` and `predict(feedback)`.
        log: The log that it is fitted on; by default a small simulated one.
        fit: A function `fit(model, log)`, for a model whose own fit needs more than the log.

    Raises:
        AssertionError: The model violates the contract. The message says how.

    Examples:
        >>> from openloop.testing import check_propensity_model
        >>> check_propensity_model(ol.propensity.Popularity())
    """
    log = movie_lovers(users=30, items=20).observe(7) if log is None else log
    name, fit = _check_instance(model, ("fit", "predict")), fit or _plain_fit
    fitted = _fitted(name, model, log, fit)
    p = _propensities(name, fitted, log)
    check_same(name, "p", p.values, _propensities(name, fitted, log).values, "it is asked a second time")
    _check_part(name, fitted, log, p)
    _check_matrix(name, fitted, log, p)
    _check_refits(name, (model, fitted), log, fit, lambda one: _propensities(name, one, log).values, p.values)
    _check_blind(name, (model, fitted), log, fit, p)


def _check_instance(model: Any, needed: tuple[str, ...]) -> str:
    name = model.__name__ if isinstance(model, type) else type(model).__name__
    require(not isinstance(model, type), f"{name}: is a class; give an instance, {name}().")
    for verb in needed:
        require(callable(getattr(model, verb, None)), f"{name}: has no method {verb}; write it.")
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
        require("read-only" not in str(error), f"{name}: fit changes the feedback that it is given; work on a copy.")
        raise
    require(fitted is own, f"{name}: fit must return self, got {type(fitted).__name__}; end it with `return self`.")
    _unchanged(name, "fit", before, log)
    return fitted


def _columns(log: Feedback) -> dict[str, Array]:
    found = {f.name: getattr(log, f.name) for f in fields(log)}
    return {name: values.copy() for name, values in found.items() if isinstance(values, np.ndarray)}


def _unchanged(name: str, verb: str, before: dict[str, Array], log: Feedback) -> None:
    for column, values in before.items():
        require(
            np.array_equal(values, getattr(log, column)),
            f"{name}: {verb} changes the {column} of the feedback that it is given; work on a copy.",
        )


def _check_refits(
    name: str, models: tuple[Any, Any], log: Feedback, fit: Fit, answers: Callable[[Any], Floats], wanted: Floats
) -> None:
    """The same log teaches the same: a new model, one that was fitted before (`models`), and a clone."""
    new, before = (answers(_fitted(name, one, log, fit)) for one in models)
    check_same(name, "answers", wanted, new, "it is fitted again from the start; draw by a seed that is a parameter")
    check_same(name, "answers", wanted, before, "a fitted model is fitted again; fit must forget what it learned")
    if not hasattr(models[0], "get_params"):
        return
    from sklearn.base import clone

    try:
        twin: Any = clone(models[0])
    except (TypeError, RuntimeError) as error:
        raise AssertionError(f"{name}: cannot be cloned: {error}; let __init__ only assign its parameters.") from error
    check_same(
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
    require(values.shape == shape, f"{name}: {call} gives shape {values.shape}, and must give {shape}.")
    require(values.dtype.kind in "fiu", f"{name}: {call} gives {values.dtype}, and must give real numbers.")
    bad = int(np.count_nonzero(~np.isfinite(values)))
    require(bad == 0, f"{name}: {bad:,} of {values.size:,} values of {call} are not finite; repair them.")
    return values.astype(np.float64)


def _check_scores(name: str, model: Any, log: Feedback) -> None:
    if not hasattr(model, "scores"):
        return
    whole, some = _answers(name, model, log), np.array([3, 0, 3])
    part = _array(name, "scores(users)", model.scores(some), (len(some), log.n_items))
    check_same(
        name, "scores", whole[some], part, "users are asked in another block, [3, 0, 3]; a row depends on its user only"
    )


def _check_predictions(name: str, model: Any, log: Feedback) -> None:
    if not hasattr(model, "predict"):
        return
    user, item = log.user[:50], log.item[:50]
    found = _array(name, "predict(user, item)", model.predict(user, item), (len(user),))
    turned = _array(name, "predict(user, item)", model.predict(user[::-1], item[::-1]), (len(user),))
    check_same(
        name, "predictions", found, turned[::-1], "pairs are in another order; a pair has a prediction of its own"
    )
    if hasattr(model, "scores"):
        block = np.asarray(predicted_block(model, _users(log)), np.float64)
        check_same(
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
    require(
        isinstance(found, Propensities),
        f"{name}: predict(feedback) gives {type(found).__name__}, and must give ol.Propensities(values=p, "
        "fingerprint=feedback.fingerprint).",
    )
    require(len(found) == len(log), f"{name}: predict gives {len(found):,} values for {len(log):,} rows; one per row.")
    require(
        found.fingerprint == log.fingerprint,
        f"{name}: its Propensities have the fingerprint {found.fingerprint}, and must have that of the feedback; pass "
        "fingerprint=feedback.fingerprint.",
    )
    return found


def _check_part(name: str, model: Any, log: Feedback, p: Propensities) -> None:
    keep = np.arange(len(log)) % 3 == 0
    part = log.take(keep, share=np.full(int(keep.sum()), 1 / 3))
    check_same(
        name, "p", p.values[keep], _propensities(name, model, part).values,
        "a third of the rows is asked about; p is of the whole log, for any part of it that is asked about",
    )  # fmt: skip


def _check_matrix(name: str, model: Any, log: Feedback, p: Propensities) -> None:
    if not hasattr(model, "matrix"):
        return
    try:
        grid = _array(name, "matrix()", model.matrix(), (log.n_users, log.n_items))
    except UndefinedError:  # p depends on the rating
        return
    require(bool(np.all((grid > 0) & (grid <= 1))), f"{name}: matrix() has values outside (0, 1]; floor them.")
    check_same(name, "p", p.values, grid[log.user, log.item], "predict is compared with matrix()")


def _check_blind(name: str, models: tuple[Any, Any], log: Feedback, fit: Fit, p: Propensities) -> None:
    """A fitted p that does not change with the ratings must be declared blind to them."""
    if p.sample is not None or p.base is not None:  # fitted with ratings drawn at random, which are not these
        return
    model, fitted = models
    other = replace(log, rating=log.rating[np.random.default_rng(0).permutation(len(log))])
    moved = _propensities(name, _fitted(name, model, other, fit), other).values
    blind = predicted_by(name, fitted, log).blind
    same = bool(np.allclose(moved, p.values, rtol=RTOL, atol=ATOL))
    half = log.take(np.arange(len(log)) % 2 == 0, share=np.full((len(log) + 1) // 2, 0.5))
    learned = _propensities(name, _fitted(name, model, half, fit), log).values if same and not blind else p.values
    given = bool(np.allclose(learned, p.values, rtol=RTOL, atol=ATOL))  # like a column of the log, not fitted
    require(
        given,
        f"{name}: says that it sees ratings, and its p is the same after ratings are exchanged between rows; set "
        "sees_rating = False, or pass blind=True to its Propensities: a verdict then asks for more.",
    )
    require(
        same or not blind,
        f"{name}: does not say that it sees ratings, and its p changes when ratings are exchanged between rows; set "
        "sees_rating = True.",
    )
