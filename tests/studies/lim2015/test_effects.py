"""Effects: the gain is the sum of its parts, made-up effects are found, and errors cover users and fits."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.studies.lim2015.designs import CELLS, EQUAL_UPDATES, HALF, OF_ADG, OF_AUC
from openloop.studies.lim2015.effects import (
    EQUAL_STEPS_GAIN,
    EQUAL_UPDATES_GAIN,
    ITEMS,
    MORE_STEPS,
    PARTS,
    STEPS_OVER_HALF,
    UNTIL,
    UNTIL_OVER_HALF,
    WEIGHT,
    all_effects,
    combined,
    contrasts_of,
    effects_of,
    factorial_effects,
    fit_noise,
    signs,
)
from openloop.studies.lim2015.published import MEASURES
from tests.studies.lim2015.experiments import made_up


def by_name(effects, level=0):
    return {x.name: x for x in effects if x.level == level}


# --- by hand


def test_signs_are_those_of_the_two_learners():
    assert signs(OF_ADG) == (1, 1, 1)
    assert signs(OF_AUC) == (-1, -1, -1)
    assert signs(OF_AUC._replace(until=True)) == (-1, -1, 1)


def test_the_whole_design_has_seven_orthogonal_effects_and_its_half_three():
    whole, half = factorial_effects(CELLS), factorial_effects(HALF)
    assert list(whole)[:3] == list(half) == list(PARTS)
    assert len(whole) == 7
    for effects in (whole, half):
        cells = list(next(iter(effects.values())))
        matrix = np.array([[w[c] for c in cells] for w in effects.values()])
        np.testing.assert_allclose(matrix @ matrix.T, np.eye(len(matrix)) * 4 / len(cells), atol=1e-12)
        np.testing.assert_allclose(matrix.sum(axis=1), 0, atol=1e-12)
    assert OF_AUC not in half[UNTIL]


# --- by law


def test_the_gain_is_the_sum_of_more_steps_main_effects_and_the_interaction_of_all():
    rng = np.random.default_rng(0)
    values = {arm: rng.random((2, 9)) for arm in (*CELLS, EQUAL_UPDATES)}
    found = {name: combined(values, w) for name, w in contrasts_of(CELLS).items()}
    np.testing.assert_allclose(found[EQUAL_UPDATES_GAIN], found[MORE_STEPS] + found[EQUAL_STEPS_GAIN])
    sum_of_parts = sum(found[name] for name in (*PARTS, " × ".join(PARTS)))
    np.testing.assert_allclose(found[EQUAL_STEPS_GAIN], sum_of_parts)
    np.testing.assert_allclose(found[STEPS_OVER_HALF], found[MORE_STEPS] - found[EQUAL_UPDATES_GAIN] / 2)
    np.testing.assert_allclose(found[UNTIL_OVER_HALF], found[UNTIL] - found[EQUAL_STEPS_GAIN] / 2)


# --- by simulation


@pytest.mark.parametrize("cells", [CELLS, HALF], ids=["whole", "half"])
def test_effects_that_were_put_in_come_out(cells):
    found = by_name(effects_of(made_up((0.01, 0.0, 0.03), steps=0.02, cells=cells), "map"))
    wanted = {ITEMS: 0.01, WEIGHT: 0.0, UNTIL: 0.03, MORE_STEPS: 0.02, EQUAL_STEPS_GAIN: 0.04, EQUAL_UPDATES_GAIN: 0.06}
    for name, value in wanted.items():
        assert abs(found[name].value - value) < 4 * found[name].stderr
        assert found[name].stderr < 0.001


def test_an_error_over_users_alone_would_miss_the_noise_of_fits():
    # Fits vary by 0.004 for all users at once. Over 200 worlds an interval at 95 % covers a main effect of 0.
    covered = []
    for seed in range(200):
        effect = by_name(effects_of(made_up((0, 0, 0), noise=0.004, seed=seed), "adg"))[WEIGHT]
        low, high = effect.interval()
        covered.append(low <= 0 <= high)
    assert 0.91 < np.mean(covered) <= 0.99  # four standard errors of a proportion below 0.95 + what is conservative


def test_the_variance_of_fits_is_found():
    found = []
    for seed in range(60):
        e = made_up((0, 0.01, 0), noise=0.004, seed=seed)
        values = [{arm: e.users(n, arm, "adg") for arm in e.arms} for n in e.levels]
        noise, df = fit_noise(values, factorial_effects(CELLS))
        found.append(noise)
    assert df == 14  # seven effects on two numbers of positives in two folds
    assert np.mean(found) == pytest.approx(0.004**2, rel=0.15)


def test_effects_are_adjusted_over_all_and_users_without_a_part_count_nowhere():
    e = made_up((0, 0, 0.05))
    for searches in e.found.values():
        for search in searches:
            search.best.outcome["test"][:, 0] = np.nan
    found = all_effects([e, made_up((0, 0, 0), name="other")])
    assert len(found) == 2 * len(MEASURES) * 2 * 12
    assert all(x.holm >= x.pvalue for x in found)
    assert all(np.isfinite(x.value) for x in found)
    sure = {(x.data, x.name) for x in found if x.sure}
    assert ("ml-100k", UNTIL) in sure
    assert not [data for data, _ in sure if data == "other"]


def test_intervals_that_hold_together_are_wider():
    x = by_name(effects_of(made_up((0, 0, 0)), "adg"))[WEIGHT]
    (low, high), (lower, higher) = x.interval(), x.interval(20)
    assert lower < low < high < higher
