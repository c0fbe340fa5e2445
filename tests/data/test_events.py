from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from openloop.core.feedback import Vocabulary
from openloop.data.events import Events


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
