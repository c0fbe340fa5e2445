"""Effects: the gain is the sum of its parts, made-up effects are found, and errors cover users and fits."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.studies.lim2015.designs import CELLS, EQUAL_UPDATES, HALF, OF_ADG, OF_AUC
from openloop.studies.lim2015.effects import (
    ALL_THREE,
    ALONE,
    EQUAL_STEPS_GAIN,
    EQUAL_UPDATES_GAIN,
    ITEMS,
    MORE_STEPS,
    PARTS,
    TOGETHER,
    UNTIL,
    WEIGHT,
    WEIGHT_WITHIN_UNTIL,
    all_effects,
    combined,
    contrasts_of,
    effects_of,
    factorial_effects,
    fit_noise,
    over_half,
    parts_of,
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


@pytest.mark.parametrize("cells", [CELLS, HALF], ids=["whole", "half"])
def test_the_gain_is_the_sum_of_more_steps_the_parts_and_the_rest(cells):
    found = contrasts_of_random_measures(cells)
    parts = parts_of(cells)
    assert parts == ((*PARTS, ALL_THREE) if cells is CELLS else (*ALONE, TOGETHER))
    np.testing.assert_allclose(found[EQUAL_UPDATES_GAIN], found[MORE_STEPS] + found[EQUAL_STEPS_GAIN])
    np.testing.assert_allclose(found[EQUAL_STEPS_GAIN], sum(found[name] for name in parts))
    pairs = [(part, EQUAL_UPDATES_GAIN) for part in (MORE_STEPS, *parts[:3])] + [(parts[2], EQUAL_STEPS_GAIN)]
    for part, gain in pairs:
        np.testing.assert_allclose(found[over_half(part, gain)], found[part] - found[gain] / 2)


def contrasts_of_random_measures(cells):
    rng = np.random.default_rng(0)
    values = {arm: rng.random((2, 9)) for arm in (*cells, EQUAL_UPDATES)}
    return {name: combined(values, w) for name, w in contrasts_of(cells).items()}


def test_the_weight_within_until_is_its_main_effect_plus_its_interaction_with_until():
    found = contrasts_of_random_measures(CELLS)
    np.testing.assert_allclose(found[WEIGHT_WITHIN_UNTIL], found[WEIGHT] + found[f"{WEIGHT} × {UNTIL}"])


def test_the_half_shows_no_effect_that_is_mixed_with_an_interaction():
    # An interaction of two parts is added to cells that have both: it must change no effect of a part alone.
    plain, mixed = ({cell: np.zeros((2, 9)) for cell in (*HALF, EQUAL_UPDATES)} for _ in range(2))
    mixed[OF_ADG] = np.ones((2, 9))
    for name in ALONE:
        weights = contrasts_of(HALF)[name]
        np.testing.assert_array_equal(combined(plain, weights), combined(mixed, weights))
    assert not {*PARTS, WEIGHT_WITHIN_UNTIL} & set(contrasts_of(HALF))


# --- by simulation


@pytest.mark.parametrize("cells", [CELLS, HALF], ids=["whole", "half"])
def test_effects_that_were_put_in_come_out(cells):
    found = by_name(effects_of(made_up((0.01, 0.02, 0.03), steps=0.02, cells=cells), "map"))
    wanted = {MORE_STEPS: 0.02, EQUAL_STEPS_GAIN: 0.06, EQUAL_UPDATES_GAIN: 0.08}
    # The weight acts only within until. Main effects halve it between the weight and until; alone, it does nothing.
    whole = {ITEMS: 0.01, WEIGHT: 0.01, UNTIL: 0.04, ALL_THREE: 0.0, WEIGHT_WITHIN_UNTIL: 0.02}
    half = dict(zip((*ALONE, TOGETHER), (0.01, 0.0, 0.03, 0.02), strict=True))
    wanted |= whole if cells is CELLS else half
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
    assert len(found) == 2 * len(MEASURES) * 2 * (3 + 7 + 1 + 5)
    assert all(x.holm >= x.pvalue for x in found)
    assert all(np.isfinite(x.value) for x in found)
    sure = {(x.data, x.name) for x in found if x.sure}
    assert ("ml-100k", UNTIL) in sure
    assert not [data for data, _ in sure if data == "other"]


def test_intervals_that_hold_together_are_wider():
    x = by_name(effects_of(made_up((0, 0, 0)), "adg"))[WEIGHT]
    (low, high), (lower, higher) = x.interval(), x.interval(20)
    assert lower < low < high < higher
