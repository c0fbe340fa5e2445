"""Rankings of models: τ is SciPy's, with measured coverage and size."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from openloop.audits.rankings import (
    TauDifference,
    compare_tau,
    kendall,
    tau_b,
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


def test_tau_of_several_lists_is_scipys_with_ties_and_without():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(3, 30)), rng.integers(0, 5, (3, 30)).astype(float)
    found = tau_b(x, y)
    assert found == pytest.approx([kendalltau(a, b).statistic for a, b in zip(x, y, strict=True)])
    assert tau_b(x[0], y[0]) == found[0] == kendall(x[0], y[0]).value
    assert tau_b(x, y[:1]) == pytest.approx([kendalltau(a, y[0]).statistic for a in x])  # lists broadcast


def test_tau_of_a_constant_is_nan():
    assert np.isnan(tau_b(np.ones(4), np.arange(4.0)))


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


def test_tied_models_make_no_pairs_for_the_bound():
    assert kendall([1, 1, 1, 1, 1, 2], [1, 1, 1, 1, 1, 2]).low == pytest.approx(-0.95)  # one disjoint pair, not three


# --------------------------------------------------------------------------------------------- τ: laws


@given(lists, st.sampled_from([None, 1]))
def test_intervals_hold_the_value_and_stay_in_range(xy, rng):
    found = kendall(*xy, rng=rng, replicates=200)
    assert -1 <= found.low <= found.high <= 1
    if rng is None:
        assert found.low <= found.value <= found.high


@given(lists)
def test_turning_a_list_mirrors_the_interval(xy):
    x, y = xy
    found, turned = kendall(x, y), kendall(x, [-v for v in y])
    assert (turned.value, turned.low, turned.high) == pytest.approx((-found.value, -found.high, -found.low))


@given(lists)
def test_only_the_order_matters_and_lists_may_swap(xy):
    x, y = xy
    found = kendall(x, y)
    assert kendall(np.exp(x), [v**3 for v in y]) == found
    assert kendall(y, x) == found


def test_a_higher_level_is_wider_and_a_seed_repeats():
    assert kendall(*TUNA, level=0.99).low < kendall(*TUNA).low
    assert kendall(*TUNA, rng=5) == kendall(*TUNA, rng=np.random.default_rng(5))


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


def test_bootstrap_intervals_cover():
    # Measured over 300 runs: 97, 95, 100 % at n = 10 and τ = 0, 0.5, 0.8; 95, 96, 97 % at n = 20; 94 to 96 % at 104.
    rng = np.random.default_rng(12)
    found = [kendall(*bivariate(rng, 20, 0.5), rng=rng, replicates=400) for _ in range(300)]
    assert 0.91 <= np.mean([k.low <= 0.5 <= k.high for k in found]) <= 0.99


# ------------------------------------------------------------------------------------------- compare_tau


def test_the_difference_is_that_of_two_taus():
    rng = np.random.default_rng(0)
    target, x, y = rng.normal(size=(3, 30))
    found = compare_tau(target + x / 3, y, target, rng=1)
    assert found.value == pytest.approx(kendall(target + x / 3, target).value - kendall(y, target).value)
    assert found.low <= found.value <= found.high
    assert (found.n, found.level) == (30, 0.95)
    assert found.pvalue < 0.01


def test_the_paired_bootstrap_is_scipys_tau_of_resampled_models():
    x, y, target = np.random.default_rng(4).normal(size=(3, 12))
    weights = np.random.default_rng(0).multinomial(12, np.full(12, 1 / 12), size=300)

    def tau(values, w):
        return kendalltau(np.repeat(values, w), np.repeat(target, w)).statistic

    draws = np.array([tau(x, w) - tau(y, w) for w in weights])
    found = compare_tau(x, y, target, rng=0, replicates=300)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(draws, [0.025, 0.975])))
    tail = min((draws <= 1e-12).sum(), (draws >= -1e-12).sum())
    assert found.pvalue == pytest.approx(min(1, 2 * (1 + tail) / 301))


def test_swapping_x_and_y_turns_the_difference():
    x, y, target = np.random.default_rng(1).normal(size=(3, 20))
    one, other = compare_tau(x, y, target, rng=0), compare_tau(y, x, target, rng=0)
    assert (one.value, one.low, one.high) == pytest.approx((-other.value, -other.high, -other.low))
    assert one.pvalue == other.pvalue


def test_equal_lists_do_not_differ():
    x, target = np.random.default_rng(2).normal(size=(2, 20))
    assert compare_tau(x, x, target, rng=0) == TauDifference(value=0, low=0, high=0, pvalue=1, n=20)


def test_equally_good_rankings_are_rarely_told_apart():
    # Two equally noisy versions of the target. Measured at 5 %, 600 to 800 runs: noise 1: 4.2 % of 104 models, 3.6 % of
    # 20, 2.4 % of 10, 0.2 % of 6; noise 0.3: 2.2, 0.9, 0.4 and 0 %. Williams' t on the same τ, n = 104: 0.2 and 0.3 %.
    rng = np.random.default_rng(14)
    found = []
    for _ in range(400):
        target, x, y = rng.normal(size=(3, 20))
        found.append(compare_tau(target + x, target + y, target, rng=rng, replicates=400).pvalue < 0.05)
    assert 0.005 <= np.mean(found) <= 0.06


def test_a_better_ranking_of_104_models_is_told_apart():
    # Noise 0.5 against 1, true τ 0.70 and 0.50. Measured power: 97 % of 400 runs.
    rng = np.random.default_rng(15)
    found = []
    for _ in range(50):
        target, x, y = rng.normal(size=(3, 104))
        found.append(compare_tau(target + x / 2, target + y, target, rng=rng, replicates=500).pvalue < 0.05)
    assert np.mean(found) >= 0.9


# ------------------------------------------------------------------------------------------------ errors

UP = [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    ("x", "y", "options", "error", "told"),
    [
        pytest.param([1, 2], [1, 2], {}, InputError, facts("kendall", "3 models", 2), id="two models"),
        pytest.param(UP, UP[:3], {}, InputError, facts("kendall", "'x': (4,)", "'y': (3,)"), id="short list"),
        pytest.param([UP], [UP], {}, InputError, facts("kendall", "'x': (1, 4)", "'y': (1, 4)"), id="tables"),
        pytest.param(UP, [1, 2, math.nan, 3], {}, InputError, facts("kendall", "y", "1 of 4", "finite"), id="nan"),
        pytest.param(UP, [1, 2, math.inf, 3], {}, InputError, facts("kendall", "y", "1 of 4", "finite"), id="inf"),
        pytest.param([5, 5, 5, 5], UP, {}, UndefinedError, facts("kendall", "x", 4, 5, "τ"), id="constant"),
        pytest.param(UP, UP, {"level": 1}, InputError, facts("kendall", "level", 0, 1), id="level 1"),
        pytest.param(UP, [1, 3, 2, 4], {"rng": "x"}, InputError, facts("kendall", "rng", "'x'"), id="rng"),
        pytest.param(
            UP,
            [1, 3, 2, 4],
            {"rng": 0, "replicates": 10},
            InputError,
            facts("kendall", "replicates", 100, 10),
            id="few replicates",
        ),
    ],
)
def test_lists_that_have_no_tau_are_refused(x, y, options, error, told):
    with pytest.raises(error, match=told):
        kendall(x, y, **options)


def test_compare_tau_checks_all_three_lists():
    with pytest.raises(UndefinedError, match=facts("compare_tau", "target", 4, 1, "τ")):
        compare_tau(UP, UP, [1, 1, 1, 1], rng=0)
    with pytest.raises(InputError, match=facts("compare_tau", "(4,)", "'target': (3,)")):
        compare_tau(UP, UP, UP[1:], rng=0)
    with pytest.raises(InputError, match=facts("compare_tau", "rng", None, "rng=0")):
        compare_tau(UP, UP, UP, rng=None)
