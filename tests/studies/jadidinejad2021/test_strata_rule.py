"""The number of strata: what the rule judges, and which number it takes."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.estimators.edges import edges
from openloop.studies.jadidinejad2021 import strata_rule
from openloop.studies.jadidinejad2021.strata_rule import NUMBERS


def gains(levels, n=600, noise=0.05, rng=0):
    """Gains of four models that rise in equal steps with p, and p."""
    rng = np.random.default_rng(rng)
    p = (rng.permutation(n) + 0.5) / n  # above 0, as propensities are
    return np.floor(p * levels) / levels + noise * rng.normal(size=(4, n)), p


def equal(p):
    """1 to 10 strata of equal count."""
    return [np.searchsorted(edges(p, n, "count"), p) for n in NUMBERS]


def test_the_rule_finds_steps():
    gain, p = gains(4)
    errors = strata_rule.errors_within(gain, equal(p), np.random.default_rng(0))
    assert strata_rule.least_number(errors, NUMBERS) == 4


def test_the_rule_takes_one_stratum_where_p_says_nothing():
    gain, p = np.random.default_rng(0).normal(size=(4, 600)), np.random.default_rng(1).random(600)
    errors = strata_rule.errors_within(gain, equal(p), np.random.default_rng(0))
    assert errors.mean(axis=1)[0] == pytest.approx(1)
    assert strata_rule.least_number(errors, NUMBERS) == 1
