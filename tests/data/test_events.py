from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openloop.core.feedback import Vocabulary
from openloop.data.events import Events
from openloop.errors import DuplicateError, EmptyError
from tests.facts import facts


def events(user, item, time=None, **more) -> Events:
    columns = {"rating": np.ones(len(user), np.float32)} | ({} if time is None else {"time": np.array(time)})
    return Events(
        name="log", user=np.array(user, np.int32), item=np.array(item, np.int32), users=Vocabulary.range(4),
        items=Vocabulary.range(5), columns=columns, **more,
    )  # fmt: skip


rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 9)), min_size=1, max_size=30)


@given(rows)
def test_counts_add_up_to_the_rows_and_pairs_are_each_once(given_rows):
    log = events(*zip(*given_rows, strict=True)).merged("count")
    assert log.weight.sum() == len(given_rows)
    assert len(log) == len({(u, i) for u, i, _ in given_rows})


@given(rows)
def test_the_last_is_the_first_of_time_turned_round(given_rows):
    user, item, time = zip(*given_rows, strict=True)
    last = events(user, item, time).merged("last")
    first = events(user, item, [-t for t in time]).merged("first")
    assert last.time.tolist() == [-t for t in first.time]


def test_some_rows_may_be_merged_without_the_others():
    log = events([0, 0, 1, 0], [1, 1, 2, 1])
    part = log.merged("count", np.array([True, False, True, True]))
    assert (part.row.tolist(), part.weight.tolist(), part.input_rows) == ([3, 2], [2, 1], 4)


def test_unknown_and_left_out_rows_do_not_count():
    known, kept = np.array([True, False, True, True]), np.array([True, True, False, True])
    log = events([0, -1, 1, 2], [1, 1, 2, 3], known=known, kept=kept)
    assert log.counting.tolist() == [True, False, False, True]
    part = log.merged("error")
    assert (part.row.tolist(), part.dropped) == ([0, 3], 1)
    with pytest.raises(EmptyError, match=facts("none of its 4 rows", "1 have unknown ids", "1 are not positives")):
        log.merged("error", np.array([False, True, True, False]))


def test_repeats_are_refused_with_the_options_that_merge_them():
    with pytest.raises(DuplicateError, match=facts("(0, 1)", "rows 1, 3", "duplicates='first'", "'count'")):
        events([0, 1, 0], [1, 1, 1]).merged("error")
