"""`wrap`: a model of another library as a recommender here, recognised by its attributes.

No library is imported for it: code that holds a model of a library has imported that library.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from openloop.core.feedback import Array, check_fitted
from openloop.core.protocols import on_host
from openloop.errors import AlignmentError, InputError, did_you_mean
from openloop.learners.adapters.factors import UNKNOWN, Factors, checked
from openloop.learners.adapters.faiss_indexes import is_index, wrap_index
from openloop.learners.adapters.implicit_models import has_factors, wrap_factors
from openloop.learners.adapters.lenskit_models import is_pipeline, wrap_pipeline
from openloop.learners.adapters.lightfm_models import is_lightfm, wrap_lightfm
from openloop.learners.adapters.row_ids import row_ids
from openloop.learners.adapters.sklearn_models import is_decomposition, wrap_decomposition
from openloop.learners.adapters.surprise_models import is_surprise, wrap_surprise
from openloop.learners.adapters.torch_modules import is_module, wrap_module
from openloop.learners.adapters.wrapped import Wrapped
from openloop.learners.base import FactorLearner, Learner
from openloop.learners.model_files.packing import as_array
from openloop.support.wording import joined


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Models of one kind: how they are recognised, and wrapped with `users`, `items` and `unknown`."""

    name: str
    is_one: Callable[[Any], bool]
    wrap: Callable[..., Any]


FAMILIES = (
    Family(name="Surprise", is_one=is_surprise, wrap=wrap_surprise),
    Family(name="LightFM", is_one=is_lightfm, wrap=wrap_lightfm),
    Family(name="LensKit", is_one=is_pipeline, wrap=wrap_pipeline),
    Family(name="PyTorch", is_one=is_module, wrap=wrap_module),
    Family(name="scikit-learn", is_one=is_decomposition, wrap=wrap_decomposition),
    Family(name="implicit", is_one=has_factors, wrap=wrap_factors),
)
BLOCK = 1024  # users whose scores of all items are asked for at once
KINDS = (
    "models of implicit, LightFM, Surprise and LensKit, torch modules, (user vectors, item vectors), "
    "(user vectors, a flat FAISS index), (a decomposition of scikit-learn, its matrix), a matrix of scores, learners"
)


def wrap(model: Any, users: Any = None, items: Any = None, unknown: str = "error") -> Any:
    """A model made elsewhere, as `ol.evaluate` and `ol.audit` take it; its users and items are found by id.

    Args:
        model: One of: a model of implicit, LightFM, Surprise or LensKit; a torch module f(users, items) of positions; a
            pair of vectors (users, items), of vectors and a flat FAISS index, or of a decomposition of scikit-learn and
            the matrix that it transforms; (LightFM, user features, item features); a matrix of scores or a function,
            with the ids that they are about; a fitted learner, to change `unknown`.
        users: The ids of its rows: an array, a column, or a mapping from ids to rows. Surprise and LensKit have their
            own. Elsewhere, without ids, row r is id r, and a log with other or fewer ids is refused.
        items: The ids of its items, likewise.
        unknown: What ids of the log that the model lacks get: "error", or "zero" for zero factors and bias, or score.

    Returns:
        A recommender.

    Examples:
        >>> import polars as pl
        >>> import openloop as ol
        >>> model = ol.wrap(([[1.0], [2.0]], [[3.0], [1.0]]), users=["ann", "bob"], items=["x", "y"])
        >>> log = ol.read(pl.DataFrame({"user": ["ann", "bob"], "item": ["x", "y"], "rating": [3, 2]}))
        >>> found = ol.evaluate({"vectors": model}, log, metrics=["mae"], estimators=["naive"])
        >>> found["vectors", "mae", "naive"].value
        0.0
    """
    if unknown not in UNKNOWN:
        raise InputError(f"wrap: unknown={unknown!r} is not an option.{did_you_mean(str(unknown), UNKNOWN)}")
    given: dict[str, Any] = {"users": row_ids("users", users), "items": row_ids("items", items), "unknown": unknown}
    if isinstance(model, tuple):
        return _several(model, given)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(model, Learner):
        return _learner(model, **given)
    family = family_of(model)
    if family is not None:
        return family.wrap(model, **given)
    if isinstance(model, type):
        raise InputError(f"wrap: {model.__name__} is a class; pass a fitted model.")
    if hasattr(model, "__array__") or hasattr(model, "detach"):
        return _grid(model, **given)
    if callable(model):
        return _function(model, **given)
    raise InputError(
        f"wrap: {type(model).__name__} is not a known kind of model; pass one of: {KINDS}; or tables of its scores."
    )


