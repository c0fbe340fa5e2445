"""Predicted ratings beside a log frame: one query counts what is missing, for all models."""

from __future__ import annotations

from dataclasses import replace

import narwhals as nw
import polars as pl
import pytest

from openloop.errors import PredictionError
from openloop.sources.frames.model_tables import ModelTable, of_frame
from openloop.sources.frames.opening import opened
from openloop.sources.frames.predicting import with_predictions
from openloop.sources.question import Question
from openloop.support import frames

ROWS = pl.DataFrame({"u": [1, 1, 2], "i": [1, 2, 1], "y": [5.0, 1.0, 4.0], "log:own": [3.0, None, 3.0]})
SCORES = pl.DataFrame({"user": [1, 1, 2], "item": [1, 2, 1], "score": [4.0, 2.0, 4.0]})


def table(frame, name="m"):
    return of_frame(name, replace(opened(f"model {name!r}", frame), ids=("user", "item")), (None, None), {})


def predicted(*tables, **options):
    asked = Question(**({"metrics": ["mae"], "estimators": ["naive"]} | options))
    return with_predictions(nw.from_native(ROWS).lazy(), tables, asked)


def test_scores_are_joined_under_the_models_position():
    found = predicted(table(SCORES), table(SCORES.with_columns(pl.col("score") + 1)))
    rows = found.frame.collect().sort("u", "i")
    assert rows["s0"].to_list() == [4.0, 2.0, 4.0]
    assert rows["s1"].to_list() == [5.0, 3.0, 5.0]
    assert (found.dropped, found.notes) == (0, [])


def test_nothing_is_joined_for_rankings():
    found = predicted(table(SCORES), metrics=["recall@1"])
    assert "s0" not in found.frame.collect_schema().names()


def test_gaps_of_all_models_are_counted_by_one_query(monkeypatch):
    tables = [table(SCORES.head(2)), table(SCORES.tail(2), "n")]
    for one in tables:
        one.check()
    asked, plain = [], frames.collected
    monkeypatch.setattr(frames, "collected", lambda frame: asked.append(1) or plain(frame))
    found = predicted(*tables, missing="drop")
    assert len(asked) == 1
    assert found.dropped == 2
    assert found.frame.collect()["u"].to_list() == [1]
    assert "m 1, n 1" in found.notes[0]


def test_a_column_of_the_log_may_lack_rows_too():
    own = ModelTable(model="own", score="own")
    with pytest.raises(PredictionError, match=r"'own': no prediction for 1 of 3 scored rows.* users 1;"):
        predicted(own)
    assert predicted(own, missing="worst").frame.collect().sort("u", "i")["s0"].to_list() == [3.0, 5.0, 3.0]


def test_a_list_or_a_lenient_question_judges_no_ratings_and_keeps_what_some_rows_are_predicted():
    listed = table(SCORES.head(2).with_columns(rank=pl.Series([1, 2])))
    for found in (predicted(listed), predicted(table(SCORES.head(2)), lenient=True)):
        assert not found.coverage[0].predicted
        assert found.frame.collect()["s0"].to_list().count(None) == 1
