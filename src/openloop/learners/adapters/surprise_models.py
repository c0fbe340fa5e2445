"""Algorithms of Surprise: SVD, SVD++ and NMF as `Factors`, others pair by pair; ids are those of the trainset.

Predictions are `algo.predict(user, item).est`, cut to the rating scale. Rankings are by the estimate before the cut,
which makes ties. A user or item that it never saw gets the algorithm's own baseline, with `unknown="zero"`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from openloop.core.feedback import Array
from openloop.errors import InputError
from openloop.learners.adapters.factors import Factors, checked
from openloop.learners.adapters.row_ids import row_ids
from openloop.learners.adapters.wrapped import Wrapped
from openloop.learners.model_files.packing import as_array

FACTORED = ("SVD", "SVDpp", "NMF")  # themselves: what derives from them may estimate otherwise


class Nobody:
    """A raw id that no trainset has."""


def is_surprise(model: Any) -> bool:
    """Whether it is an algorithm of Surprise."""
    return any(kind.__module__.partition(".")[0] == "surprise" for kind in type(model).__mro__) or (
        hasattr(model, "trainset") and hasattr(model, "estimate")
    )


def wrap_surprise(model: Any, users: Any, items: Any, unknown: str) -> Any:
    """The algorithm with the trainset's raw ids, or others for its inner ones."""
    name, trainset = type(model).__name__, getattr(model, "trainset", None)
    if trainset is None:
        raise InputError(f"wrap: {name} is not fitted; call fit(trainset) first.")
    raw = {
        "users": [trainset.to_raw_uid(u) for u in range(trainset.n_users)],
        "items": [trainset.to_raw_iid(i) for i in range(trainset.n_items)],
    }
    ids = {
        side: row_ids(side, raw[side]) if given is None else given
        for side, given in (("users", users), ("items", items))
    }
    biased = getattr(model, "biased", True)
    # Without biases Surprise answers about the unknown by the mean of all ratings, which no factor of zeros gives.
    if name in FACTORED and (biased or unknown == "error"):
        return _factors(model, biased=biased, **ids, unknown=unknown)
    return Wrapped(name, _asked(model, raw), **ids, unknown=unknown, ranked=_asked(model, raw, clip=False), covers=True)


def _factors(model: Any, *, biased: bool, users: Any, items: Any, unknown: str) -> Factors:
    """μ + b_u + b_i + q_iᵀp_u; of SVD++ p_u + |I_u|^(-1/2) Σ y_j over the user's items."""
    trainset, own = model.trainset, as_array(model.pu)
    implied = _implied(model, len(own)) if hasattr(model, "yj") else 0.0
    offsets = (model.bu, model.bi, float(trainset.global_mean)) if biased else ()
    low, high = trainset.rating_scale
    return checked(
        Factors(
            own + implied, model.qi, *offsets, users=users, items=items, unknown=unknown, clip=(float(low), float(high))
        )
    )


def _implied(model: Any, users: int) -> Array:
    """|I_u|^(-1/2) Σ y_j over the items that a user rated, (U, K)."""
    rated = [[item for item, _ in model.trainset.ur[u]] for u in range(users)]
    return np.array([model.yj[items].sum(axis=0) / np.sqrt(len(items)) for items in rated])


def _asked(model: Any, raw: dict[str, list[Any]], *, clip: bool = True) -> Any:
    """The estimate of each pair of inner ids, -1 for what the trainset lacks."""

    def pairs(user: Array, item: Array) -> Array:
        users, items = ([*raw[side], Nobody] for side in ("users", "items"))  # -1 is the last
        return np.array([model.predict(users[u], items[i], clip=clip).est for u, i in zip(user, item, strict=True)])

    return pairs
