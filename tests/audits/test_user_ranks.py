"""Friedman's test is SciPy's, and Nemenyi's differences are Demšar's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import friedmanchisquare

from openloop.audits.user_ranks import (
    friedman,
    nemenyi,
)
from openloop.errors import EmptyError, InputError, UndefinedError
from tests.facts import facts


def test_friedman_by_hand():
    # Mean ranks 4/3, 5/3, 3 of three users: 12·3/(3·4) · [(2/3)² + (1/3)² + 1²] = 14/3.
    found = friedman([[9, 8, 1], [7, 5, 2], [3, 4, 0]], ["a", "b", "c"])
    assert found.ranks == pytest.approx({"a": 4 / 3, "b": 5 / 3, "c": 3})
    assert (found.statistic, found.users, found.left_out) == (pytest.approx(14 / 3), 3, 0)
    assert found.pvalue == pytest.approx(math.exp(-7 / 3))  # χ² with two degrees of freedom


@given(st.integers(3, 6), st.integers(2, 20), st.randoms(use_true_random=False), st.sampled_from(["higher", "lower"]))
def test_friedman_is_scipys_with_ties_too(k, users, random, better):
    values = np.array([[random.randrange(4) for _ in range(k)] for _ in range(users)])
    values[0] = range(k)  # not every user has all tied
    found = friedman(values, [str(j) for j in range(k)], better=better)
    theirs = friedmanchisquare(*values.T)
    assert (found.statistic, found.pvalue) == pytest.approx((theirs.statistic, theirs.pvalue))
    assert sum(found.ranks.values()) == pytest.approx(k * (k + 1) / 2)


@pytest.mark.parametrize(
    ("k", "q"),
    [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (6, 2.850), (7, 2.949), (8, 3.031), (9, 3.102), (10, 3.164)],
)
def test_nemenyi_has_demsars_table(k, q):
    # Demšar (2006), Table 5a, α = 0.05; he prints 2.343 where the quantile is 2.3437.
    assert nemenyi(k, 7) == pytest.approx(q * math.sqrt(k * (k + 1) / 42), abs=1e-3)


def test_demsars_critical_difference_of_four_classifiers_on_fourteen_sets():
    # Section 3.2.2: 2.569·√(4·5/(6·14)) = 1.25 at 0.05, and 2.291·… = 1.12 at 0.10.
    assert (round(nemenyi(4, 14), 2), round(nemenyi(4, 14, 0.9), 2)) == (1.25, 1.12)


def test_users_without_a_value_are_left_out_and_counted():
    values = np.random.default_rng(0).normal(size=(20, 4))
    holed = np.insert(values, [0, 5, 20], [math.nan, 1, 2, 3], axis=0)
    found = friedman(holed, list("abcd"))
    assert (found.users, found.left_out) == (20, 3)
    assert found.statistic == friedman(values, list("abcd")).statistic


def test_friedman_and_nemenyi_have_their_size():
    # Five models alike. Measured over 4,000 runs of 30 users: 5.0 and 5.2 %.
    rng = np.random.default_rng(16)
    runs = [friedman(rng.normal(size=(30, 5)), list("abcde")) for _ in range(400)]
    assert 0.025 <= np.mean([f.pvalue < 0.05 for f in runs]) <= 0.08
    apart = [max(f.ranks.values()) - min(f.ranks.values()) > f.critical_difference for f in runs]
    assert 0.015 <= np.mean(apart) <= 0.07


@pytest.mark.parametrize(
    ("values", "models", "options", "error", "told"),
    [
        pytest.param([[1, 2]], "ab", {}, EmptyError, ("1 of 1 users", "at least 2"), id="one user"),
        pytest.param([[1, math.nan], [1, 2]], "ab", {}, EmptyError, ("1 of 2 users",), id="one whole user"),
        pytest.param([[1, 2], [2, 1]], "abc", {}, InputError, ("values", "3 models", (2, 2)), id="short rows"),
        pytest.param([[1, math.inf], [2, 1]], "ab", {}, InputError, ("1 values", "infinite", "NaN"), id="inf"),
        pytest.param([[1, 1], [2, 2]], "ab", {}, UndefinedError, ("tied",), id="all tied"),
    ],
)
def test_tables_that_cannot_be_ranked_are_refused(values, models, options, error, told):
    with pytest.raises(error, match=facts("friedman", *told)):
        friedman(values, list(models), **options)
