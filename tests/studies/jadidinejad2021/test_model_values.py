"""Values of single models, and how far chance goes."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.studies.jadidinejad2021 import models
from openloop.studies.jadidinejad2021.methods import HeldOutCells, coded
from openloop.studies.jadidinejad2021.model_values import hotelling, model_values
from tests.studies.jadidinejad2021 import many


@pytest.mark.usefixtures("cornac", "torch")
def test_what_is_left_to_chance_is_drawn_again():
    given, run = models.given_of(*many.wide()), many.Plain("coat")
    found = model_values(run, given, ["GA", "BO", "MF10", "WMF20"])
    assert {name: len(values) for name, values in found.opened.items()} == {"GA": 1, "BO": 3, "MF10": 1, "WMF20": 3}
    assert all(np.ptp(found.opened[name]) > 0 for name in ("BO", "WMF20"))
    assert {values.shape for values in found.closed.values()} == {(2, 5)}
    held = HeldOutCells.of(given, [models.trial(given, model="WMF20", split=1, seed=0)], 1, 0)
    assert found.closed["WMF20"][1, 0] == coded(held)["holdout"](None).value[0]


def test_hotellings_p_is_uniform_for_one_more_of_the_same():
    rng = np.random.default_rng(0)
    mix = rng.normal(size=(3, 3))
    p = np.array([hotelling(x[1:], x[0])[1] for x in (rng.normal(size=(400, 21, 3)) @ mix)])
    for level in (0.05, 0.5):  # a band of 3.3 binomial standard deviations
        assert np.mean(p < level) == pytest.approx(level, abs=3.3 * np.sqrt(level * (1 - level) / 400))


def test_hotellings_distance_by_hand():
    sample = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [0.0, -2.0]])
    d2, p = hotelling(sample, np.array([2.0, 0.0]))  # S = diag(2/3, 8/3)
    assert d2 == pytest.approx(6)
    assert p == pytest.approx((1 + 6 * 4 / 5 / 3) ** -1)  # F with 2 and 2: P(F > x) = 1/(1 + x), x = T²·2/(2·3)


def test_what_is_rounded_is_no_outlier_for_being_rounded():
    """Deviations of half a unit, so that rounding matters; without the variance of rounding p is too small."""
    rng = np.random.default_rng(1)
    drawn = 0.5 * rng.normal(size=(400, 61, 6))
    for unit, holds in ((1.0, True), (0.0, False)):
        p = np.array([hotelling(x[1:], x[0].round(), unit)[1] for x in drawn])
        assert bool(np.mean(p < 0.05) <= 0.05 + 3.3 * np.sqrt(0.05 * 0.95 / 400)) is holds
