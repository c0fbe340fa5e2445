"""Tables of rankers: lists of requests and users by rank or score, probabilities, and what is refused."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from openloop.core.impressions import Impressions
from openloop.errors import ColumnError, PredictionError, UnknownIdError
from openloop.impressions.question import ShownQuestion
from openloop.impressions.source import ShownSource
from tests.facts import facts


def shown():
    """Requests 0 and 1 of users 7 and 8, who see items 10, 11 and 12, 10."""
    from openloop.core.feedback import Vocabulary

    return Impressions.from_arrays(
        request=[0, 0, 1, 1], position=[1, 2, 1, 2], item=[0, 1, 2, 0], reward=[0.0, 1, 0, 0], user=[0, 0, 1, 1],
        users=Vocabulary.of([7, 8]), items=Vocabulary.of([10, 11, 12]),
    )  # fmt: skip


def ranks(frame, log=None, **asked):
    """The rank of each row."""
    source = ShownSource({"a": frame}, shown() if log is None else log, None, ShownQuestion(**asked))
    source.reduce([])
    return source.row_ranks()["a"].tolist()


def test_ranks_of_users_and_requests():
    by_user = pl.DataFrame({"user": [7, 7, 8, 8, 9], "item": [11, 10, 10, 99, 10], "rank": [1, 2, 1, 2, 1]})
    assert ranks(by_user) == [2, 1, 0, 1]  # nothing is known of item 99, and user 9 is not of the log
    by_request = pl.DataFrame({"request": [1, 0, 0], "item": [12, 10, 12], "rank": [1, 2, 1]})
    assert ranks(by_request) == [2, 0, 1, 0]
    assert ranks(by_request, metrics="dcg") == [2, 0, 1, 0]
    named = by_user.rename({"user": "who", "item": "what"})
    assert ranks(named, columns={"user": "who", "item": "what"}) == [2, 1, 0, 1]
    assert ranks(by_user.rename({"rank": "position"})) == [2, 1, 0, 1]
    odd = by_user.rename({"rank": "at"}).with_columns(score=0.0)
    assert ranks(odd, columns={"rank": "at"}) == [2, 1, 0, 1]


def test_only_dcg_looks_below_the_positions_of_the_log():
    deep = pl.DataFrame({"user": [7, 7, 7, 8], "item": [12, 99, 10, 10], "rank": [1, 2, 3, 1]})
    assert ranks(deep) == [0, 0, 0, 1]
    assert ranks(deep, metrics="dcg") == [3, 0, 0, 1]


def test_scores_are_sorted_and_equal_ones_keep_the_order_of_items():
    scores = pl.DataFrame({"user": [7, 7, 7, 8], "item": [12, 11, 10, 12], "score": [0.5, 0.9, 0.5, 0.1]})
    assert ranks(scores) == [2, 1, 1, 0]


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
        ({"user": [1, 2], "item": [10, 10], "rank": [1, 1]}, PredictionError, ("'a'", "2 of 2", "no list", 7)),
        ({"user": [7, 8], "item": [1, 2], "rank": [1, 1]}, UnknownIdError, ("'a'", "items")),
        ({"user": ["7", "8"], "item": [10, 10], "rank": [1, 1]}, UnknownIdError, ("integers", "text")),
        ({"user": [7, 8], "item": [10, 10]}, ColumnError, ("'score'", "'rank'")),
        ({"user": [7, 8], "item": [10, 10], "probability": [1, 1]}, ColumnError, ("'position'",)),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_what_is_no_list(frame, error, told):
    with pytest.raises(error, match=facts(*told)):
        ranks(pl.DataFrame(frame))


def test_empty_tables_and_other_things():
    with pytest.raises(PredictionError, match=facts("no rows")):
        ranks(
            pl.DataFrame({"user": [], "item": [], "rank": []}, schema=dict.fromkeys(("user", "item", "rank"), pl.Int64))
        )
    with pytest.raises(PredictionError, match=facts("int", "ranker")):
        ranks(5)


def test_a_log_without_users_or_requests_has_no_lists_of_them():
    log = Impressions.from_arrays(item=[0, 1], position=[1, 2], reward=[0.0, 1])
    for side in ("user", "request"):
        with pytest.raises(PredictionError, match=facts(f"{side}s", "none")):
            ranks(pl.DataFrame({side: [0], "item": [0], "rank": [1]}), log=log)


def test_weights_by_probabilities_at_every_position():
    table = {"user": [7, 7, 7, 8, 8], "item": [10, 11, 10, 10, 12], "position": [1, 1, 2, 2, 1]}
    frame = pl.DataFrame(table | {"probability": [0.25, 0.75, 0.5, 1.0, 0.4]})
    source = ShownSource({"a": frame}, shown(), [1.0, 0.5], ShownQuestion(estimators="pbm"))
    wanted = [[0.25 + 0.5 * 0.5, 0.75 / 0.5], [0.4, 0.5 * 1 / 0.5]]  # Σθ_jπ_j/θ_k
    assert source.moments("a", "pbm").weight.tolist() == wanted


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
    with pytest.raises(PredictionError, match=facts(*told)):
        ranks(pl.DataFrame(table))
