"""FAISS: flat indexes are exact vectors, by inner product or distance; anything else is refused."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.errors import AlignmentError, InputError
from tests.elsewhere import ITEM_IDS, USER_IDS, V, W, assert_evaluated_as, in_codes
from tests.facts import facts


class Index:
    """faiss.Index."""

    def __init__(self, vectors, metric_type):
        self._vectors, self.metric_type, self.ntotal = vectors.astype(np.float32), metric_type, len(vectors)

    def reconstruct_n(self, first, number):
        return self._vectors[first : first + number]


class IndexFlat(Index):
    pass


class IndexFlatIP(IndexFlat):
    pass


class IndexIVFFlat(Index):
    pass


def test_inner_products_are_scores():
    wrapped = ol.wrap((V, IndexFlatIP(W, 0)), users=USER_IDS, items=ITEM_IDS)
    assert_evaluated_as(wrapped, in_codes(V @ W.T))


def test_distances_are_scores_below_zero():
    distance = ((V[:, None] - W) ** 2).sum(axis=2)  # (U, I), as index.search returns
    assert_evaluated_as(ol.wrap((V, IndexFlat(W, 1)), users=USER_IDS, items=ITEM_IDS), in_codes(-distance))


@pytest.mark.parametrize(
    ("vectors", "index", "error", "told"),
    [
        (V, IndexIVFFlat(W, 0), InputError, ("IndexIVFFlat", "flat index")),
        (V, IndexFlat(W, 23), InputError, ("metric 23", "inner product")),
        (V[:, :2], IndexFlat(W, 0), AlignmentError, ((30, 2), 3)),
    ],
    ids=["lossy", "metric", "dimensions"],
)
def test_what_gives_no_exact_scores_is_refused(vectors, index, error, told):
    with pytest.raises(error, match=facts("wrap", *told)):
        ol.wrap((vectors, index))
