"""Ranks beside a log frame: from lists, from full scores, among what is not excluded."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import narwhals as nw
import numpy as np
import polars as pl
import pytest

from openloop.errors import ColumnError, PredictionError
from openloop.kernels import ties
from openloop.sources.frames.model_tables import ModelTable, of_frame
from openloop.sources.frames.opening import opened
from openloop.sources.frames.ranking import ExcludedPairs, with_ranks
from openloop.sources.frames.rows import discount_name
from openloop.sources.question import Question
from tests.examples import same
from tests.facts import facts

ROWS = pl.DataFrame({"u": [1, 1, 2], "i": [1, 2, 3], "y": [5.0, 1.0, 4.0], "log:place": [2, None, 1]})
LIST = pl.DataFrame({"user": [1, 1, 2], "item": [2, 3, 1], "rank": [1, 2, 5]})
GRID = pl.DataFrame({"user": [1, 1, 1, 2, 2, 2], "item": [1, 2, 3] * 2, "score": [3.0, 2.0, 1.0, 1.0, 1.0, 0.0]})


def table(frame):
    return of_frame("m", replace(opened("model 'm'", frame), ids=("user", "item")), (None, None), {})


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
    return ExcludedPairs.of(nw.from_native(frame).lazy(), scored(), ExitStack())


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


@pytest.mark.parametrize("k", [3, 7])
def test_the_expectations_over_tied_blocks_have_the_same_bits_in_any_order_of_rows(k):
    item = np.arange(1, 41)
    score = np.repeat([4.0, 3.0, 2.0, 1.0], [1, 4, 20, 15])
    grid = pl.DataFrame({"user": np.repeat([1, 2], 40), "item": [*item, *item], "score": [*score, *np.roll(score, 7)]})
    for seed in range(3):
        options = {"complete": True, "metrics": [f"dcg@{k}", "dcg"]}
        found = ranked(table(grid.sample(fraction=1, shuffle=True, seed=seed)), **options)
        h, e = (np.array(x, np.int64) for x in columns(found, "h0", "e0"))
        assert e.tolist() == [1, 4, 15]
        for cut in (k, None):
            (told,) = columns(found, discount_name(0, cut))
            assert told == ties.expected_discount(h, e, cut).tolist()
        np.testing.assert_array_equal(columns(found, "harmonic0")[0], ties.harmonic(h, e))


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


# -- counts of candidates ------------------------------------------------------------------------------------

COUNTS = pl.DataFrame({"user": [1, 1, 2], "item": [1, 2, 3], "above": [0, 1, 3], "tied": [1, 2, 3]})


def counted(frame=COUNTS, **options):
    return ranked(table(frame), metrics=["dcg", "map", "recall@2"], **({"complete": True} | options))


def test_counts_of_candidates_are_ranks_in_expectation():
    found = counted()
    assert columns(found, "h0", "e0") == [[0.0, 1.0, 3.0], [1.0, 2.0, 3.0]]
    gain = 1 / np.log2(np.arange(2, 9))  # of ranks 1, 2 …
    same(columns(found, "discount0")[0], [gain[0], gain[1:3].mean(), gain[3:6].mean()])
    same(columns(found, "discount0_2")[0], [gain[0], gain[1] / 2, 0.0])
    same(columns(found, "harmonic0")[0], [1.0, 1 / 2 + 1 / 3, 1 / 4 + 1 / 5 + 1 / 6])
    assert (found.ranks, found.counted) == ({0}, {0: 6})


def test_counts_serve_where_they_were_declared_complete():
    assert counted(complete=False).ranks == set()
    with pytest.raises(PredictionError, match=facts("'m'", "complete=True", "1 scored rows")):
        counted(COUNTS.head(2))


@pytest.mark.parametrize(("column", "value"), [("above", -1), ("tied", 0), ("above", 0.5), ("tied", 1.5)])
def test_counts_that_cannot_be_are_refused(column, value):
    odd = COUNTS.with_columns(pl.Series(column, [value, *COUNTS[column][1:]], pl.Float64))
    with pytest.raises(PredictionError, match=facts("'m'", "'above'", "'tied'", 1)):
        counted(odd)


def test_counts_need_both_columns():
    with pytest.raises(ColumnError, match=facts("'m'", "'tied'", "'above'")):
        table(COUNTS.drop("tied"))
    assert table(COUNTS.drop("tied").with_columns(score=1.0)).counts == []


def test_counts_beside_the_rows_of_the_log_serve_too():
    own = ModelTable(model="own", above="h", tied="e")
    frame = nw.from_native(ROWS.with_columns(**{"log:h": pl.Series([0, 1, 3]), "log:e": pl.Series([1, 2, 3])})).lazy()
    asked = Question(metrics=["dcg"], estimators=["naive"], complete=True)
    assert columns(with_ranks(frame, [(own, own)], asked, None), "h0", "e0") == [[0.0, 1.0, 3.0], [1.0, 2.0, 3.0]]
