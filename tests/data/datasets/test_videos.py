"""KuaiRec and KuaiRand: pairs that repeat, times that are missing, and two logs over one grid."""

from __future__ import annotations

import re

from openloop.data import datasets
from tests.data.datasets.originals import cells, write
from tests.facts import facts

REPEATED = facts("log", 1, "repeat", "latest")


def test_the_latest_of_the_rows_of_a_pair_counts(tmp_path):
    data = datasets.load("kuairec", write("kuairec", tmp_path))
    assert cells(data.log) == [(0, 3649, 1.5), (14, 147, 0.75), (19, 147, 2.0)]
    assert data.log.time.tolist() == [20, 30, 40]
    assert any(re.search(REPEATED, note) for note in data.notes)


def test_the_small_matrix_is_the_open_loop_and_may_lack_times(tmp_path):
    data = datasets.load("kuairec", write("kuairec", tmp_path))
    assert cells(data.open_loop) == [(14, 148, 0.25), (14, 183, 1.25)]
    assert data.open_loop.time is None
    assert data.log.items.ids.tolist() == [147, 148, 183, 3649]
    assert any(re.search(facts("open_loop", "small matrix", 1, "2 videos"), note) for note in data.notes)


def test_what_was_recommended_is_the_log_and_what_was_drawn_the_open_loop(tmp_path):
    data = datasets.load("kuairand", write("kuairand", tmp_path))
    assert cells(data.log) == [(0, 7, 0), (1, 7, 0), (1, 9, 1)]  # user 0 clicked on video 7 at first, not at last
    assert cells(data.open_loop) == [(0, 9, 0), (1, 8, 1)]
    assert data.log.items.ids.tolist() == [7, 8, 9]
    assert any(re.search(REPEATED, note) for note in data.notes)
