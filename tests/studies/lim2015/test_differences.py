"""Differences of Table 1: paired by user, adjusted over users and over folds, and beside the published ones."""

from __future__ import annotations

import math

import pytest

from openloop.studies.lim2015.differences import all_contrasts, differences_figure, differences_table
from openloop.studies.lim2015.published import ADG, AUC, MEASURES, SHOWN, TABLE1
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


def test_a_difference_over_folds_alone_that_many_tests_explain_is_not_marked():
    found = all_contrasts([made_up(EQUAL, name=f"n{k}", seed=k) for k in range(6)])
    lucky = [c for c in found if c.folds.pvalue < 0.05]
    assert lucky  # 120 tests of nothing
    assert not any("†" in c.value().mark for c in lucky)


def test_the_table_has_a_row_for_each_pair():
    rows = differences_table(all_contrasts([made_up(EQUAL)])).rows
    assert len(rows) == 4
    assert rows[0][0] == f"made up, {ADG} − {AUC}, 10 updates"


def test_the_figure_has_ours_and_the_published_differences():
    figure = differences_figure(all_contrasts([made_up(AS_PUBLISHED)]))
    ours = [row for row in figure.rows if row["data"] == "made up"]
    assert len(ours) == 2 * len(MEASURES)  # both numbers of updates
    row = next(r for r in figure.rows if r["data"] == "ml-10m (published)" and r["measure"] == SHOWN["map"])
    (a, error_a), (b, error_b) = (TABLE1["ml-10m", x][1] for x in (ADG, AUC))
    assert row["percent"] == pytest.approx(100 * (a - b) / b)
    assert row["high"] - row["percent"] == pytest.approx(196 * math.hypot(error_a, error_b) / b)
    assert len(figure.chart["concat"]) == 4
