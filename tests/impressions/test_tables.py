"""Tables of rankers: lists of requests and users by rank or score, probabilities, and what is refused."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from openloop.core.impressions import Impressions
from openloop.errors import ColumnError, PredictionError, UnknownIdError
from openloop.impressions.question import ShownQuestion
from openloop.impressions.tables import ranked_lists, read_table, row_probabilities
from tests.facts import facts


def shown():
    """Requests 0 and 1 of users 7 and 8, who see items 10, 11 and 12, 10."""
    from openloop.core.feedback import Vocabulary

    return Impressions.from_arrays(
        request=[0, 0, 1, 1], position=[1, 2, 1, 2], item=[0, 1, 2, 0], reward=[0.0, 1, 0, 0], user=[0, 0, 1, 1],
        users=Vocabulary.of([7, 8]), items=Vocabulary.of([10, 11, 12]),
    )  # fmt: skip


def lists(frame, depth=None, log=None, **asked):
    log = shown() if log is None else log
    return ranked_lists(read_table("model 'a'", frame, log, ShownQuestion(**asked)), log.n_items, depth)


def test_ranks_of_users_and_requests():
    by_user = pl.DataFrame({"user": [7, 7, 8, 8, 9], "item": [11, 10, 10, 99, 10], "rank": [1, 2, 1, 2, 1]})
    found = lists(by_user)
    assert found.lists.tolist() == [[1, 0], [0, 3]]  # 3: an item that the log never showed; user 9 is not of the log
    assert found.key.tolist() == [0, 1]
    by_request = pl.DataFrame({"request": [1, 0, 0], "item": [12, 10, 12], "rank": [1, 3, 1]})
    assert lists(by_request).lists.tolist() == [[2, -1, 0], [2, -1, -1]]
    assert lists(by_request, depth=1).lists.tolist() == [[2], [2]]
    named = by_user.rename({"user": "who", "item": "what"})
    assert lists(named, user="who", item="what").lists.tolist() == [[1, 0], [0, 3]]
    assert lists(by_user.rename({"rank": "position"})).lists.tolist() == [[1, 0], [0, 3]]
    odd = by_user.rename({"rank": "at"}).with_columns(score=0.0)
    assert lists(odd, rank="at").lists.tolist() == [[1, 0], [0, 3]]


def test_scores_are_sorted_and_equal_ones_keep_the_order_of_items():
    scores = pl.DataFrame({"user": [7, 7, 7, 8], "item": [12, 11, 10, 11], "score": [0.5, 0.9, 0.5, 0.1]})
    assert lists(scores).lists.tolist() == [[1, 0, 2], [1, -1, -1]]


@pytest.mark.parametrize(
    ("frame", "error", "told"),
    [
        ({"user": [7], "item": [10], "rank": [1]}, PredictionError, ("'a'", "1 of 2", "no list", 8)),
        ({"user": [7, 7, 8], "item": [10, 11, 10], "rank": [1, 1, 1]}, PredictionError, ("ranks", "within each user")),
        ({"user": [7, 8], "item": [10, 10], "rank": [1, 0]}, PredictionError, ("ranks", "starting at 1")),
        ({"user": [7, 8], "item": [10, 10], "rank": [1.0, 1.5]}, PredictionError, ("ranks",)),
        ({"user": [7, 7, 8], "item": [10, 10, 10], "rank": [1, 2, 1]}, PredictionError, ("more than once",)),
        ({"user": [7, 8], "item": [10, 10], "score": [1.0, np.nan]}, PredictionError, ("'score'", "1 of 2")),
        ({"user": [7, 8], "item": [10, 10], "rank": ["a", "b"]}, PredictionError, ("'rank'", "numbers")),
        ({"user": [1, 2], "item": [10, 10], "rank": [1, 1]}, UnknownIdError, ("users", 1, 2)),
        ({"user": [7, 8], "item": [1, 2], "rank": [1, 1]}, UnknownIdError, ("items", 1, 2)),
        ({"user": ["7", "8"], "item": [10, 10], "rank": [1, 1]}, UnknownIdError, ("integers", "text")),
        ({"user": [7, 8], "item": [10, 10]}, ColumnError, ("'score'", "'rank'")),
        ({"user": [7, 8], "item": [10, 10], "probability": [1, 1]}, ColumnError, ("'position'",)),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_what_is_no_list(frame, error, told):
    with pytest.raises(error, match=facts(*told)):
        lists(pl.DataFrame(frame))


def test_empty_tables_and_other_things():
    with pytest.raises(PredictionError, match=facts("no rows")):
        lists(
            pl.DataFrame({"user": [], "item": [], "rank": []}, schema=dict.fromkeys(("user", "item", "rank"), pl.Int64))
        )
    with pytest.raises(PredictionError, match=facts("int", "ranker")):
        lists(5)


def test_a_log_without_users_or_requests_has_no_lists_of_them():
    log = Impressions.from_arrays(item=[0, 1], position=[1, 2], reward=[0.0, 1])
    for side in ("user", "request"):
        with pytest.raises(PredictionError, match=facts(f"{side}s", "none")):
            lists(pl.DataFrame({side: [0], "item": [0], "rank": [1]}), log=log)


def test_probabilities_at_every_position():
    table = {"user": [7, 7, 7, 8, 8], "item": [10, 11, 10, 10, 12], "position": [1, 1, 2, 2, 1]}
    frame = pl.DataFrame(table | {"probability": [0.25, 0.75, 0.5, 1.0, 0.4]})
    rows = read_table("model 'a'", frame, shown(), ShownQuestion())
    assert row_probabilities(rows, shown()).tolist() == [[0.25, 0.5], [0.75, 0], [0.4, 0], [0, 1]]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"probability": [0.5, 0.6]}, ("user 7", "position 1", 1.1)),
        ({"probability": [0.5, -0.1]}, ("[0, 1]",)),
        ({"position": [0, 1]}, ("positions",)),
        ({"item": [10, 10], "probability": [0.1, 0.2]}, ("two probabilities", "position 1")),
    ],
    ids=["sum", "negative", "position", "twice"],
)
def test_what_is_no_distribution(changes, told):
    table = {"user": [7, 7], "item": [10, 11], "position": [1, 1], "probability": [0.5, 0.5]} | changes
    rows = read_table("model 'a'", pl.DataFrame(table), shown(), ShownQuestion())
    with pytest.raises(PredictionError, match=facts(*told)):
        row_probabilities(rows, shown())
