"""Holm's correction, paired contrasts, effect sizes and Γ* of sums."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from openloop.audits.contrasts import contrasts, holm
from openloop.core.comparison import PairSums
from tests.examples import same
from tests.verdicts import comparison

RNG = np.random.default_rng(0)
USERS = RNG.normal(size=200)
VALUES = {"a": USERS + 0.3, "b": USERS + RNG.normal(0, 0.5, 200), "c": USERS - 0.4 + RNG.normal(0, 0.5, 200)}


def test_holm_by_hand():
    same(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    same(holm([0.5, 0.6]), [1.0, 1.0])
    same(holm([0.2]), [0.2])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_lies_between_plain_and_bonferroni_and_keeps_the_order(p):
    p = np.array(p)
    adjusted = holm(p)
    assert np.all(adjusted >= p)
    assert np.all(adjusted <= np.minimum(1, len(p) * p) + 1e-15)
    order = np.argsort(p, kind="stable")
    assert np.all(np.diff(adjusted[order]) >= 0)


def test_holm_keeps_the_family_wise_error():
    # 5 true nulls of 5, dependent through a common part: false alarms in at most 5 % of the runs.
    rng, runs = np.random.default_rng(1), 2000
    z = 0.7 * rng.normal(size=(runs, 1)) + math.sqrt(0.51) * rng.normal(size=(runs, 5))
    alarms = np.mean([holm(p).min() < 0.05 for p in 2 * stats.norm.sf(np.abs(z))])
    assert alarms < 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


def test_a_contrast_is_the_paired_t_test():
    found = {(c.a, c.b): c for c in contrasts(comparison(VALUES), "recall@10", "snips")}
    for (a, b), c in found.items():
        difference = VALUES[a] - VALUES[b]
        error = stats.sem(difference)
        same(c.pvalue, 2 * stats.t.sf(abs(difference.mean()) / error, c.df), rtol=1e-8)
        same((c.low, c.high), stats.t.interval(0.95, c.df, difference.mean(), error), rtol=1e-8)
        # heavier tails than the normal's leave fewer degrees of freedom than users
        assert c.df == pytest.approx(
            min(len(difference) - 1, 3 * len(difference) / stats.kurtosis(difference, fisher=False) - 1)
        )
        same(c.effect, difference.mean() / difference.std(ddof=1))
    same([c.holm for c in found.values()], holm([c.pvalue for c in found.values()]))
    assert found["a", "b"].better == "a"


def test_equal_models_do_not_beat_each_other():
    (c,) = contrasts(comparison({"a": USERS, "b": USERS}), "recall@10", "snips")
    assert (c.value, c.stderr, c.pvalue, c.effect, c.better) == (0, 0, 1, 0, None)


def test_a_constant_difference_is_certain():
    (c,) = contrasts(comparison({"a": USERS, "b": np.round(USERS) * 0 + USERS - 1}), "recall@10", "snips")
    assert c.better == "a"
    assert c.effect == math.inf  # rounding aside, every user agrees


def test_rounding_is_no_difference():
    noise = USERS + 1e-16 * RNG.normal(size=200)
    (c,) = contrasts(comparison({"a": USERS + 5, "b": noise + 5}), "recall@10", "snips")
    assert (c.value, c.pvalue, c.better, c.effect) == (0, 1, None, 0)
    (shifted,) = contrasts(comparison({"a": USERS + 6, "b": noise + 5}), "recall@10", "snips")
    assert shifted.better == "a"
    assert shifted.effect == math.inf  # every user agrees, rounding aside


def test_gamma_star_is_shown_where_the_interval_leaves_out_zero():
    own = {
        ("a", "b"): PairSums(parts=(0, 9, 4)),
        ("a", "c"): PairSums(parts=(0, 2, 0), form="ratio"),
        ("b", "c"): PairSums(parts=(1.5, 2, 2)),  # 1.5 + 2/Γ = 2Γ at Γ = (1.5 + √18.25)/4
    }
    found = contrasts(comparison(VALUES, pairs=own), "recall@10", "snips")
    assert [c.gamma for c in found] == [pytest.approx(1.5), math.inf, pytest.approx((1.5 + math.sqrt(18.25)) / 4)]
    assert [c.gamma_form for c in found] == ["odds", "ratio", "odds"]
    alike = comparison({"a": USERS, "b": USERS[::-1]}, pairs={("a", "b"): PairSums(parts=(0, 9, 4))})
    assert contrasts(alike, "recall@10", "snips")[0].gamma is None
    clipped = comparison(VALUES, estimators=["clipped@5"], pairs=own)
    assert {c.gamma for c in contrasts(clipped, "recall@10", "clipped@5")} == {None}
