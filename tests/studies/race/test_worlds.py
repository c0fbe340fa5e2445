"""Errors on cells that nobody saw, paired by world; claims that can fail."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from openloop.studies.race import worlds
from openloop.studies.race.protocol import Start, settled
from openloop.studies.race.worlds import BEST, Against
from tests.studies.race.conftest import claim_about
from tests.studies.race.test_completed import given  # noqa: F401  (a fixture)


def test_a_trial_scores_unseen_cells_alone(given):  # noqa: F811
    found = worlds.raced_there(given, kind="taste", by="true", entrant="MF naive", seed=0, quick=True)
    made, log = worlds.world(given, "taste", 0, quick=True)
    start = Start(
        log=log, p=log.propensity, covariates={}, seed=0, quick=True, factors=worlds.FACTORS, regs=worlds.REGS
    )
    model = settled(worlds.RACERS["MF naive"], start).model
    everywhere = (model.scores(np.arange(log.n_users)) - made.ratings) ** 2
    seen = set(zip(log.user.tolist(), log.item.tolist(), strict=True))
    unseen = [e for cell, e in np.ndenumerate(everywhere) if cell not in seen]
    assert found["mse"] == pytest.approx(np.mean(unseen), rel=1e-5)
    assert found["mse"] > 1.005 * everywhere.mean()  # the cells it was trained on are easier
    assert found["rows"] == len(log) == everywhere.size - len(unseen)


def test_a_difference_is_students_over_worlds():
    a, b = np.array([1.0, 1.2, 0.9]), np.array([1.3, 1.4, 1.3])
    one = Against(errors=a, baseline=b)
    assert one.less == pytest.approx(1 - 3.1 / 4.0)
    assert one.wins == (stats.ttest_rel(a, b).pvalue < 0.05)
    low, high = stats.ttest_rel(a, b).confidence_interval()
    assert f"[{low:+.3f}, {high:+.3f}]" in str(one)


def against(less, noise=0.0):
    """So much less error than MF-IPS, the same in every world but for `noise`."""
    base, wobble = np.linspace(0.9, 1.1, 8), np.sin(np.arange(8))
    return Against(errors=base * (1 - less) + (0.001 + noise) * (wobble - wobble.mean()), baseline=base)


@pytest.fixture
def found():
    """Fifteen, six and no percent less error than MF-IPS."""
    less = {"rating": 0.15, "taste": 0.06, "blind": 0.0}
    found = {(kind, by, BEST): against(share) for kind, share in less.items() for by in ("true", "bayes")}
    del found["blind", "bayes", BEST]  # not raced
    return found


def test_claims_hold_where_the_goal_is_reached(found):
    told = list(worlds.claims(found))
    assert len(told) == 5
    assert all(claim.holds for claim in told)


@pytest.mark.parametrize(
    ("kind", "by", "about"),
    [
        ("rating", "true", ("rating", "true p", "10 %")),
        ("taste", "true", ("taste", "true p", "4 %")),
        ("blind", "true", ("no signal", "true p", "1 %")),
        ("rating", "bayes", ("rating", "naive Bayes")),
        ("taste", "bayes", ("taste", "naive Bayes")),
    ],
)
def test_a_claim_fails_where_the_error_is_larger_and_no_other_one_does(found, kind, by, about):
    found[kind, by, BEST] = against(-0.02)
    told = list(worlds.claims(found))
    assert not claim_about(told, *about).holds
    assert sum(claim.holds for claim in told) == len(told) - 1
