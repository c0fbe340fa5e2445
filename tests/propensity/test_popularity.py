"""p_i ∝ n_i^((γ+1)/2): by hand, by law, in a world whose items alone decide, and as the published code has it."""

from __future__ import annotations

import re

import numpy as np
import pytest

import openloop as ol
from openloop.core.feedback import LEAST, Feedback
from openloop.data.simulate import World
from openloop.errors import InputError, UndefinedError
from openloop.propensity.popularity import Popularity, log_level
from openloop.propensity.solvers.power_law import fit_power_law
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


def test_with_an_exponent_of_one_p_is_the_share_of_users_that_rated_the_item():
    counts = [7, 3, 10, 1]
    model = Popularity(gamma=1).fit(log_with(counts, 10))
    np.testing.assert_allclose(model.item_propensities_, np.array(counts) / 10, rtol=1e-12)
    assert model.notes_ == ()


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


def test_a_log_of_every_cell_has_p_one():
    model = Popularity(gamma=5).fit(log_with([4, 4, 4], 4))
    np.testing.assert_allclose(model.item_propensities_, 1.0, rtol=1e-12)


def test_a_part_tells_the_propensities_of_the_whole_log():
    counts = [8, 4, 2]
    half = log_with([4, 2, 1], 20, share=np.full(7, 0.5))
    whole, part = (Popularity(gamma=2).fit(log) for log in (log_with(counts, 20), half))
    np.testing.assert_allclose(part.item_propensities_, whole.item_propensities_, rtol=1e-12)


def test_a_part_that_stands_for_more_than_all_cells_has_p_one():
    model = Popularity(gamma=1).fit(log_with([3, 3], 4, share=np.full(6, 0.5)))
    np.testing.assert_allclose(model.item_propensities_, 1.0, rtol=1e-12)


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


def test_the_water_level_is_right_for_any_scores():
    rng = np.random.default_rng(0)
    for _ in range(200):
        scores = rng.normal(0, rng.choice([0.1, 3, 60]), rng.integers(1, 40))
        total = float(rng.uniform(0, len(scores)))
        assert np.isclose(np.exp(np.minimum(scores + log_level(scores, total), 0)).sum(), total, rtol=1e-9)


def test_the_exponent_is_that_of_the_power_law_of_the_counts():
    model = Popularity().fit(log_with(SKEWED, 1000))
    law = fit_power_law(SKEWED)
    assert model.power_law_ == law
    assert (model.gamma_, model.x_min_) == (law.alpha, law.x_min)
    given = Popularity(gamma=law.alpha).fit(log_with(SKEWED, 1000))
    np.testing.assert_array_equal(model.item_propensities_, given.item_propensities_)


def test_a_given_start_is_used_for_the_exponent():
    model = Popularity(x_min=5).fit(log_with(SKEWED, 1000))
    assert model.power_law_ == fit_power_law(SKEWED, 5)
    assert model.x_min_ == 5


def test_matrix_takes_the_memory_of_one_row():
    model = Popularity(gamma=1).fit(log_with([3, 1], 10))
    P = model.matrix()
    assert P.shape == (10, 2)
    assert P.strides[0] == 0
    assert not P.flags.writeable


def test_margins_with_an_exponent_of_one_are_the_counts():
    by_user, by_item = Popularity(gamma=1).fit(log_with([7, 3], 10)).margins()
    np.testing.assert_allclose(by_item, [7, 3])
    np.testing.assert_allclose(by_user, np.ones(10))


# -- what it says about difficult counts ---------------------------------------------------------------------


def test_a_large_exponent_is_reported_with_what_it_does_to_weights():
    model = Popularity(gamma=5).fit(log_with([100, 10, 1], 10_000))
    (note,) = model.notes_
    # 100³ to 1³
    assert re.search(facts("γ", "5.00", "n^3.00", "1e+06"), note)
    assert Popularity(gamma=3).fit(log_with([100, 10, 1], 10_000)).notes_ == ()


def test_an_exponent_at_the_end_of_its_range_is_reported():
    assert re.search(facts("γ", 20, "range"), Popularity().fit(log_with([100, 100, 101], 200)).notes_[0])


