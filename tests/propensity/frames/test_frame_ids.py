"""Ids by their counts: what leaves the engine, the median row, and ids that are looked up."""

from __future__ import annotations

import narwhals as nw
import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.propensity.frames.frame_ids import FrameIds
from openloop.support.frames import lazy
from tests.engines import EAGER, converter
from tests.propensity_logs import feedback, log

ROWS = pl.DataFrame({"k": ["a", "a", "b", "c", "c", "c", "d"]})


def ids(engine="lazy"):
    return FrameIds.of(lazy(converter(engine)(ROWS)), "k")


@pytest.mark.parametrize("engine", EAGER)
def test_a_count_and_how_many_have_it_are_all_that_leaves(engine):
    found = ids(engine)
    assert found.count.tolist() == [1, 2, 3]
    assert found.size.tolist() == [2, 1, 1]
    assert (len(found), found.unseen) == (4, 0)


def test_those_of_the_population_without_a_row_are_the_first_entry():
    found = ids().among(10)
    assert found.count.tolist() == [0, 1, 2, 3]
    assert found.size.tolist() == [6, 2, 1, 1]
    assert (len(found), found.unseen) == (10, 6)
    assert ids().among(4).unseen == 0


@pytest.mark.parametrize("engine", EAGER)
def test_ids_are_looked_up_in_their_order(engine):
    asked = ol.Vocabulary.of(["d", "x", "c", "a"]).ids  # a c d x
    assert ids(engine).find(asked).tolist() == [1, 2, 0, -1]
    assert ids(engine).among(9).find(asked).tolist() == [2, 3, 1, -1]
    assert ids(engine).find(np.arange(3)).tolist() == [-1, -1, -1]


def test_the_median_row_is_that_of_memory():
    rows = log()
    for frame in (rows, rows[1:], rows.head(7), rows.head(1)):
        here = feedback(frame)
        expected = np.median(here.rows_of_items[here.item])
        assert FrameIds.of(nw.from_native(frame.lazy()), "mid").among(40).typical == expected
