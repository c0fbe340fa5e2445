"""Decompositions of scikit-learn (NMF, TruncatedSVD, PCA) with the matrix that they transform, as `Factors`."""

from __future__ import annotations

from typing import Any

import numpy as np

from openloop.errors import InputError
from openloop.learners.adapters.factors import Factors, checked

FEW = 8  # rows on which the product is compared with the model's own


def is_decomposition(model: Any) -> bool:
    """Whether it decomposes a users × items matrix as scikit-learn does."""
    return all(hasattr(model, name) for name in ("transform", "inverse_transform", "n_components"))


def wrap_decomposition(model: Any, matrix: Any = None, *, users: Any, items: Any, unknown: str) -> Factors:
    """What the model makes of the matrix: transform(X) · components_ (+ mean_), which is checked on a few rows."""
    name = type(model).__name__
    if matrix is None:
        raise InputError(
            f"wrap: {name} keeps the items' factors only; pass (model, X) with the users × items matrix X that it "
            "transforms."
        )
    components = getattr(model, "components_", None)
    if components is None:
        raise InputError(f"wrap: {name} has no components_; fit it first.")
    V, bias = np.asarray(model.transform(matrix)), getattr(model, "mean_", None)
    found = Factors(V, np.asarray(components).T, None, bias, users=users, items=items, unknown=unknown)
    product = V[:FEW] @ components + (0 if bias is None else bias)
    if not np.allclose(product, np.asarray(model.inverse_transform(V[:FEW])), rtol=1e-4, atol=1e-5):
        raise InputError(
            f"wrap: what {name} makes of its matrix is not transform(X) · components_, as with whitening; pass "
            "(user vectors, item vectors)."
        )
    return checked(found)
