"""Impressions sort, check and remember; a request has one user and no position twice."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from openloop.core.impressions import Impressions
from openloop.data.click_worlds import click_world
from openloop.errors import (
    AlignmentError,
    DuplicateError,
    EmptyError,
    InputError,
    PropensityError,
    RatingError,
    UndefinedError,
    UnknownIdError,
)
from tests.facts import facts


def shown(**changes):
    """Two requests of users 1 and 0: items 5, 3 and 4, 5, 3; out of order."""
    columns = {
        "request": [1, 0, 1, 0, 1], "position": [2, 1, 1, 2, 3], "item": [5, 5, 4, 3, 3],
        "reward": [1.0, 0.0, 0.0, 0.5, 1.0], "user": [0, 1, 0, 1, 0],
    }  # fmt: skip
    return Impressions.from_arrays(**(columns | changes))


def test_rows_are_sorted_by_request_and_position_and_remember_their_place():
    log = shown()
    assert log.request.tolist() == [0, 0, 1, 1, 1]
    assert log.position.tolist() == [1, 2, 1, 2, 3]
    assert log.item.tolist() == [5, 3, 4, 5, 3]
    assert log.row.tolist() == [1, 3, 2, 0, 4]
    assert log.user is not None
    assert log.user.tolist() == [1, 0]
    assert (log.n_requests, log.depth, log.request_ptr.tolist()) == (2, 3, [0, 2, 5])


def test_exposure_gives_the_propensity_and_prefix_the_slate():
    exposure = np.arange(1, 16).reshape(5, 3) / 20
    log = shown(exposure=exposure, prefix=[0.3, 0.5, 0.4, 0.2, 0.1])
    assert log.propensity.tolist() == [exposure[1, 0], exposure[3, 1], exposure[2, 0], exposure[0, 1], exposure[4, 2]]
    assert log.slate.tolist() == [0.2, 0.1]
    assert shown(propensity=log.propensity[[3, 0, 2, 1, 4]], exposure=exposure).propensity.tolist() == (
        log.propensity.tolist()
    )


def test_gaps_in_positions_are_told():
    assert shown().whole
    assert not shown(position=[2, 1, 1, 3, 3]).whole
    assert not shown(position=[3, 2, 2, 3, 4]).whole


# -- as positives --------------------------------------------------------------------------------------------


def test_a_click_counts_as_many_as_were_not_examined_at_its_position():
    log = Impressions.from_arrays(
        request=[0, 0, 1, 1, 2], position=[1, 2, 1, 2, 2], item=[3, 1, 1, 3, 3], reward=[1, 1, 0, 1, 1],
        user=[0, 0, 0, 0, 1], time=[5, 5, 6, 6, 7],
    )  # fmt: skip
    clicks = log.to_feedback(np.array([2.0, 0.5]))  # θ_max/θ is 1 and 4
    assert (clicks.user.tolist(), clicks.item.tolist()) == ([0, 0, 1], [1, 3, 3])
    assert clicks.weight.tolist() == [4.0, 1.0 + 4.0, 4.0]
    assert (clicks.rating.tolist(), clicks.positives, clicks.time.tolist()) == ([1, 1, 1], True, [5, 5, 7])
    assert (clicks.row.tolist(), clicks.input_rows, clicks.n_items) == ([1, 0, 4], 5, 4)


def test_the_whole_weight_of_clicks_is_that_of_shuffled_lists_read_in_full():
    world = click_world(3000, shuffle=1.0)
    log = world.observe(rng=0)
    clicks = log.to_feedback(SimpleNamespace(theta_=world.theta))
    at_first = np.zeros((log.n_clusters, log.n_items))
    np.add.at(at_first, (log.user[log.request], log.item), 1.0)  # how often each pair was shown
    expected = float((at_first * world.attraction(log.users.ids)).sum())  # clicks if every position were the first
    assert clicks.weight.sum() == pytest.approx(expected, rel=0.03)
    assert log.reward.sum() < 0.7 * expected


@pytest.mark.parametrize(
    ("changes", "theta", "error", "told"),
    [
        ({"user": None}, [1, 1, 1], UndefinedError, ("to_feedback", "users")),
        ({}, [1, 1], InputError, ("θ", 3)),
        ({}, [1, 0, 1], InputError, ("θ", 3)),
        ({"reward": [0, 0, 0, 0, 0]}, [1, 1, 1], EmptyError, ("to_feedback", "reward")),
    ],
)
def test_without_users_examination_or_clicks_there_are_no_positives(changes, theta, error, told):
    with pytest.raises(error, match=facts(*told)):
        shown(**changes).to_feedback(theta)


# -- refusals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "error", "told"),
    [
        ({"position": [2, 1, 0, 2, 3]}, InputError, ("row 3", 0, 1)),
        ({"position": [2, 1, 2, 2, 3]}, DuplicateError, ("rows 1, 3", "position 2")),
        ({"reward": [1.0, np.nan, 0, 0, 0]}, RatingError, ("row 2", 1)),
        ({"reward": [1.0, 0, 0, 0, -2.5]}, RatingError, ("row 5", -2.5)),
        ({"user": [0, 1, 0, 2, 0]}, InputError, ("user", "rows 2, 4", 1, 2)),
        ({"slate": [0.1, 0.2, 0.1, 0.3, 0.1]}, InputError, ("slate", 0.2, 0.3)),
        ({"propensity": [1, 1, 0, 1, 1]}, PropensityError, ("propensity", 1, 5, "row 3")),
        ({"slate": [1.5, 0.5, 1.5, 0.5, 1.5]}, PropensityError, ("slate", 1.5, "row 3")),
        ({"exposure": [[0.5, 0.5]] * 5}, AlignmentError, ("exposure", "(5, 2)", 3)),
        ({"exposure": [[0.5, 0.5, -0.1]] * 5}, PropensityError, ("exposure", 5)),
        (
            {"exposure": [[0.5, 0.5, 0.5]] * 5, "propensity": [0.5, 0.5, 0.4, 0.5, 0.5]},
            PropensityError,
            ("exposure", 0.4, "row 3"),
        ),
        ({"arms": [1, 2, 3, 4, 5]}, AlignmentError, ("arms", "(5,)")),
        ({"arms": [[1], [2], [-1], [1], [1]]}, InputError, ("arms", "row 3")),
        ({"pool": [2, 2, 2, 2, 2]}, InputError, ("pool", 2, "row 3")),
        ({"item": [5, 5, 4, 3, 9], "items": 6}, UnknownIdError, ("item", 5, 9)),
        ({"item": [5.0, 5, 4, 3, 3]}, InputError, ("item", "float64")),
        ({"item": [2**40, 5, 4, 3, 3]}, InputError, ("item", 2**40)),
        ({"request": [2, 0, 2, 0, 2]}, InputError, ("request", 0, 2)),
        ({"requests": 3}, AlignmentError, (3, 2)),
        ({"reward": [1.0]}, AlignmentError, ("reward", 1, 5)),
        ({"request": [], "position": [], "item": [], "reward": [], "user": []}, EmptyError, ("no rows",)),
    ],
)
def test_what_cannot_be_is_named(changes, error, told):
    with pytest.raises(error, match=facts(*told)):
        shown(**changes)