def family_of(model: Any) -> Family | None:
    """The kind of models of other libraries that this is one of, None where it is none."""
    if isinstance(model, type | Learner):
        return None
    return next((family for family in FAMILIES if family.is_one(model)), None)


def _several(parts: tuple[Any, ...], given: dict[str, Any]) -> Any:
    if len(parts) == 3 and is_lightfm(parts[0]):
        return wrap_lightfm(*parts, **given)
    if len(parts) != 2:
        raise InputError(
            f"wrap: a tuple of {len(parts)} is not a model; pass (user vectors, item vectors), or LightFM with user "
            "and item features."
        )
    if is_decomposition(parts[0]):
        return wrap_decomposition(*parts, **given)
    if is_index(parts[1]):
        return wrap_index(*parts, **given)
    return checked(Factors(*parts, **given))


def _learner(model: Any, users: Any, items: Any, unknown: str) -> Any:
    """A fitted learner with another rule for ids that it lacks; rows without ids stay so, or get those given."""
    name = type(model).__name__
    if isinstance(model, Wrapped):
        raise InputError(
            f"wrap: {model.name} is wrapped already; pass users=, items= and unknown= with the model itself."
        )
    check_fitted(model)
    ids: dict[str, Any] = {}
    for side, given in (("users", users), ("items", items)):
        unnamed = isinstance(model, Factors) and model.by_position(side)
        if given is not None and not unnamed:
            raise InputError(f"wrap: {name} has {side} of its own, those that it was fitted on; leave {side}= out.")
        ids[side] = given if unnamed else getattr(model, f"{side}_").ids
    output = {"clip": model.clip, "output": model.output} if isinstance(model, Factors) else {}
    if isinstance(model, FactorLearner) and (isinstance(model, Factors) or not model.linked):
        offsets = model.user_bias_, model.item_bias_, model.intercept_
        return checked(Factors(model.user_factors_, model.item_factors_, *offsets, **ids, unknown=unknown, **output))
    return Wrapped(name, model.predict, **ids, unknown=unknown, ranked=_scored_pairs(model))


def _scored_pairs(model: Any) -> Any:
    """The scores of pairs, which predictions need not be."""

    def pairs(user: Array, item: Array) -> Array:
        users, at = np.unique(user, return_inverse=True)
        found = np.empty(len(user))
        for start in range(0, len(users), BLOCK):
            own = (at >= start) & (at < start + BLOCK)
            found[own] = on_host(model.scores(users[start : start + BLOCK]))[at[own] - start, item[own]]
        return found

    return pairs


def _grid(scores: Any, users: Any, items: Any, unknown: str) -> Wrapped:
    """A matrix of scores, whose rows and columns have ids."""
    grid = as_array(scores)
    if users is None or items is None:
        raise InputError("wrap: a matrix of scores needs the ids of its rows and columns; pass users= and items=.")
    if grid.shape != (len(users), len(items)):
        raise AlignmentError(
            f"wrap: the scores have shape {grid.shape}, and there are {len(users):,} users and {len(items):,} items; "
            "give one row per user and one column per item."
        )
    return Wrapped("scores", lambda user, item: grid[user, item], users, items, unknown)


def _function(function: Any, users: Any, items: Any, unknown: str) -> Any:
    missing = [side for side, ids in (("users", users), ("items", items)) if ids is None]
    if missing:
        raise InputError(
            f"wrap: a function of ids needs no wrapping: pass it to evaluate or audit; or pass the ids that it knows "
            f"as {joined([f'{side}=' for side in missing])}."
        )
    named = getattr(function, "__name__", type(function).__name__)
    return Wrapped(named, lambda user, item: function(users[user], items[item]), users, items, unknown)
