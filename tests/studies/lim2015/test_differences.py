"""Differences of Table 1: paired by user, adjusted over users and over folds, and beside the published ones."""

from __future__ import annotations

import pytest

from openloop.studies.lim2015.differences import all_contrasts
from openloop.studies.lim2015.published import ADG, AUC, MEASURES
from tests.studies.lim2015.fitted import AS_PUBLISHED, EQUAL, LOW, made_up


def test_differences_are_paired_by_user_and_adjusted_over_all():
    found = all_contrasts([made_up(AS_PUBLISHED), made_up(EQUAL, name="other")])
    assert len(found) == 2 * 4 * len(MEASURES)
    assert all(c.holm >= c.users.pvalue for c in found)
    assert all(c.holm_folds >= c.folds.pvalue for c in found)
    c = next(c for c in found if (c.a.learner, c.b.learner, c.measure) == (ADG, AUC, "map"))
    assert c.users.value == pytest.approx(0.1, abs=1e-3)
    assert c.users.stderr < 0.001  # the noise that the models share, ten times their own, falls out
    assert c.better
    assert c.value().mark == "*†"
    assert c.base == pytest.approx(LOW[1], abs=0.01)
