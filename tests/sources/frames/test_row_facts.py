"""Facts about joined rows: what is refused, in words that name the column, and what is only asked for when needed."""

from __future__ import annotations

from contextlib import ExitStack

import polars as pl
import pytest

from openloop.errors import EmptyError, PropensityError, RatingError
from openloop.sources.frames import collecting
from openloop.sources.frames.joining import join
from openloop.sources.frames.row_facts import RowFacts
from openloop.sources.question import Question
from tests.facts import facts

ROWS = pl.DataFrame({"user": [0, 0, 1], "item": [3, 4, 9], "rating": [5.0, 4.0, 1.0], "p": [0.5, 0.2, 0.9]})
ASKED = Question(metrics=["mae"], estimators=["ips", "stratified@2"], distinct=True)


def of(frame):
    own = frame.with_columns(own=pl.lit(3.0))
    return RowFacts(join({"m": "own"}, own, "p", ASKED, ExitStack()), ASKED)


@pytest.mark.parametrize(
    ("change", "error", "told"),
    [
        ({"rating": float("inf")}, RatingError, ("3 of 3", "'rating'")),
        ({"p": 1.5}, PropensityError, ("3 of 3", "(0, 1]", "'p'")),
    ],
)
def test_what_may_not_be_summed_is_refused_by_column(change, error, told):
    found = of(ROWS.with_columns(**{name: pl.lit(value) for name, value in change.items()}))
    with pytest.raises(error, match=facts(*told)):
        found.refuse()


def test_no_rows_are_refused():
    found = of(ROWS.head(0))
    with pytest.raises(EmptyError):
        found.refuse()


def test_items_span_a_range():
    assert of(ROWS).spanned_items() == 7
    assert of(ROWS.with_columns(pl.col("item").cast(pl.String))).spanned_items() is None


def test_weights_are_summed_once_for_each_kind_of_rows(monkeypatch):
    found, asked, plain = of(ROWS), [], collecting.exact_tally
    monkeypatch.setattr(collecting, "exact_tally", lambda *given, **more: asked.append(1) or plain(*given, **more))
    frame = found._joined.frame
    totals = [found.weights(kind, "w", frame).total for kind in ("cell", "user", "cell", "user")]
    assert totals == pytest.approx([2 + 5 + 1 / 0.9] * 4)
    assert len(asked) == 2
