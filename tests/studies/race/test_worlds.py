"""Errors on cells that nobody saw, paired by world; claims that can fail."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from openloop.studies.race import worlds
from openloop.studies.race.worlds import BASELINE, BEST, Against
from tests.studies.race.conftest import claim_about
from tests.studies.race.test_completed import given  # noqa: F401  (a fixture)


def test_a_trial_scores_unseen_cells_alone(given):  # noqa: F811
    found = worlds.raced_there(given, kind="taste", by="true", entrant="MF naive", seed=0, quick=True)
    assert 0.3 < found["mse"] < 4
    _, log = worlds.world(given, "taste", 0, quick=True)
    assert found["rows"] == len(log)


@pytest.mark.parametrize("entrant", [BASELINE, "DR-JL", BEST])
def test_every_entrant_runs_with_p_of_rows_alone(given, entrant):  # noqa: F811
    found = worlds.raced_there(given, kind="rating", by="bayes", entrant=entrant, seed=1, quick=True)
    assert np.isfinite(found["mse"])


def test_a_difference_is_students_over_worlds():
    a, b = np.array([1.0, 1.2, 0.9]), np.array([1.3, 1.4, 1.3])
    one = Against(errors=a, baseline=b)
    assert one.less == pytest.approx(1 - 3.1 / 4.0)
    assert one.wins == (stats.ttest_rel(a, b).pvalue < 0.05)
    low, high = stats.ttest_rel(a, b).confidence_interval()
    assert f"[{low:+.3f}, {high:+.3f}]" in str(one)


@pytest.fixture
def found():
    """Fifteen, six and no percent less error than MF-IPS."""
    base, wobble = np.linspace(0.9, 1.1, 8), 0.01 * np.sin(np.arange(8))
    less = {"rating": 0.15, "taste": 0.06, "blind": 0.0}
    return {
        (kind, "true", BEST): Against(errors=base * (1 - by) + wobble - wobble.mean(), baseline=base)
        for kind, by in less.items()
    }


def test_claims_hold_where_the_goal_is_reached(found):
    assert all(claim.holds for claim in worlds.claims(found))


@pytest.mark.parametrize(
    ("kind", "about"), [("rating", ("rating", "10 %")), ("taste", ("taste", "4 %")), ("blind", ("no signal", "1 %"))]
)
def test_a_claim_fails_where_the_error_is_larger(found, kind, about):
    base = found[kind, "true", BEST].baseline
    found[kind, "true", BEST] = Against(errors=base * 1.02, baseline=base)
    assert not claim_about(worlds.claims(found), *about).holds


def test_a_lead_that_chance_explains_is_no_win(found):
    base = found["rating", "true", BEST].baseline
    errors = base * 0.85 + np.array([1, -1] * 4)
    found["rating", "true", BEST] = Against(errors=errors, baseline=base)
    assert not claim_about(worlds.claims(found), "rating", BASELINE).holds
