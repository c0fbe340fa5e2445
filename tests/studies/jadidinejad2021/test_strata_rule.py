"""The number of strata: what the rule judges, and which number it takes."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.estimators.edges import edges
from openloop.studies.jadidinejad2021 import methods, strata_rule
from openloop.studies.jadidinejad2021.strata_rule import NUMBERS
from tests.studies.jadidinejad2021 import many


def gains(levels, n=600, noise=0.05, rng=0):
    """Gains of four models that rise in equal steps with p, and p."""
    rng = np.random.default_rng(rng)
    p = (rng.permutation(n) + 0.5) / n  # above 0, as propensities are
    return np.floor(p * levels) / levels + noise * rng.normal(size=(4, n)), p


def equal(p):
    """1 to 10 strata of equal count."""
    return [np.searchsorted(edges(p, n, "count"), p) for n in NUMBERS]


def test_the_rule_judges_the_strata_that_are_used(monkeypatch):
    held, _, _ = many.held()
    grid = methods.grid_of(held, np.linspace(0.7, 0.05, many.ITEMS))
    judged = []
    monkeypatch.setattr(strata_rule, "errors_within", lambda _, strata, __: judged.extend(strata) or np.ones((10, 9)))
    strata_rule.number_of_strata(held, grid, "outside", 0)
    used = [methods.catalogued(held, grid, "outside", n).keywords["stratum"] for n in NUMBERS]
    assert [s.tolist() for s in judged] == [s.tolist() for s in used]
    of_relevant = equal(grid[held.cells.user, held.cells.item])
    assert any((a != b).any() for a, b in zip(judged, of_relevant, strict=True))  # edges are those of all rows


def test_the_rule_finds_steps():
    gain, p = gains(4)
    errors = strata_rule.errors_within(gain, equal(p), np.random.default_rng(0))
    assert strata_rule.least_number(errors, NUMBERS) == 4


def test_the_rule_takes_one_stratum_where_p_says_nothing():
    gain, p = np.random.default_rng(0).normal(size=(4, 600)), np.random.default_rng(1).random(600)
    errors = strata_rule.errors_within(gain, equal(p), np.random.default_rng(0))
    assert errors.mean(axis=1)[0] == pytest.approx(1)
    assert strata_rule.least_number(errors, NUMBERS) == 1


def test_a_model_without_any_gain_does_not_count():
    gain, p = gains(4)
    gain[0] = 0.0
    errors = strata_rule.errors_within(gain, equal(p), np.random.default_rng(0))
    assert np.isfinite(errors).all()
    assert errors.mean(axis=1)[0] == pytest.approx(1)


def test_the_smallest_number_within_a_standard_error_is_taken():
    errors = np.array([[2.0, 2.0], [1.1, 1.0], [0.5, 1.5], [3.0, 3.0]])  # the least mean is 1, its standard error 0.5
    assert strata_rule.least_number(errors, (1, 2, 3, 4)) == 2