def test_a_propensity_too_small_for_a_weight_is_lifted_and_reported():
    # (1/100)^60.5 = 1e-121
    model = Popularity(gamma=120).fit(log_with([100, 1, 1], 1000))
    assert model.item_propensities_[1] == LEAST
    assert any(re.search(facts("2 of 3 items", 1e-100), note) for note in model.notes_)


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


def test_another_exponent_converges_to_something_else():
    # Where rows are the only trace of exposure, γ = 3 squares the differences between items, at any size of log.
    world = item_world(16_000)
    p, true = Popularity(gamma=3).fit(world.observe(1)).item_propensities_, world.propensities[0]
    squares = 2 * np.log(true)
    limit = np.exp(np.minimum(squares + log_level(squares, true.sum()), 0))
    assert np.sqrt(np.mean((p / limit - 1) ** 2)) < 0.1
    assert p[0] < true[0] / 5
    assert p[-1] == 1.0  # of a true 0.6


def test_ips_with_estimated_propensities_beats_naive_by_an_order_of_magnitude():
    world = item_world(1000)
    truth = float(np.mean((world.ratings - 5.0) ** 2))
    errors: dict[str, list[float]] = {"naive": [], "ips": []}
    for seed in range(10):
        log = world.observe(seed)
        result = ol.evaluate(
            world.predictions, log, Popularity(gamma=1).fit(log), metrics=["mse"], estimators=["naive", "ips"]
        )
        for name, found in errors.items():
            found.append(result["five", "mse", name].value - truth)
    naive, ips = (np.sqrt(np.mean(np.square(found))) for found in errors.values())
    assert ips < naive / 10


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


def test_as_coded_adds_up_to_the_log_where_one_factor_can_do_it():
    # n ≤ x_min everywhere: the raw counts, and p = n/U.
    model = Popularity(gamma=3, x_min=10, variant="as_coded").fit(log_with([8, 4, 2], 10))
    np.testing.assert_allclose(model.item_propensities_, [0.8, 0.4, 0.2])
    assert model.notes_ == ()


def test_as_coded_is_scaled_by_its_largest_elsewhere_and_says_so():
    # 8² to 2 and 1, |O|/U = 1.1: 64/67 · 1.1 > 1
    model = Popularity(gamma=2, x_min=2, variant="as_coded").fit(log_with([8, 2, 1], 10))
    np.testing.assert_allclose(model.item_propensities_, [1, 2 / 64, 1 / 64])
    (note,) = model.notes_
    assert re.search(facts("U·Σp", 0.95), note)


def test_as_coded_estimates_what_is_not_given():
    log, law = log_with(SKEWED, 1000), fit_power_law(SKEWED)
    for model in (Popularity(variant="as_coded"), Popularity(gamma=2.0, variant="as_coded")):
        model.fit(log)
        assert model.power_law_ == law
        assert model.x_min_ == law.x_min
        assert model.gamma_ == (law.alpha if model.gamma is None else 2.0)


# -- bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [0, -1, np.nan, np.inf, "2"])
def test_gamma_must_be_positive(gamma):
    with pytest.raises(InputError, match=facts("Popularity", "gamma", repr(gamma))):
        Popularity(gamma=gamma).fit(log_with([2, 1], 3))


def test_an_unknown_variant_is_named():
    with pytest.raises(InputError, match=facts("Popularity", "variant", "'as-coded'", "'as_coded'")):
        Popularity(variant="as-coded").fit(log_with([2, 1], 3))


@pytest.mark.parametrize("gamma", [None, 2.0])
def test_the_start_must_be_a_whole_number(gamma):
    with pytest.raises(InputError, match=facts("Popularity", "x_min", 0)):
        Popularity(gamma=gamma, x_min=0).fit(log_with([2, 1], 3))


def test_equal_counts_need_the_exponent():
    log = log_with([4, 4, 4], 10)
    with pytest.raises(UndefinedError, match="gamma="):
        Popularity().fit(log)
    np.testing.assert_allclose(Popularity(gamma=2).fit(log).item_propensities_, 0.4)


def test_counts_alone_give_the_same_propensities():
    log = ol.simulate.movie_lovers(users=30, items=20).observe(2)
    fitted, counted = Popularity().fit(log), Popularity()
    notes = tuple(counted.fit_counts(np.bincount(log.item, minlength=20).astype(float), 30))
    np.testing.assert_array_equal(counted.item_propensities_, fitted.item_propensities_)
    assert notes == fitted.notes_
