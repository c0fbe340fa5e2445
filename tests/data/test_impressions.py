"""Logs with positions come in from tables and files, and what is wrong in them is told with its rows."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.data.click_worlds import click_world
from openloop.data.reading import read
from openloop.errors import (
    AlignmentError,
    ColumnError,
    DuplicateError,
    EmptyError,
    InputError,
    PropensityError,
    RatingError,
)
from tests.facts import facts

# Two requests of ann and bob, out of order; bob sees heat in both lists of his.
SHOWN = pl.DataFrame({
    "request_id": ["r2", "r1", "r2", "r1", "r3"],
    "user_id": ["bob", "ann", "bob", "ann", "bob"],
    "item_id": [30, 10, 10, 20, 10],
    "pos": [2, 1, 1, 2, 1],
    "click": [True, False, False, True, False],
    "p": [0.5, 0.4, 0.3, 0.2, 0.1],
    "p1": [0.1, 0.4, 0.3, 0.7, 0.1],
    "p2": [0.5, 0.3, 0.3, 0.2, 0.2],
    "down": [0.25, 0.4, 0.5, 0.125, 0.1],
    "mixed": [1, 0, 1, 0, 1],
    "of": [9, 8, 9, 8, 9],
    "rank_a": [2, 1, 1, 2, 0],
    "rank_b": [1, 2, 2, 1, 1],
    "at": [3, 1, 3, 1, 2],
})  # fmt: skip
EVERYTHING = {
    "propensity": "p", "exposure": ["p1", "p2"], "prefix": "down", "shuffled": "mixed", "pool": "of",
    "arms": ["rank_a", "rank_b"], "time": "at",
}  # fmt: skip


def broken(column: str, values: list) -> pl.DataFrame:
    return SHOWN.with_columns(pl.Series(column, values, strict=False))


# -- by hand -------------------------------------------------------------------------------------------------


def test_positions_make_impressions_with_all_their_columns():
    log = read(SHOWN, position="pos", **EVERYTHING)
    assert isinstance(log, ol.Impressions)
    assert (log.requests.ids.tolist(), log.users.ids.tolist()) == (["r1", "r2", "r3"], ["ann", "bob"])
    assert log.items.ids.tolist() == [10, 20, 30]
    assert log.request.tolist() == [0, 0, 1, 1, 2]
    assert log.position.tolist() == [1, 2, 1, 2, 1]
    assert log.item.tolist() == [0, 1, 0, 2, 0]
    assert log.reward.tolist() == [0, 1, 0, 1, 0]
    assert log.row.tolist() == [1, 3, 2, 0, 4]
    assert log.propensity.tolist() == [0.4, 0.2, 0.3, 0.5, 0.1]
    assert log.exposure.tolist() == [[0.4, 0.3], [0.7, 0.2], [0.3, 0.3], [0.1, 0.5], [0.1, 0.2]]
    assert log.prefix.tolist() == [0.4, 0.125, 0.5, 0.25, 0.1]
    assert log.arms.tolist() == [[1, 2], [2, 1], [1, 2], [2, 1], [0, 1]]
    assert log.time.tolist() == [1, 1, 3, 3, 2]
    assert (log.user.tolist(), log.slate.tolist()) == ([0, 1, 1], [0.125, 0.25, 0.1])
    assert (log.shuffled.tolist(), log.pool.tolist()) == ([False, True, True], [8, 9, 9])
    assert [values.dtype.itemsize for values in (log.request, log.position, log.item, log.arms, log.row)] == [4] * 4 + [
        8
    ]


def test_without_requests_each_row_is_one_and_without_users_there_are_none():
    bare = SHOWN.select("item_id", "pos", "click")
    log = read(bare, position="pos")
    assert (log.requests, log.users, log.n_requests, log.n_clusters) == (None, None, 5, 5)
    assert log.row.tolist() == [0, 1, 2, 3, 4]
    said = read(SHOWN, position="pos", request=False, user=False)
    assert said.fingerprint == log.fingerprint


def test_a_log_written_out_and_read_again_is_the_same(tmp_path):
    log = click_world(60, logging="two-rankers", shuffle=0.3).observe(rng=0)
    per_request = {"user": log.users.ids[log.user], "slate": log.slate, "shuffled": log.shuffled, "pool": log.pool}
    frame = pl.DataFrame({
        "request": log.request, "position": log.position, "item": log.item, "reward": log.reward, "p": log.propensity,
        **{name: values[log.request] for name, values in per_request.items()},
        **{f"p{j}": log.exposure[:, j] for j in range(3)}, **{f"arm{j}": log.arms[:, j] for j in range(2)},
        "prefix": log.prefix, "time": log.time,
    })  # fmt: skip
    frame.sample(fraction=1, shuffle=True, seed=1).write_parquet(tmp_path / "shown.parquet")
    again = read(
        tmp_path / "shown.parquet", position="position", propensity="p", exposure=["p0", "p1", "p2"], prefix="prefix",
        slate="slate", shuffled="shuffled", pool="pool", arms=["arm0", "arm1"], time="time",
    )  # fmt: skip
    assert again.fingerprint == log.fingerprint
    for name in ("propensity", "exposure", "prefix", "slate", "shuffled", "pool", "arms", "time", "user"):
        np.testing.assert_array_equal(getattr(again, name), getattr(log, name), err_msg=name)
    assert again.users == log.users


# -- refusals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("frame", "error", "told"),
    [
        (broken("pos", [2, 1, 0, 2, 1]), InputError, ("pos", 0, "row 3", "count from 1")),
        (broken("pos", [1, 1, 1, 2, 1]), DuplicateError, ("rows 1, 3", "position 1")),
        (broken("click", [1.0, 0, -1, 0, 0]), RatingError, ("click", -1.0, "row 3")),
        (broken("click", ["yes", "0", "1", "0", "0"]), RatingError, ("click", "'yes'", "row 1")),
        (broken("user_id", ["bob", "ann", "ann", "ann", "bob"]), InputError, ("user", "rows 3, 1")),
        (broken("p", [0.5, 0.4, 0.0, 0.2, 0.1]), PropensityError, ("p", 0.0, "row 3")),
        (broken("mixed", [1, 0, 0, 0, 1]), InputError, ("shuffled", "rows 3, 1")),
        (broken("of", [1, 8, 1, 8, 9]), InputError, ("pool", 1, "row 3")),
        (broken("rank_a", [2, 1, -1, 2, 0]), InputError, ("rank_a", -1, "row 3")),
        (SHOWN.head(0), EmptyError, ("no rows",)),
    ],
)
def test_bad_input_is_told_with_its_rows(frame, error, told):
    with pytest.raises(error, match=facts(*told)):
        read(frame, position="pos", **EVERYTHING)


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"position": "pos", "rating": "click"}, InputError, ("rating=", "position=")),
        ({"reward": "click"}, InputError, ("reward=", "position=")),
        ({"position": "pos", "shufled": "mixed"}, InputError, ("shufled", "'shuffled'")),
        ({"position": "poss"}, ColumnError, ("poss", "'pos'")),
        ({"position": "pos", "exposure": "p1"}, ColumnError, ("exposure", "'p1'")),
        ({"position": "pos", "exposure": ["p1"]}, AlignmentError, ("exposure", 2)),
        ({"position": "pos", "reward": "pos"}, ColumnError, ("reward", "position", "'pos'")),
    ],
)
def test_keywords_that_do_not_go_together_are_refused(options, error, told):
    with pytest.raises(error, match=facts(*told)):
        read(SHOWN, **options)
