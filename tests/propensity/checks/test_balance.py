"""Sums of p against counts, and standardised differences: by hand and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from openloop.core.covariates import Covariates
from openloop.core.feedback import Feedback, Vocabulary
from openloop.data.simulate import World
from openloop.propensity.checks.balance import Point, balance, margins
from openloop.propensity.known import Known

# Three users, two items, three rows.
P = np.array([[0.5, 0.25], [0.5, 0.5], [0.5, 0.25]])
LOG = Feedback(
    user=np.array([0, 0, 1]), item=np.array([0, 1, 0]), rating=np.ones(3), users=Vocabulary.of(["ann", "bob", "eve"]),
    items=Vocabulary.of(["x", "y"]),
)  # fmt: skip


def world(users: int = 300, items: int = 200) -> tuple[World, np.ndarray, np.ndarray]:
    """What is observed follows one covariate of users and one of items."""
    draw = np.random.default_rng(0)
    x, z = draw.normal(size=(users, 2)), draw.normal(size=(items, 2))
    logits = 0.8 * x[:, :1] + draw.normal(0, 0.6, (users, 1)) + z[:, 0] + draw.normal(0, 0.6, items) - 2.5
    return World(ratings=np.ones((users, items)), propensities=expit(logits)), x, z


def test_margins_by_hand():
    user, item = margins(Known(P).fit(LOG), LOG)
    assert (user.side, item.side) == ("user", "item")
    assert [(p.id, p.expected, p.count) for p in item.points] == [("y", 1.0, 1.0), ("x", 1.5, 2.0)]  # by Σp
    assert (user.expected, user.count) == (2.5, 3.0)
    # Σp 0.75, 1, 0.75 against 2, 1, 0 rows
    assert user.off == pytest.approx(2 / 3)
    assert user.furthest == Point(id="ann", expected=0.75, count=2.0)
    assert user.empty == 1
    assert user.correlation == pytest.approx(np.corrcoef([0.75, 1, 0.75], [2, 1, 0])[0, 1])


def test_a_part_counts_the_rows_of_its_log():
    part = LOG.take(np.arange(3), share=np.array([0.5, 0.5, 0.25]))
    user, item = margins(Known(P).fit(part), part)
    assert [p.count for p in sorted(user.points, key=lambda p: p.id)] == [4.0, 4.0, 0.0]
    assert item.count == 8.0


def test_differences_by_hand():
    user = Covariates(values=np.array([[0.0], [1.0], [2.0]]), names=("age",), ids=LOG.users)
    item = Covariates(values=np.array([[1.0, 7.0], [3.0, 7.0]]), names=("price", "same"), ids=LOG.items)
    found = {d.name: d for d in balance(LOG, np.array([2.0, 4.0, 2.0]), user, item)}
    assert list(found) == ["log count of user", "age", "log count of item", "price", "same"]
    age, sd = found["age"], np.sqrt(2 / 3)
    assert (age.grid, age.sd, age.observed, age.weighted) == pytest.approx((1.0, sd, 1 / 3, 2 / 8))
    assert (age.before, age.after) == pytest.approx((-2 / 3 / sd, -0.75 / sd))
    price = found["price"]  # rows 1, 3, 1 with weights 2, 4, 2
    assert (price.before, price.after) == pytest.approx((5 / 3 - 2, 16 / 8 - 2))
    count = found["log count of user"]  # rows 2, 2, 1
    assert count.grid == pytest.approx(np.log([3, 2, 1]).mean())
    assert count.observed == pytest.approx((2 * np.log(3) + np.log(2)) / 3)
    # weights 6 and 2: log 3 − log 2, and log 2 − log 1
    assert count.own == pytest.approx((6 * np.log(3 / 2) + 2 * np.log(2)) / 8 / count.sd)


def test_true_propensities_bring_the_rows_to_the_grid():
    w, x, z = world()
    log = w.observe(3)
    found = balance(log, 1 / log.propensity, Covariates.of(x, log.users, "user"), Covariates.of(z, log.items, "item"))
    moved = {d.name: (d.before, d.after) for d in found}
    assert moved["user_0"][0] > 0.4
    assert moved["item_0"][0] > 0.5
    for name, (_, after) in moved.items():
        if not name.startswith("log count"):
            assert abs(after) < 0.05
