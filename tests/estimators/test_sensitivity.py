"""Bounds under wrong propensities: by hand, by law, against all vertices, and against the estimates at Γ = 1."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import linprog

from openloop.estimators.sensitivity import (
    critical_gamma,
    critical_gamma_users,
    ips_bounds,
    least_gamma,
    ratio_bounds,
    user_ratio_bounds,
)
from tests.examples import same

FIXED = {"odds": 1.0, "ratio": 0.0}  # a of a whole log: what a weight keeps, whatever Γ
FORM = st.sampled_from(list(FIXED))


@st.composite
def rows(draw, max_rows=8):
    """δ, w of some rows; ties, zeros and weights of very different size are frequent."""
    n = draw(st.integers(1, max_rows))
    value = st.one_of(st.sampled_from([-1.0, 0.0, 0.5, 1.0]), st.floats(-5, 5).map(lambda x: round(x, 6)))
    delta = draw(st.lists(value, min_size=n, max_size=n))
    weight = draw(st.lists(st.one_of(st.sampled_from([1.0, 2.0]), st.floats(1, 1e4)), min_size=n, max_size=n))
    return np.array(delta), np.array(weight)


@st.composite
def rows_of_users(draw):
    """δ, w, a and user of up to four users, some a = 0 but one of each user."""
    parts = draw(st.lists(rows(max_rows=6), min_size=1, max_size=4))
    user = np.repeat(np.arange(len(parts)) * 3, [len(d) for d, _ in parts])
    norm = np.array(draw(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=len(user), max_size=len(user))))
    norm[np.flatnonzero(np.diff(user, prepend=-1))] = 1.0
    return *(np.concatenate(column) for column in zip(*parts, strict=True)), norm, user


def vertices(n, gamma):
    return np.array(list(product([1 / gamma, gamma], repeat=n)))  # (2^n, n)


def brute_ratio(delta, weight, norm, gamma, form="odds"):
    tilt = FIXED[form] + vertices(len(delta), gamma) * (weight - FIXED[form])
    found = tilt @ delta / (tilt @ norm)
    return found.min(), found.max()


def brute_users(delta, weight, norm, user, gamma, form="odds"):
    each = [brute_ratio(delta[user == u], weight[user == u], norm[user == u], gamma, form) for u in np.unique(user)]
    return np.mean(each, axis=0)


def brute_root(bound, value):
    """Where the bound on the other side of zero is reached, by bisection; the limit where it is not."""
    low, high = 1.0, 1e6

    def holds(gamma):
        least, greatest = bound(gamma)
        return least > 0 if value > 0 else greatest < 0

    if holds(high):
        return math.inf
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def parts(delta, weight, certain):
    """D, A and B of a difference."""
    moving = weight - certain
    return np.sum(certain * delta), moving @ np.maximum(delta, 0), moving @ np.maximum(-delta, 0)


def sample(n=400, users=40, seed=0):
    rng = np.random.default_rng(seed)
    user = np.sort(rng.integers(0, users, n))
    return rng.normal(0.2, 1, n), 1 / rng.uniform(0.02, 1, n), rng.uniform(0.2, 1, n), user


# -- by hand -------------------------------------------------------------------------------------------------


def test_two_rows_by_hand():
    delta, weight = np.array([0.0, 1.0]), np.array([1.0, 3.0])
    # Γ = 2: (¼·3)/(1 + ¼·3) and (4·3)/(1 + 4·3)
    same(ratio_bounds(delta, weight, [1, 2], certain=0.0), [[3 / 4, 3 / 7], [3 / 4, 12 / 13]])
    halves = ips_bounds(delta - 0.5, weight, 10, [1, 2], certain=0.0)
    same(halves, [[0.1, (0.75 - 1) / 10], [0.1, (3 - 0.25) / 10]])
    # By odds the first row, p = 1, stays; the second's weight is 1 + 2λ: 2 and 5.
    same(ratio_bounds(delta, weight, [1, 2]), [[3 / 4, 2 / 3], [3 / 4, 5 / 6]])
    same(ips_bounds(delta - 0.5, weight, 10, [1, 2]), [[0.1, 0.05], [0.1, 0.2]])


def test_a_difference_by_hand():
    # S₊ = 4, S₋ = 1 in one user: by ratio it flips at Γ = 2.
    delta, weight = np.array([1.0, -1.0]), np.array([4.0, 1.0])
    assert critical_gamma(0, 4, 1) == pytest.approx(2)
    same(ratio_bounds(delta, weight, 2, certain=0.0)[0], 0)
    one, user = np.ones(2), np.zeros(2, int)
    assert critical_gamma_users(delta, weight, one, user, certain=0.0) == pytest.approx(2, rel=2e-6)
    # By odds the first is 1 + 3λ ≥ 1, and the other's p is 1: D = 0, A = 3, B = 0.
    assert critical_gamma(*parts(delta, weight, 1.0)) == math.inf
    # p = 1/4 and 1/2: 1 + 3/Γ = 1 + Γ at Γ = √3.
    weight = np.array([4.0, 2.0])
    assert critical_gamma(*parts(delta, weight, 1.0)) == pytest.approx(math.sqrt(3))
    assert critical_gamma_users(delta, weight, one, user) == pytest.approx(math.sqrt(3), rel=2e-6)


@pytest.mark.parametrize(
    ("D", "A", "B", "wanted"),
    [
        (1, 3, 2, 1.5), (-1, 3, 2, 1.0), (-1, -0.0, 0, math.inf), (0, 0, 0, 1.0), (2, 0, 0.5, 4.0), (-2, 3, 0, 1.5),
        (0, 4, 0, math.inf), (0, 0, 4, math.inf), (1, 0, 0, math.inf), (-1, 2, 3, 1.5), (-1e8, 2e8, 1e-9, 2.0),
    ],
)  # fmt: skip
def test_gamma_star_by_hand(D, A, B, wanted):
    # D + A/Γ − BΓ = 0; where the difference is negative, the same with A and B swapped and −D
    assert critical_gamma(D, A, B) == pytest.approx(wanted)
    assert critical_gamma(-D, B, A) == pytest.approx(wanted)


def test_the_least_gamma_by_hand():
    # 10,000 effective rows and 10,000 drawn: half against a quarter at least 2, odds of 1 and ⅓, no doubt of them.
    mass, drawn = np.array([0.5, 0.5]), np.array([7500.0, 2500.0])
    error = math.sqrt((4 + 16 / 3) / 1e4)
    wanted = math.exp((math.log(3) - 2.2414 * error) / 2)  # z = 2.2414 for two ratings
    assert least_gamma(mass, 1e4, drawn) == pytest.approx(wanted, rel=1e-4)
    assert least_gamma(mass * 7, 1e4, drawn) == least_gamma(mass, 1e4, drawn)
    assert least_gamma(mass, 1e4, np.array([5000.0, 5000.0])) == 1
    assert least_gamma(mass, 10.0, np.array([3.0, 1.0])) == 1  # too few to tell
    assert math.isfinite(least_gamma(mass, 1e4, np.array([100.0, 0.0])))
    assert least_gamma(np.ones(1), 10.0, np.ones(1)) == 1


def test_right_weights_are_rarely_called_wrong_and_wrong_ones_never_too_wrong():
    rng, shares, logs = np.random.default_rng(0), np.array([0.2, 0.25, 0.25, 0.2, 0.1]), 400
    for factor in (1.0, 1.3):
        called = 0
        for _ in range(logs):
            y, w = rng.choice(5, 2000, p=shares), 1 / np.exp(rng.uniform(np.log(0.05), 0, 2000))
            w = w * np.where(y >= 3, factor, 1 / factor)
            drawn = np.bincount(rng.choice(5, 300, p=shares), minlength=5).astype(float)
            found = least_gamma(np.bincount(y, w, 5), w.sum() ** 2 / (w @ w), drawn)
            called += found > factor
        assert called / logs < 0.05 + 2 * math.sqrt(0.05 * 0.95 / logs)


# -- laws ----------------------------------------------------------------------------------------------------


def test_under_an_exclusion_gamma_is_of_p_and_not_of_pi():
    # s = .2 and t = .8; 10 rows with p = .3 in favour, 16 with p = .9 against: w = 1/(p·s) − t/s is 12.7 and 1.56.
    s, t = 0.2, 0.8
    p, delta = np.repeat([0.3, 0.9], [10, 16]), np.repeat([1.0, -1.0], [10, 16])

    def difference(p):
        return np.sum((1 - p * t) / (p * s) * delta)

    weight = (1 - p * t) / (p * s)
    up, down = weight @ np.maximum(delta, 0), weight @ np.maximum(-delta, 0)
    assert math.sqrt(up / down) == pytest.approx(2.256, abs=1e-3)  # π off by a factor
    off = np.where(delta > 0, 1.52, 1 / 1.52)
    assert difference(p) > 100
    assert difference(p * off) < 0  # but the factor 1.52 on p flips it
    gamma = critical_gamma(*parts(delta, weight, (1 - t) / s))
    for step, sign in ((0.999, 1), (1.001, -1)):
        odds = p / (1 - p) * np.where(delta > 0, gamma * step, 1 / (gamma * step))
        assert difference(odds / (1 + odds)) * sign > 0


# -- against all vertices ------------------------------------------------------------------------------------


@given(case=rows(max_rows=10), gamma=st.floats(1, 100), form=FORM)
def test_pooled_bounds_are_those_of_all_vertices(case, gamma, form):
    delta, weight = case
    low, high = ratio_bounds(delta, weight, gamma, certain=FIXED[form])
    same((low[0], high[0]), brute_ratio(delta, weight, np.ones(len(delta)), gamma, form), atol=1e-10)
    sums = (FIXED[form] + vertices(len(delta), gamma) * (weight - FIXED[form])) @ delta / 7
    low, high = ips_bounds(delta, weight, 7, gamma, certain=FIXED[form])
    same((low[0], high[0]), (sums.min(), sums.max()), atol=1e-8)


@given(case=rows_of_users(), gamma=st.floats(1, 100), form=FORM)
def test_bounds_over_users_are_those_of_all_vertices(case, gamma, form):
    same(np.ravel(user_ratio_bounds(*case, gamma, certain=FIXED[form])), brute_users(*case, gamma, form), atol=1e-10)


@given(case=rows(), form=FORM)
def test_pooled_critical_gamma_is_where_a_bound_crosses_zero(case, form):
    delta, weight = case
    value = weight @ delta
    assume(abs(value) > 1e-6 * (weight @ np.abs(delta)))
    D, A, B = parts(delta, weight, FIXED[form])
    gamma = critical_gamma(D, A, B)
    assume(gamma < 1e3 or gamma == math.inf)
    assume(not (gamma == math.inf and abs(D) < 1e-6 < abs(A - B)))  # a bound that tends to zero is lost in rounding
    one = np.ones(len(delta))
    same(brute_root(lambda g: brute_ratio(delta, weight, one, g, form), value), gamma, rtol=1e-6)
    same(brute_root(lambda g: np.ravel(ratio_bounds(delta, weight, g, certain=FIXED[form])), value), gamma, rtol=1e-6)


@given(case=rows_of_users(), form=FORM)
def test_critical_gamma_over_users_is_where_all_vertices_cross_zero(case, form):
    value = brute_users(*case, 1.0)[0]
    assume(abs(value) > 1e-6)
    wanted = brute_root(lambda g: brute_users(*case, g, form), value)
    assume(wanted < 1e3 or wanted == math.inf)
    found = critical_gamma_users(*case, certain=FIXED[form])
    assume(not (found > 1e3 and wanted == math.inf))  # a bound that tends to zero itself is lost in rounding
    same(found, wanted, rtol=5e-6)


# -- another program -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [1.1, 2.0, 20.0])
def test_a_linear_program_agrees(gamma):
    # Charnes & Cooper: max Σxδ with Σxa = 1 and t·w/Γ ≤ x ≤ t·w·Γ; scipy.optimize.linprog (HiGHS)
    delta, weight, norm, _ = sample(100)
    user, eye = np.zeros(100, int), np.eye(100)
    limits = np.block([[-eye, weight[:, None] / gamma], [eye, -weight[:, None] * gamma]])
    found = [
        sign * linprog(np.append(sign * delta, 0), limits, np.zeros(200), np.append(norm, 0)[None], [1]).fun
        for sign in (1, -1)
    ]
    same(np.ravel(user_ratio_bounds(delta, weight, norm, user, gamma, certain=0.0)), found, rtol=1e-7)


# -- nDCG: the order of the ideal is held --------------------------------------------------------------------

PLACES = 1 / np.log2(np.arange(2, 12))  # nDCG@10


def held(found):
    norm = [PLACES[np.argsort(np.argsort(-w, kind="stable"))] for _, w in found]
    user = np.repeat(np.arange(len(found)), [len(w) for _, w in found])
    return *(np.concatenate(column) for column in zip(*found, strict=True)), np.concatenate(norm), user


def test_no_difference_is_already_critical():
    _, weight, norm, user = sample()
    assert critical_gamma_users(np.zeros(400), weight, norm, user) == 1
    assert critical_gamma_users(np.abs(sample()[0]), weight, norm, user) == math.inf
