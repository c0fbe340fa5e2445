"""Models as frames: which columns are theirs, what text writes, and one query that finds what is wrong."""

from __future__ import annotations

from dataclasses import replace

import narwhals as nw
import polars as pl
import pytest

from openloop.errors import ColumnError, DuplicateError, PredictionError
from openloop.sources.frames import collecting
from openloop.sources.frames.model_tables import number_facts, of_frame, of_log, refuse_repeats
from openloop.sources.frames.opening import opened
from tests.engines import EAGER, converter

LIST = pl.DataFrame({"user": [1, 1, 2], "item": [1, 2, 1], "rank": [1, 7, 1], "prediction": [0.5, 0.4, 0.3]})


def table(frame, into=lambda frame: frame):
    return of_frame("m", replace(opened("model 'm'", into(frame)), ids=("user", "item")), (None, None), {})


@pytest.mark.parametrize("engine", EAGER)
def test_a_list_knows_its_depth(engine):
    found = table(LIST, converter(engine))
    assert (found.score, found.rank, found.check()) == ("prediction", "rank", 7)
    assert found.frame.collect_schema().names() == ["u", "i", "prediction", "rank"]


def test_a_table_is_asked_once(monkeypatch):
    found, asked = table(LIST), []
    plain = collecting.exact_tally
    monkeypatch.setattr(collecting, "exact_tally", lambda *given, **more: asked.append(1) or plain(*given, **more))
    assert {found.check() for _ in range(3)} == {7}
    assert len(asked) == 1


def test_a_table_of_scores_has_no_depth():
    assert table(LIST.drop("rank")).check() is None


@pytest.mark.parametrize("engine", EAGER)
def test_text_is_read_as_numbers_and_words_are_kept(engine):
    words = LIST.drop("rank").with_columns(prediction=pl.Series([" 1e1", "high", None]))
    found = table(words, converter(engine))
    counted = number_facts(found.frame, ["prediction"], ["prediction"], None)
    assert counted == {"rows": 3, "gone:prediction": 2, "words:prediction": 1}
    with pytest.raises(PredictionError, match=r"'m': column 'prediction' holds text in 1 of 3 rows.* 'high'"):
        found.check()


def test_models_may_be_columns_of_the_log():
    log = opened("the log", LIST)
    assert (of_log("m", "prediction", log).score, of_log("m", {"rank": "rank"}, log).rank) == ("prediction", "rank")
    with pytest.raises(ColumnError, match=r"the log: no column 'predictio' for score=.*'prediction'"):
        of_log("m", "predictio", log)


def test_pairs_that_repeat_are_counted_once_each():
    rows = pl.DataFrame({"u": [1, 1, 1, 2, 2], "i": ["a", "a", "a", "b", "b"]})
    with pytest.raises(DuplicateError, match=r"the log: 2 .* \(1, 'a'\), \(2, 'b'\)"):
        refuse_repeats("the log", nw.from_native(rows).lazy())
    refuse_repeats("the log", nw.from_native(rows.unique()).lazy())
