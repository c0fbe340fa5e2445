"""Groups of rows: what makes a group, which of them count, and keys that would overflow."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from openloop.core.feedback import Vocabulary
from openloop.core.impressions import Impressions
from openloop.errors import ColumnError, UndefinedError
from openloop.propensity.solvers.grouping import (
    by_assignment,
    by_item,
    by_user_item,
    combined,
    group,
    per_cluster,
    refuse_silent,
)
from tests.facts import facts


def shown(**changes):
    """User 0 sees items 0, 1 and then 1, 0; user 1 sees 0 alone."""
    columns = {
        "request": [0, 0, 1, 1, 2], "position": [1, 2, 1, 2, 1], "item": [0, 1, 1, 0, 0],
        "reward": [1.0, 0.0, 0.0, 0.0, 1.0], "user": [0, 0, 0, 0, 1], "requests": Vocabulary.range(3),
        "arms": [[1, 2], [2, 1], [2, 1], [1, 2], [1, 2]],
    }  # fmt: skip
    return Impressions.from_arrays(**(columns | changes))


def table(found):
    """The cells of each group as (position, shown, clicks)."""
    cells = list(zip(*(values.tolist() for values in found.cells[1:]), strict=True))
    return [cells[a:b] for a, b in pairwise(found.cells.start)]


def test_only_clicked_groups_at_two_positions_count():
    log = shown()
    found = group(log, by_user_item(log))
    assert table(found) == [[(0, 1, 1), (1, 1, 0)]]
    assert found.row.tolist() == [0, 3]
    assert per_cluster(log, found.row).tolist() == [0, 0]


def test_every_group_where_it_is_asked_for():
    log = shown()
    found = group(log, by_user_item(log), every=True)
    assert table(found) == [[(0, 1, 1), (1, 1, 0)], [(0, 1, 0), (1, 1, 0)], [(0, 1, 1)]]
    assert found.groups == 3


def test_rows_may_be_a_part():
    log = shown()
    assert group(log, by_user_item(log), rows=np.array([0, 1, 2])).groups == 0


def test_lists_of_other_lengths_are_other_groups():
    log = shown()
    assert log.lengths.tolist() == [2, 2, 1]
    for key in (by_item(log), by_assignment(log)):
        assert key[0] == key[3] != key[4]


def test_without_requests_lengths_are_unknown_and_the_same():
    log = shown(request=None, requests=None)
    assert log.lengths.tolist() == [2] * 5
    assert len(set(by_item(log)[[0, 3, 4]])) == 1


def test_keys_that_would_overflow_are_coded():
    wide = np.array([0, 2**40, 2**40, 2**41])
    key = combined(wide, wide, np.array([0, 1, 1, 0]))
    assert len(set(key.tolist())) == 3
    assert key[1] == key[2]
    assert key.min() >= 0


@pytest.mark.parametrize(("key", "column"), [(by_user_item, "user="), (by_assignment, "arms=")])
def test_a_missing_column_is_named(key, column):
    with pytest.raises(ColumnError, match=facts("Examination", column)):
        key(shown(user=None, arms=None))


def test_positions_without_clicks_are_named():
    refuse_silent(np.array([1.0, 2.0]), "in the log")
    with pytest.raises(UndefinedError, match=facts("position 2, 3 of 3")):
        refuse_silent(np.array([1.0, 0.0, 0.0]), "in the log")
