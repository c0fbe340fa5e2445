"""Rankings of models: τ is SciPy's, with measured coverage and size."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from openloop.audits.rankings import (
    kendall,
)
from openloop.errors import InputError, UndefinedError
from tests.facts import facts

# Hollander, Wolfe & Chicken, Example 8.1: lightness of tuna and its panel score.
TUNA = (
    [44.4, 45.9, 41.9, 53.3, 44.7, 44.1, 50.7, 45.2, 60.1],
    [2.6, 3.1, 2.5, 5.0, 3.6, 4.0, 5.2, 2.8, 3.8],
)

numbers = st.integers(-4, 4)
lists = st.integers(3, 12).flatmap(
    lambda n: st.tuples(*[st.lists(numbers, min_size=n, max_size=n).filter(lambda v: len(set(v)) > 1)] * 2)
)

# --------------------------------------------------------------------------------------- τ: known answers


def test_kendall_by_hand():
    # Of six pairs five agree: τ = 4/6. C = (3, 1, 1, 3), Σ(C − 2)² = 4, so that
    # σ̂² = 2/12 · [2·2/(4·9) · 4 + 1 − 4/9] = 1/6 · (4/9 + 5/9) = 1/6.
    found = kendall([1, 2, 3, 4], [1, 3, 2, 4])
    assert found.value == pytest.approx(2 / 3)
    assert found.low == pytest.approx(2 / 3 - 1.959964 / math.sqrt(6), abs=1e-6)
    assert (found.high, found.n, found.method) == (1.0, 4, "asymptotic")  # cut


def test_kendall_on_the_example_of_hollander_wolfe_and_chicken():
    # NSM3::kendall.ci(example = TRUE) computes the same (8.34), (8.38), (8.39); τ = 16/36.
    found = kendall(*TUNA)
    c = np.array(
        [sum(np.sign((a - p) * (b - q)) for p, q in zip(*TUNA, strict=True)) for a, b in zip(*TUNA, strict=True)]
    )
    sigma2 = (2 * 7 * np.var(c, ddof=1) / 9 / 8 + 1 - (16 / 36) ** 2) * 2 / 9 / 8
    assert found.value == pytest.approx(16 / 36)
    assert (found.high - found.value) == pytest.approx(1.959964 * math.sqrt(sigma2), rel=1e-6)
    assert str(found) == "Kendall's τ 0.444 over 9 models (95 % interval -0.0526 … 0.941, asymptotic)"


@given(lists)
def test_tau_is_scipys_with_ties_too(xy):
    assert kendall(*xy).value == pytest.approx(kendalltau(*xy).statistic, abs=1e-12)


def test_the_bootstrap_is_scipys_tau_of_resampled_models():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 15))
    weights = np.random.default_rng(0).multinomial(15, np.full(15, 1 / 15), size=400)
    draws = [kendalltau(np.repeat(x, w), np.repeat(y, w)).statistic for w in weights]
    found = kendall(x, y, rng=0, replicates=400)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(draws, [0.025, 0.975])))
    assert found.method == "bootstrap over models"


@pytest.mark.parametrize("rng", [None, 0])
def test_a_perfect_order_of_few_models_proves_little(rng):
    # Five disjoint pairs of ten models all agree, which has probability ((1 + τ)/2)⁵ at most: 0.025 at the bound.
    up = kendall(range(10), range(10), rng=rng)
    assert (up.value, up.low, up.high) == (1, pytest.approx(2 * 0.025**0.2 - 1), 1)
    down = kendall(range(10), range(10, 0, -1), rng=rng)
    assert (down.value, down.low, down.high) == (-1, -1, pytest.approx(1 - 2 * 0.025**0.2))
    assert kendall([1, 2, 3], [1, 2, 3], rng=rng).low == pytest.approx(-0.95)
    assert kendall(range(104), range(104), rng=rng).low == pytest.approx(0.863, abs=5e-4)


# --------------------------------------------------------------------------------------------- τ: laws


@given(lists, st.sampled_from([None, 1]))
def test_intervals_hold_the_value_and_stay_in_range(xy, rng):
    found = kendall(*xy, rng=rng, replicates=200)
    assert -1 <= found.low <= found.high <= 1
    if rng is None:
        assert found.low <= found.value <= found.high


@given(lists)
def test_only_the_order_matters_and_lists_may_swap(xy):
    x, y = xy
    found = kendall(x, y)
    assert kendall(np.exp(x), [v**3 for v in y]) == found
    assert kendall(y, x) == found


# --------------------------------------------------------------------------------------- τ: simulation


def bivariate(rng, n, tau):
    """A normal pair whose true τ is 2/π·arcsin ρ."""
    rho = math.sin(math.pi * tau / 2)
    x, e = rng.normal(size=(2, n))
    return x, rho * x + math.sqrt(1 - rho**2) * e


@pytest.mark.parametrize(("tau", "n"), [(0.0, 20), (0.5, 20), (0.8, 104)])
def test_asymptotic_intervals_cover(tau, n):
    # Measured over 2,000 runs (n ≤ 20; 600 above): n = 6: 91, 99, 100 % at τ = 0, 0.5, 0.8; n = 10: 92, 94, 93 %;
    # n = 20: 95, 94, 97 %; n = 104: 96, 96, 95 %.
    rng = np.random.default_rng(11)
    hits = [k.low <= tau <= k.high for k in (kendall(*bivariate(rng, n, tau)) for _ in range(800))]
    assert 0.92 <= np.mean(hits) <= 0.98


# ------------------------------------------------------------------------------------------------ errors

UP = [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    ("x", "y", "options", "error", "told"),
    [
        pytest.param([1, 2], [1, 2], {}, InputError, facts("kendall", "3 models", 2), id="two models"),
        pytest.param(UP, UP[:3], {}, InputError, facts("kendall", "'x': (4,)", "'y': (3,)"), id="short list"),
        pytest.param(UP, [1, 2, math.nan, 3], {}, InputError, facts("kendall", "y", "1 of 4", "finite"), id="nan"),
        pytest.param([5, 5, 5, 5], UP, {}, UndefinedError, facts("kendall", "x", 4, 5, "τ"), id="constant"),
        pytest.param(UP, [1, 3, 2, 4], {"rng": "x"}, InputError, facts("kendall", "rng", "'x'"), id="rng"),
    ],
)
def test_lists_that_have_no_tau_are_refused(x, y, options, error, told):
    with pytest.raises(error, match=told):
        kendall(x, y, **options)
