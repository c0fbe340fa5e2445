"""Models of implicit (ALS, BPR, LMF), and others with only `user_factors` and `item_factors`, as `Factors`.

The factors of BPR and LMF hold the biases in a column of their own, so the score is the product as it is.
"""

from __future__ import annotations

from typing import Any

from openloop.errors import InputError
from openloop.learners.adapters.factors import Factors, checked


def has_factors(model: Any) -> bool:
    """Whether it keeps factors as implicit does; what has `predict` scores in its own way, perhaps with biases."""
    return hasattr(model, "user_factors") and hasattr(model, "item_factors") and not hasattr(model, "predict")


def wrap_factors(model: Any, users: Any, items: Any, unknown: str) -> Factors:
    """Its factors, copied from the GPU where they are there."""
    if model.user_factors is None or model.item_factors is None:
        raise InputError(f"wrap: {type(model).__name__} has no factors yet; fit it first.")
    return checked(Factors(model.user_factors, model.item_factors, users=users, items=items, unknown=unknown))
