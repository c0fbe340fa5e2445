"""Figure 3: a point for each model in each panel."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.audits.rankings import tau_b
from openloop.studies.jadidinejad2021 import as_coded, figure3
from tests.studies.jadidinejad2021 import many


def test_figure_3_has_a_point_for_each_model_in_each_panel(coat_run):
    result = figure3.figure3(coat_run)
    (figure,) = result.figures
    assert len(figure.rows) == len(figure3.PANELS) * len(many.some_experiment(3).fits.models)
    panel = [row for row in figure.rows if row["panel"].startswith("holdout")]
    x, y = (np.array([row[name] for row in panel]) for name in ("open loop", "closed loop"))
    assert panel[0]["panel"] == f"holdout, τ = {tau_b(x, y):.2f}"
    holdout = result.tables[0].rows[0][1]
    assert (holdout.published, holdout.digits) == (0.20, 2)


def test_the_share_of_q1_is_of_rows(coat_run):
    name, share = figure3.figure3(coat_run).tables[0].rows[-1]
    parts = [split.held for split in many.some_experiment(3).splits]
    p = as_coded.propensities(parts[0].given["item"], many.ITEMS, many.USERS)
    shares = [np.mean(as_coded.strata(p[h.rows[1]], 2)[h.shown] == 0) for h in parts]
    assert name == "Q1's share of the feedback"
    assert share.value == pytest.approx(np.mean(shares))
