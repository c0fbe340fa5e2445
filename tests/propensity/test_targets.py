"""Targets of balancing: groups by rating, by a column of users or items, and functions of rows."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.core.covariates import Covariates
from openloop.core.feedback import Feedback
from openloop.core.levels import LevelSample
from openloop.errors import BalanceError, InputError
from openloop.propensity.cell_means import CellMeans
from openloop.propensity.targets import level_shares, margins_of, means_of, moved, refuse_unreached
from tests.facts import facts

LOG = Feedback.from_arrays([0, 0, 1, 2], [0, 1, 1, 0], [1, 5, 5, 3], users=3, items=2)
USERS = Covariates(values=[[1, 0, 2.5], [0, 1, 0], [1, 0, 1]], names=("sex=f", "sex=m", "age"), ids=LOG.users)
ITEMS = Covariates(values=[[0, 1], [1, 0]], names=("kind=book", "kind=film"), ids=LOG.items)


def test_levels_are_groups_by_rating_and_absent_ones_have_no_share():
    sample = LevelSample(levels=np.array([1.0, 3.0, 4.0, 5.0]), shares=np.array([0.4, 0.3, 0.2, 0.1]), size=9, rows=4.0)
    found = level_shares(sample, np.array([True, True, False, True]))
    assert found.names == ("rating 1", "rating 3", "rating 4", "rating 5")
    np.testing.assert_allclose(found.means, [0.4, 0.4, 0, 0.2])
    np.testing.assert_array_equal(found.columns(LOG), [[1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 1], [0, 1, 0, 0]])
    np.testing.assert_allclose(found.tilt(LOG, np.array([1.0, 2.0, 3.0, 4.0])), [1, 4, 4, 2])


def test_margins_are_found_on_their_side_and_in_the_order_given():
    sex, kind = margins_of({"sex": {"m": 0.4, "f": 0.6}, "kind": {"film": 0.9, "book": 0.1}}, USERS, ITEMS)
    assert (sex.names, sex.means.tolist()) == (("sex=m", "sex=f"), [0.4, 0.6])
    np.testing.assert_array_equal(sex.columns(LOG), [[0, 1], [0, 1], [1, 0], [0, 1]])
    np.testing.assert_array_equal(kind.columns(LOG), [[1, 0], [0, 1], [0, 1], [1, 0]])
    mu = np.array([0.3, -0.2])
    np.testing.assert_allclose(kind.tilt(LOG, mu), kind.columns(LOG) @ mu)


def test_a_function_is_asked_for_the_rows():
    (found,) = means_of({"rating of user 0": (lambda user, _item, rating: rating * (user == 0), 2.0)})
    np.testing.assert_array_equal(found.columns(LOG), [[1], [5], [0], [0]])
    np.testing.assert_allclose(found.tilt(LOG, np.array([0.5])), [0.5, 2.5, 0, 0])
    assert (found.names, found.means.tolist()) == (("rating of user 0",), [2.0])


@pytest.mark.parametrize(
    ("margins", "told"),
    [
        ({"sex": {"m": 0.4, "f": 0.5}}, ("margins['sex']", 0.9)),
        ({"sex": {"m": 1.4, "f": -0.4}}, ("margins['sex']", 1)),
        ({"sex": {"m": 1.0}}, ("margins['sex']", "'sex=f'", "'sex=m'")),
        ({"age": {"2.5": 1.0}}, ("margins['age']", "'age'", "as text")),
    ],
)
def test_margins_that_do_not_fit_the_column_are_refused(margins, told):
    with pytest.raises(InputError, match=facts(*told)):
        list(margins_of(margins, USERS, ITEMS))


def test_margins_need_features():
    with pytest.raises(InputError, match=facts("margins['sex']", "none", "ol.covariates")):
        list(margins_of({"sex": {"m": 1.0}}, None, None))


def test_targets_of_every_kind_are_met_together():
    # Rows are cells 0, 1, 3 and 4 of six; f is 1 on two of the six, of which the log has row 0 and row 3.
    f = CellMeans.of(np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]), None, LOG)
    (sex,) = margins_of({"sex": {"m": 0.4, "f": 0.6}}, USERS, ITEMS)
    w = moved([sex, f], LOG, np.ones(4)).factor
    np.testing.assert_allclose([w[0] + w[3], w[2], w.sum()], [4 / 3, 1.6, 4], rtol=1e-9)
    alone = moved([sex], LOG, np.ones(4)).factor
    np.testing.assert_allclose(alone, [0.8, 0.8, 1.6, 0.8], rtol=1e-9)


def test_means_that_are_not_met_are_named_and_no_others():
    targets = [
        *means_of({"user": (lambda user, _item, _rating: user, 5.0)}),
        *margins_of({"sex": {"m": 0.5, "f": 0.5}}, USERS, ITEMS),
    ]
    found = moved(targets, LOG, np.ones(4))
    with pytest.raises(BalanceError, match=facts("user (5)", "4 rows")):
        refuse_unreached(targets, found, 4)
    refuse_unreached(targets[1:], moved(targets[1:], LOG, np.ones(4)), 4)
