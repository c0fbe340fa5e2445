"""Friedman's test is SciPy's, and Nemenyi's differences are Demšar's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import friedmanchisquare

from openloop.audits.user_ranks import (
    Friedman,
    friedman,
    nemenyi,
    ranks_within_users,
)
from openloop.errors import EmptyError, InputError, UndefinedError
from tests.audits.cases import LOG, WORLD, found
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


def test_two_models_are_the_sign_test():
    values = np.array([[2, 1]] * 9 + [[1, 2]])
    found = friedman(values, ["a", "b"])
    assert found.statistic == pytest.approx((9 - 1) ** 2 / 10)
    # Two models lie apart by Nemenyi where χ² with one degree of freedom is significant.
    assert found.differ("a", "b") is (found.pvalue < 0.05) is True


def test_lower_is_better_turns_the_ranks():
    values = [[1, 2, 3], [1, 3, 2], [2, 1, 3]]
    up, down = friedman(values, ["a", "b", "c"]), friedman(values, ["a", "b", "c"], better="lower")
    assert down.ranks == pytest.approx({m: 4 - rank for m, rank in up.ranks.items()})
    assert down.statistic == pytest.approx(up.statistic)


def test_users_without_a_value_are_left_out_and_counted():
    values = np.random.default_rng(0).normal(size=(20, 4))
    holed = np.insert(values, [0, 5, 20], [math.nan, 1, 2, 3], axis=0)
    found = friedman(holed, list("abcd"))
    assert (found.users, found.left_out) == (20, 3)
    assert found.statistic == friedman(values, list("abcd")).statistic


def test_groups_are_the_bars_of_a_critical_difference_diagram():
    ranks = {"d": 4.0, "a": 1.0, "c": 2.6, "b": 2.0}

    def at(critical):
        return Friedman(statistic=1, pvalue=1, users=9, ranks=ranks, critical_difference=critical, level=0.95).groups

    assert at(1.1) == (("a", "b"), ("b", "c"), ("d",))
    assert at(3.0) == (("a", "b", "c", "d"),)
    assert at(0.5) == (("a",), ("b",), ("c",), ("d",))


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
        pytest.param([[1], [2]], "a", {}, InputError, ("2 models", "got 'a'"), id="one model"),
        pytest.param([[1, 2], [2, 1]], "aa", {}, InputError, ("2 models", "got 'a', 'a'"), id="one name twice"),
        pytest.param([[1, 2], [2, 1]], "abc", {}, InputError, ("values", "3 models", (2, 2)), id="short rows"),
        pytest.param([1, 2], "ab", {}, InputError, ("values", "2 models", (2,)), id="one dimension"),
        pytest.param([[1, math.inf], [2, 1]], "ab", {}, InputError, ("1 values", "infinite", "NaN"), id="inf"),
        pytest.param([[1, 1], [2, 2]], "ab", {}, UndefinedError, ("tied",), id="all tied"),
        pytest.param(
            [[1, 2], [2, 1]], "ab", {"better": "up"}, InputError, ('"higher"', '"lower"', "'up'"), id="better up"
        ),
        pytest.param([[1, 2], [2, 1]], "ab", {"level": 0}, InputError, ("level", 0, 1), id="level 0"),
    ],
)
def test_tables_that_cannot_be_ranked_are_refused(values, models, options, error, told):
    with pytest.raises(error, match=facts("friedman", *told)):
        friedman(values, list(models), **options)


def test_ranks_within_users_are_of_their_own_values():
    rng = np.random.default_rng(0)
    models = {f"m{k}": WORLD.ratings + rng.normal(0, 0.3 + 0.3 * k, WORLD.ratings.shape) for k in range(4)}
    _, result, _ = found(models)
    test = ranks_within_users(result, ("mae", "naive"))
    order = sorted(test.ranks, key=test.ranks.__getitem__)
    assert order == ["m0", "m1", "m2", "m3"]
    assert test.pvalue < 1e-6


def test_users_without_rows_have_no_rank_under_ips_either():
    some = LOG.take(LOG.user < 40)
    models = {**WORLD.predictions, "c": WORLD.predictions["a"] + 0.5}
    _, result, _ = found(models, some)
    for estimator in ("ips", "snips", "naive"):
        assert ranks_within_users(result, ("mae", estimator)).users == len(set(some.user.tolist()))
