"""Williams' and Steiger's tests have published values, and their size."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import pearsonr

from openloop.audits.correlations import (
    steiger,
    williams,
)
from openloop.errors import InputError, UndefinedError
from tests.facts import facts


@pytest.mark.parametrize(
    ("given", "t", "p"),
    [
        ((0.4, 0.5, 0.1, 103), -0.8913, 0.3749),  # psych::r.test(103, .4, .5, .1): |t| = 0.89, p = 0.37
        ((0.3, 0.4, 0.5, 100), -1.0767, 0.2843),  # DEPCOR, as in cocor's tests
    ],
)
def test_williams_gives_published_values(given, t, p):
    found = williams(*given)
    assert (round(found.statistic, 4), round(found.pvalue, 4)) == (t, p)
    assert (found.df, found.method) == (given[3] - 3, "Williams' t")


@pytest.mark.parametrize(
    ("given", "z"),
    [
        ((0.4, 0.5, 0.1, 103), -0.8887185),  # cocor(.4, .5, .1, 103); Steiger (1980), p. 249, rounds on the way: -.8913
        ((0.3, 0.4, 0.5, 100), -1.0718),  # DEPCOR: -1.0718, p 0.2838
        ((0.7245, 0.7108, 0.8972, 15_549), 5.5498),  # cocor's output prints r to four digits
    ],
)
def test_steiger_gives_published_values(given, z):
    found = steiger(*given)
    assert found.statistic == pytest.approx(z, abs=0.03 if given[3] > 1000 else 5e-5)
    assert found.pvalue == pytest.approx(math.erfc(abs(found.statistic) / math.sqrt(2)), rel=1e-9)
    assert (found.df, found.method) == (None, "Steiger's Z̄₁*")


def test_williams_by_hand():
    # |R| = 1 − 0.25 − 0 − 0 + 0, r̄ = 0.25: t = 0.5 √[12·1/(2·12/10·0.75 + 0.0625)]
    assert williams(0.5, 0, 0, 13).statistic == pytest.approx(0.5 * math.sqrt(12 / (1.8 + 0.0625)))


@pytest.mark.parametrize("test", [williams, steiger])
def test_both_tests_have_their_size_on_pearson_correlations(test):
    # Two noisy versions of a target, equally good. Measured over 20,000 runs at n = 30: 4.8 and 5.1 %.
    rng = np.random.default_rng(13)
    found = []
    for _ in range(1000):
        target, x, y = rng.normal(size=(3, 30))
        x, y = x + target, y + target
        found.append(test(*(pearsonr(*p).statistic for p in ((target, x), (target, y), (x, y))), 30).pvalue < 0.05)
    assert 0.03 <= np.mean(found) <= 0.07


@pytest.mark.parametrize("test", [williams, steiger])
@pytest.mark.parametrize(
    ("given", "told"),
    [
        pytest.param((0.4, 0.5, 0.1, 3), ("n", 4, 3), id="small n"),
        pytest.param((0.4, 0.5, 0.1, 10.5), ("n", 4, 10.5), id="n a fraction"),
        pytest.param((1.0, 0.5, 0.5, 30), ("r_jk", -1, 1, 1.0), id="r_jk 1"),
        pytest.param((0.4, math.nan, 0.5, 30), ("r_jh", -1, 1, "nan"), id="r_jh nan"),
        pytest.param((0.4, 0.5, -1.5, 30), ("r_kh", -1, 1, -1.5), id="r_kh below -1"),
        pytest.param((0.9, -0.9, 0.9, 30), (0.9, -0.9, "|R| = -2.89"), id="impossible together"),
    ],
)
def test_correlations_that_cannot_be_are_refused(test, given, told):
    with pytest.raises(InputError, match=facts(test.__name__, *told)):
        test(*given)


def test_williams_without_variance_is_undefined():
    with pytest.raises(UndefinedError, match=facts("williams", "no variance")):
        williams(0.5, -0.5, 0.5, 30)  # |R| = 0 and r̄ = 0
