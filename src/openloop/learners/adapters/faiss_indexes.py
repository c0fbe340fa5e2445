"""Flat indexes of FAISS as item factors: inner products as they are, squared distances with a bias per item.

-‖u − i‖² = 2uᵀi − ‖i‖² − ‖u‖²
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from openloop.errors import AlignmentError, InputError
from openloop.learners.adapters.factors import Factors, checked
from openloop.learners.model_files.packing import as_array

INNER_PRODUCT, L2 = 0, 1  # faiss.METRIC_INNER_PRODUCT, faiss.METRIC_L2


def is_index(part: Any) -> bool:
    """Whether it is an index of FAISS."""
    return hasattr(part, "ntotal") and hasattr(part, "metric_type") and hasattr(part, "reconstruct_n")


def wrap_index(user_vectors: Any, index: Any, users: Any, items: Any, unknown: str) -> Factors:
    """The vectors of users with those of the index; an IndexIDMap has the items' ids itself."""
    if hasattr(index, "id_map"):
        faiss: Any = sys.modules["faiss"]
        items = faiss.vector_to_array(index.id_map) if items is None else items
        index = faiss.downcast_index(index.index)
    kinds = [kind.__name__ for kind in type(index).__mro__]
    if "IndexFlat" not in kinds:
        raise InputError(
            f"wrap: {kinds[0]} keeps no exact vectors, or searches a part of them; pass a flat index, or the item "
            "vectors that it was built from."
        )
    if index.metric_type not in (INNER_PRODUCT, L2):
        raise InputError(
            f"wrap: the index has metric {index.metric_type}, which is neither the inner product nor L2; pass tables "
            "of its scores."
        )
    V, W = as_array(user_vectors), np.asarray(index.reconstruct_n(0, int(index.ntotal)))  # (U, K), (I, K)
    if V.ndim != 2 or V.shape[1] != W.shape[1]:
        raise AlignmentError(f"wrap: user vectors {V.shape} and the index, of {W.shape[1]} dimensions, do not fit.")
    if index.metric_type == INNER_PRODUCT:
        return checked(Factors(V, W, users=users, items=items, unknown=unknown))
    a, b = (-np.einsum("nk,nk->n", x, x, dtype=np.float64) for x in (V, W))
    return checked(Factors(2 * V, W, a, b, users=users, items=items, unknown=unknown))
