"""p_i ∝ n_i^((γ+1)/2): by hand, by law, in a world whose items alone decide, and as the published code has it."""

from __future__ import annotations

import re

import numpy as np
import pytest

from openloop.core.feedback import LEAST, Feedback
from openloop.data.simulate import World
from openloop.errors import InputError
from openloop.propensity.popularity import Popularity
from tests.contracts import PropensityModelContract
from tests.facts import facts


class TestPopularity(PropensityModelContract):
    def make(self):
        return Popularity()


class TestPopularityWithGammaGiven(PropensityModelContract):
    def make(self):
        return Popularity(gamma=2.5)


class TestPopularityAsCoded(PropensityModelContract):
    sums_to_log = False  # where one factor cannot do it, the largest p is 1

    def make(self):
        return Popularity(variant="as_coded")


def log_with(counts: list[int], users: int, **columns) -> Feedback:
    """Item i is rated by the first counts[i] users."""
    item = np.repeat(np.arange(len(counts)), counts)
    user = np.concatenate([np.arange(n) for n in counts])
    return Feedback.from_arrays(user, item, np.ones(len(item)), users=users, items=len(counts), **columns)


SKEWED = [900, 400, 200, 90, 60, 31, 20, 11, 9, 6, 5, 3, 3, 2, 2, 1, 1, 1, 0]


# -- by hand -------------------------------------------------------------------------------------------------


def test_by_hand():
    # γ = 3: p ∝ n². 1 + 4 + 9 = 14 and |O|/U = 6/10, so p = n² · 0.6/14.
    model = Popularity(gamma=3).fit(log_with([1, 2, 3], 10))
    np.testing.assert_allclose(model.item_propensities_, np.array([1, 4, 9]) * 0.6 / 14)
    assert model.gamma_ == 3.0
    assert model.x_min_ is None
    assert model.power_law_ is None
    np.testing.assert_allclose(model.log_scores_, np.log([1, 4, 9]))


def test_an_item_at_the_cap_leaves_its_excess_to_the_others():
    model = Popularity(gamma=3).fit(log_with([8, 2, 1], 8))
    # |O|/U = 11/8: 64/69 · 11/8 = 1.28 is capped, and 4 and 1 share 3/8.
    np.testing.assert_allclose(model.item_propensities_, [1.0, 0.3, 0.075], rtol=1e-12)
    (note,) = model.notes_
    assert re.search(facts("1 of 3 items", "capped"), note)


def test_an_item_without_a_row_counts_as_one():
    model = Popularity(gamma=1).fit(log_with([4, 0, 1], 10))
    np.testing.assert_allclose(model.item_propensities_, np.array([4, 1, 1]) * 0.5 / 6)
    (note,) = model.notes_
    assert re.search(facts("1 of 3 items", "no row"), note)


def test_a_part_tells_the_propensities_of_the_whole_log():
    counts = [8, 4, 2]
    half = log_with([4, 2, 1], 20, share=np.full(7, 0.5))
    whole, part = (Popularity(gamma=2).fit(log) for log in (log_with(counts, 20), half))
    np.testing.assert_allclose(part.item_propensities_, whole.item_propensities_, rtol=1e-12)


# -- by law --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.7, 8.0, 20.0, 400.0])
def test_the_propensities_add_up_to_the_log_and_the_uncapped_keep_their_ratios(gamma):
    log = log_with(SKEWED, 1000)
    model = Popularity(gamma=gamma).fit(log)
    p, n = model.item_propensities_, np.maximum(SKEWED, 1)
    assert np.isclose(1000 * p.sum(), len(log), rtol=1e-9)
    assert np.all((p >= LEAST) & (p <= 1))
    assert np.all(np.diff(p) <= 0)
    free = (p < 1) & (p > LEAST)
    constant = np.log(p[free]) - (gamma + 1) / 2 * np.log(n[free])
    np.testing.assert_allclose(constant, constant[0], rtol=1e-9)


# -- by simulation -------------------------------------------------------------------------------------------


def item_world(users: int, items: int = 60) -> World:
    """Items alone decide what is observed, from 2 % to 60 % of users; and the observed are the better ones."""
    p = np.geomspace(0.02, 0.6, items)
    stars = 1 + 4 * (np.log(p) - np.log(0.02)) / np.log(30)  # (I,)
    Y = np.clip(np.rint(stars + np.random.default_rng(0).normal(0, 1, (users, items))), 1, 5)
    return World(ratings=Y, propensities=np.tile(p, (users, 1)), predictions={"five": np.full(Y.shape, 5.0)})


def test_with_an_exponent_of_one_estimates_converge_to_the_true_propensities():
    errors = []
    for users in (250, 1000, 4000, 16_000):
        world = item_world(users)
        p, true = Popularity(gamma=1).fit(world.observe(1)).item_propensities_, world.propensities[0]
        # A share of U users has the standard error √(p(1−p)/U).
        z = (p - true) / np.sqrt(true * (1 - true) / users)
        assert 0.7 < np.sqrt(np.mean(z**2)) < 1.3
        errors.append(np.sqrt(np.mean((p / true - 1) ** 2)))
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.25 * errors[0]  # 1/8 by √U


# -- as published --------------------------------------------------------------------------------------------


def published(counts: np.ndarray, gamma: float, x_min: int) -> np.ndarray:
    """Cornac 2.3, PropensityStratifiedEvaluation._estimate_propensities: `if v > fmin: v = pow(v, alpha)`."""
    return np.array([float(v) ** gamma if v > x_min else float(v) for v in counts])


@pytest.mark.parametrize(("gamma", "x_min"), [(1.5, 5), (3.0, 20), (7.3, 60), (2.0, 1000)])
def test_ratios_are_those_of_the_published_code(gamma, x_min):
    counts = np.array(SKEWED[:-1])  # the code knows no item without a row
    model = Popularity(gamma=gamma, x_min=x_min, variant="as_coded").fit(log_with(SKEWED[:-1], 1000))
    p, raw = model.item_propensities_, published(counts, gamma, x_min)
    np.testing.assert_allclose(p / p[0], raw / raw[0], rtol=1e-10)
    np.testing.assert_allclose(np.exp(model.log_scores_), raw, rtol=1e-10)
    assert model.power_law_ is None


# -- bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [0, -1, np.nan, np.inf, "2"])
def test_gamma_must_be_positive(gamma):
    with pytest.raises(InputError, match=facts("Popularity", "gamma", repr(gamma))):
        Popularity(gamma=gamma).fit(log_with([2, 1], 3))
