"""What streamed tables must not hold is told as `read` tells it."""

from __future__ import annotations

import polars as pl
import pytest

from openloop.commands.audit.scan_repeats import ScannedLog, StreamedLogs, check_numbers
from openloop.errors import DuplicateError, PredictionError
from openloop.sources.frames.parting import WHOLE
from tests.facts import facts

TWICE = pl.DataFrame({"user": [3, 1, 3, 1], "item": [2, 5, 2, 7]}).lazy()
ONCE = TWICE.unique()


def logs_of(**frames):
    """Logs that are one range of users."""
    return {"logs": [ScannedLog(f"{name}.csv", rows, rows) for name, rows in frames.items()], "parts": WHOLE}


def test_the_first_log_with_a_pair_twice_is_named_with_its_rows():
    logs = StreamedLogs(**logs_of(log=ONCE, train=TWICE))
    with pytest.raises(DuplicateError, match=facts("train.csv", "1 (user, item) pairs", "(3, 2)", "rows 1, 3")):
        logs.refuse_repeats()
    StreamedLogs(**logs_of(log=ONCE)).refuse_repeats()


def test_excluded_rows_are_looked_at_where_fewer_pairs_are_left():
    logs = StreamedLogs(**logs_of(train=TWICE), excluded=4)
    logs.check_excluded(4)
    logs.check_excluded(None)
    with pytest.raises(DuplicateError):
        logs.check_excluded(3)


@pytest.mark.parametrize(("score", "told"), [([1.0, None], ("not finite", "user 1")), (["1", "x"], ("text", "'x'"))])
def test_scores_are_numbers(score, told):
    rows = pl.DataFrame({"user": [0, 1], "item": [0, 0], "score": score}).lazy()
    with pytest.raises(PredictionError, match=facts("model 'a'", *told)):
        check_numbers("a", "model 'a' (a.csv)", rows)
    check_numbers("a", "model 'a' (a.csv)", rows.head(1))
