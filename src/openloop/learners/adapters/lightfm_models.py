"""Models of LightFM as `Factors`: the representations of users and items, by their features if any."""

from __future__ import annotations

from typing import Any

from openloop.errors import AlignmentError, InputError
from openloop.learners.adapters.factors import Factors, checked


def is_lightfm(model: Any) -> bool:
    """Whether it gives representations as LightFM does."""
    return hasattr(model, "get_user_representations") and hasattr(model, "get_item_representations")


def wrap_lightfm(
    model: Any, user_features: Any = None, item_features: Any = None, *, users: Any, items: Any, unknown: str
) -> Factors:
    """v_uᵀw_i + a_u + b_i, where a feature matrix gives each row the sum of its features' embeddings."""
    if getattr(model, "item_embeddings", True) is None:
        raise InputError("wrap: LightFM is not fitted; fit it first.")
    a, V = model.get_user_representations(user_features)
    b, W = model.get_item_representations(item_features)
    for side, ids, rows, features in (("users", users, V, user_features), ("items", items, W, item_features)):
        if ids is not None and len(ids) != len(rows) and features is None:
            raise AlignmentError(
                f"wrap: LightFM has {len(rows):,} rows of {side[:-1]} features, and {side}= has {len(ids):,} ids; "
                "where it was fitted with features, pass (model, user_features, item_features)."
            )
    return checked(Factors(V, W, a, b, users=users, items=items, unknown=unknown))
