"""Foreign code is asked in blocks by one thread at a time; what goes wrong in it is told with its name."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from time import sleep

import numpy as np
import pytest

from openloop.errors import PredictionError
from openloop.learners.adapters import asking
from openloop.learners.adapters.asking import answered_grid, answers
from tests.facts import facts


def test_pairs_are_asked_about_in_blocks(monkeypatch):
    monkeypatch.setattr(asking, "BLOCK", 4)
    sizes = []

    def pairs(user, item):
        sizes.append(len(user))
        return 10 * user + item

    grid = answered_grid("f", pairs, np.array([2, 0, 1]), np.arange(3))
    assert grid.tolist() == [[20, 21, 22], [0, 1, 2], [10, 11, 12]]
    assert sizes == [4, 4, 1]
    assert answers("f", pairs, np.empty(0, np.int64), np.empty(0, np.int64)).shape == (0,)


def test_one_thread_asks_at_a_time():
    inside = []

    def pairs(user, _):
        inside.append(1)
        sleep(0.01)
        alone = len(inside) == 1
        inside.pop()
        return np.full(len(user), float(alone))

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda n: answers("f", pairs, np.arange(n), np.arange(n))[0], range(1, 9)))
    assert found == [1.0] * 8


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda *_: np.ones(2), ((2,), "3 users", "one score per pair")),
        (lambda *_: np.ones((3, 3)), ((3, 3), "one score per pair")),
        (lambda *_: 1.0, ((), "one score per pair")),
        (lambda *_: {}["ann"], ("KeyError", "ann", "3 pairs")),
        (lambda u: u, ("TypeError", "positional")),
        (lambda *_: ["a", "b", "c"], ("ValueError",)),
    ],
    ids=["few", "grid", "number", "raises", "arguments", "text"],
)
def test_what_goes_wrong_is_told(answer, told):
    with pytest.raises(PredictionError, match=facts("model 'f'", *told)):
        answers("model 'f'", answer, np.arange(3), np.arange(3))


def test_single_precision_stays_single():
    assert answers("f", lambda *_: np.ones(3, np.float32), np.arange(3), np.arange(3)).dtype == np.float32
    assert answers("f", lambda *_: [1, 2, 3], np.arange(3), np.arange(3)).dtype == np.float64
