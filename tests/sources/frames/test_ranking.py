"""Ranks beside a log frame: from lists, from full scores, among what is not excluded."""

from __future__ import annotations

from dataclasses import replace

import narwhals as nw
import numpy as np
import polars as pl
import pytest

from openloop.errors import PredictionError
from openloop.sources.frames.model_tables import ModelTable, of_frame
from openloop.sources.frames.opening import opened
from openloop.sources.frames.ranking import ExcludedPairs, with_ranks
from openloop.sources.question import Question

ROWS = pl.DataFrame({"u": [1, 1, 2], "i": [1, 2, 3], "y": [5.0, 1.0, 4.0], "log:place": [2, None, 1]})
LIST = pl.DataFrame({"user": [1, 1, 2], "item": [2, 3, 1], "rank": [1, 2, 5]})
GRID = pl.DataFrame({"user": [1, 1, 1, 2, 2, 2], "item": [1, 2, 3] * 2, "score": [3.0, 2.0, 1.0, 1.0, 1.0, 0.0]})


def table(frame):
    return of_frame("m", replace(opened("model 'm'", frame), ids=("user", "item")), (None, None))


def scored():
    return nw.from_native(ROWS).lazy()


def ranked(model, excluded=None, **options):
    asked = Question(**({"metrics": ["recall@5"], "estimators": ["naive"]} | options))
    return with_ranks(scored(), [(model, model)], asked, excluded)


def columns(found, *names):
    rows = found.frame.collect().sort("u", "i")
    return [rows[name].to_list() for name in names]


def excluded(*pairs):
    frame = pl.DataFrame({"u": [u for u, _ in pairs], "i": [i for _, i in pairs]})
    return ExcludedPairs.of(nw.from_native(frame).lazy(), scored())


def test_what_a_list_does_not_hold_ranks_below_it():
    found = ranked(table(LIST))
    assert columns(found, "h0", "e0") == [[5.0, 0.0, 5.0], [1.0, 1.0, 1.0]]
    assert (found.ranks, found.depths, found.scored) == ({0}, {0: 5}, {})


def test_a_rank_column_of_the_log_need_not_rank_every_row():
    found = ranked(ModelTable(model="own", rank="place"))
    assert columns(found, "h0") == [[1.0, 2.0, 0.0]]


def test_full_scores_are_ranked_with_ties_among_the_candidates():
    found = ranked(table(GRID), complete=True)
    assert columns(found, "h0", "e0") == [[0.0, 1.0, 2.0], [1.0, 1.0, 1.0]]
    assert found.scored == {0: 3}
    without = ranked(table(GRID), excluded((2, 1), (1, 1)), complete=True)  # (1, 1) is scored, so it stays
    assert columns(without, "h0") == [[0.0, 1.0, 1.0]]


def test_excluded_pairs_are_counted_once_and_without_those_scored():
    found = excluded((1, 3), (1, 3), (1, 1), (9, 1))
    assert found.overlap == 1
    assert sorted(found.counts.collect().rows()) == [(1, 1.0), (9, 1.0)]
    assert found.counted_beside(scored()).collect().sort("u", "i")["excluded"].to_list() == [1.0, 1.0, 0.0]
    with pytest.raises(PredictionError, match="'m': its list ranks 1 excluded cells"):
        ranked(table(LIST), found)


def test_scores_without_ranks_do_not_rank_unless_declared_complete():
    assert ranked(table(GRID)).ranks == set()
    with pytest.raises(PredictionError, match="'m': complete=True, but 1 scored rows have no score"):
        ranked(table(GRID.head(5)), complete=True)


def test_a_rank_beyond_every_cut_is_not_joined():
    near, far = ranked(table(LIST), metrics=["recall@1"]), ranked(table(LIST), metrics=["map"])
    assert columns(near, "r0") == [[None, 1.0, None]]
    assert np.isfinite(columns(far, "h0")).all()
