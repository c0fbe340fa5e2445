"""Figure 3: a point for each model in each panel, and claims that can fail."""

from __future__ import annotations

import numpy as np

from openloop.audits.rankings import tau_b
from openloop.studies.jadidinejad2021 import figure3
from openloop.studies.jadidinejad2021.models import family_of
from tests.studies.jadidinejad2021 import many


def test_figure_3_has_a_point_for_each_model_in_each_panel(figure3_result):
    (figure,) = figure3_result.figures
    assert len(figure.rows) == len(figure3.PANELS) * len(many.some_experiment(3).fits.models)
    panel = [row for row in figure.rows if row["panel"].startswith("holdout")]
    x, y = (np.array([row[name] for row in panel]) for name in ("open loop", "closed loop"))
    assert panel[0]["panel"] == f"holdout: τ {tau_b(x, y):.2f} (paper: 0.20)"
    assert all(row["family"] == family_of(row["model"]) for row in figure.rows)
    holdout = figure3_result.tables[0].rows[0][1]
    assert (holdout.published, holdout.digits) == (0.20, 2)
