"""Impressions sort, check and remember; a request has one user and no position twice."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.core.impressions import Impressions
from openloop.errors import AlignmentError, DuplicateError, EmptyError, InputError, PropensityError, RatingError
from tests.facts import facts


def shown(**changes):
    """Two requests of users 1 and 0: items 5, 3 and 4, 5, 3; out of order."""
    columns = {
        "request": [1, 0, 1, 0, 1], "position": [2, 1, 1, 2, 3], "item": [5, 5, 4, 3, 3],
        "reward": [1.0, 0.0, 0.0, 0.5, 1.0], "user": [0, 1, 0, 1, 0],
    }  # fmt: skip
    return Impressions.from_arrays(**(columns | changes))


def test_rows_are_sorted_by_request_and_position_and_remember_their_place():
    log = shown()
    assert log.request.tolist() == [0, 0, 1, 1, 1]
    assert log.position.tolist() == [1, 2, 1, 2, 3]
    assert log.item.tolist() == [5, 3, 4, 5, 3]
    assert log.row.tolist() == [1, 3, 2, 0, 4]
    assert log.user is not None
    assert log.user.tolist() == [1, 0]
    assert (log.n_requests, log.depth, log.request_ptr.tolist()) == (2, 3, [0, 2, 5])


def test_without_requests_each_row_is_one():
    log = shown(request=None, user=None)
    assert log.request.tolist() == [0, 1, 2, 3, 4]
    assert (log.n_requests, log.n_clusters, log.cluster.tolist()) == (5, 5, [0, 1, 2, 3, 4])


@pytest.mark.parametrize(
    ("changes", "error", "told"),
    [
        ({"position": [2, 1, 0, 2, 3]}, InputError, ("row 2", 0, 1)),
        ({"position": [2, 1, 2, 2, 3]}, DuplicateError, ("row 0", "row 2", "position 2")),
        ({"reward": [1.0, np.nan, 0, 0, 0]}, RatingError, ("row 1", 1)),
        ({"user": [0, 1, 0, 2, 0]}, InputError, ("user", 1, 2, 3)),
        ({"slate": [0.1, 0.2, 0.1, 0.3, 0.1]}, InputError, ("slate", 0.2, 0.3)),
        ({"propensity": [1, 1, 0, 1, 1]}, PropensityError, ("propensity", 1, 5)),
        ({"reward": [1.0]}, AlignmentError, ("reward", 1, 5)),
        ({"request": [], "position": [], "item": [], "reward": [], "user": []}, EmptyError, ("no rows",)),
    ],
)
def test_what_cannot_be_is_named(changes, error, told):
    with pytest.raises(error, match=facts(*told)):
        shown(**changes)
