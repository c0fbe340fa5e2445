"""LightFM: representations by features where it was fitted with some."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.errors import AlignmentError
from tests.elsewhere import ITEM_IDS, USER_IDS, A, B, I, LightFM, U, V, W, assert_evaluated_as, in_codes
from tests.facts import facts

# dataset.mapping() gives users, user features, items and item features, each {id: row}.
USER_MAP = {user: row for row, user in enumerate(USER_IDS)}
ITEM_MAP = {item: row for row, item in reversed(list(enumerate(ITEM_IDS)))}


def test_with_features_a_row_is_the_sum_of_its_features():
    rng = np.random.default_rng(0)
    of_users, of_items = rng.random((U, U)), rng.random((I, I))
    wrapped = ol.wrap((LightFM(), of_users, of_items), users=USER_MAP, items=ITEM_MAP)
    a, b = of_users @ A, of_items @ B
    assert_evaluated_as(wrapped, in_codes((of_users @ V) @ (of_items @ W).T + a[:, None] + b))


def test_rows_of_features_are_not_taken_for_users():
    with pytest.raises(AlignmentError, match=facts("30 rows", "users=", "29 ids", "user_features")):
        ol.wrap(LightFM(), users=USER_IDS[:-1], items=ITEM_IDS)
