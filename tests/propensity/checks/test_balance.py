"""Sums of p against counts, and standardised differences: by hand, by law, and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from openloop.core.covariates import Covariates
from openloop.core.feedback import Feedback, Vocabulary
from openloop.data.simulate import World
from openloop.errors import UndefinedError
from openloop.propensity.base import CellModel
from openloop.propensity.calibrated import Calibrated
from openloop.propensity.checks.balance import Point, balance, margins
from openloop.propensity.known import Known
from openloop.propensity.uniform import Uniform
from tests.facts import facts

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


def test_the_furthest_by_ratio_is_among_those_with_rows():
    by_ratio = np.array([[0.4, 0.4], [0.9, 0.9], [0.9, 0.9]])
    user, _ = margins(Known(by_ratio).fit(LOG), LOG)
    assert user.furthest.id == "eve"  # 1.8 for 0
    assert user.furthest_relative.id == "bob"  # 1.8 for 1; ann has 0.8 for 2


def test_a_part_counts_the_rows_of_its_log():
    part = LOG.take(np.arange(3), share=np.array([0.5, 0.5, 0.25]))
    user, item = margins(Known(P).fit(part), part)
    assert [p.count for p in sorted(user.points, key=lambda p: p.id)] == [4.0, 4.0, 0.0]
    assert item.count == 8.0


def test_the_sums_of_uniform_are_even_and_have_no_correlation():
    user, item = margins(Uniform().fit(LOG), LOG)
    assert {p.expected for p in user.points} == {1.0}
    assert (user.correlation, item.correlation) == (None, None)


@pytest.mark.parametrize("size", [1, 2**21])
def test_a_model_without_margins_is_walked_through_in_blocks(size, monkeypatch):
    monkeypatch.setattr("openloop.propensity.checks.balance.BLOCK", size)
    user, item = margins(Known(P).fit(LOG), LOG)
    assert {p.id: p.expected for p in user.points} == pytest.approx({"ann": 0.75, "bob": 1.0, "eve": 0.75})
    assert {p.id: p.expected for p in item.points} == pytest.approx({"x": 1.5, "y": 1.0})


def test_a_floor_is_in_the_sums():
    model = Calibrated(Known(P), method=None, floor=0.4).fit(LOG)
    user, _ = margins(model, LOG, floor=0.4)
    assert user.expected == pytest.approx(4 * 0.5 + 2 * 0.4)


def test_a_model_with_margins_is_asked_and_another_is_not_walked_through_a_huge_grid():
    class Constant(CellModel):
        def __init__(self):
            pass

        def fit(self, feedback):
            return self._remember(feedback)

        def _at(self, user, item):
            return np.full(np.broadcast(user, item).shape, 1e-6)

    log = Feedback.from_arrays([0, 5], [3, 1], [1, 1], users=200_000, items=20_000)
    user, _ = margins(Uniform().fit(log), log)
    assert len(user.points) == 400
    with pytest.raises(UndefinedError, match=facts("Constant", "200,000 × 20,000", "model.margins()")):
        margins(Constant().fit(log), log)


def test_chance_is_what_the_truth_is_off_by():
    w, _, _ = world()
    ratios = []
    for seed in range(5):
        log = w.observe(seed)
        ratios += [m.off / m.chance for m in margins(Known(w.propensities).fit(log), log)]
    assert 0.8 < np.mean(ratios) < 1.1  # the variance is p(1 − p), which is below p


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


def test_a_constant_covariate_has_no_difference():
    item = Covariates(values=np.array([[7.0], [7.0]]), names=("same",), ids=LOG.items)
    same = balance(LOG, np.ones(3), None, item)[-1]
    assert (same.name, same.grid, same.before, same.after) == ("same", 7.0, None, None)


def test_equal_weights_change_nothing():
    w, x, _ = world()
    log = w.observe(0)
    user = Covariates.of(x, log.users, "user")
    for d in balance(log, np.full(len(log), 12.5), user, None):
        assert d.after == pytest.approx(d.before, rel=1e-9)


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


def test_a_count_includes_its_own_row_as_much_as_said():
    # No user observes more than another, so that all of the difference is the row itself.
    w = World(ratings=np.ones((400, 100)), propensities=np.full((400, 100), 0.2))
    found = [balance(log, 1 / log.propensity, None, None)[0] for log in map(w.observe, range(10))]
    after, own = np.mean([d.after for d in found]), np.mean([d.own for d in found])
    assert after > 0.15
    assert own == pytest.approx(after, rel=0.3)


def test_a_name_of_both_sides_is_told_apart():
    user = Covariates(values=np.array([[0.0], [1.0], [2.0]]), names=("age",), ids=LOG.users)
    item = Covariates(values=np.array([[1.0], [3.0]]), names=("age",), ids=LOG.items)
    names = [d.name for d in balance(LOG, np.ones(3), user, item)]
    assert names == ["log count of user", "age of user", "log count of item", "age of item"]
