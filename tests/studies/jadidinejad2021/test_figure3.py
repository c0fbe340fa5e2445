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


def judged(means, noise=None, told=(True, True, False)):
    """Whether each claim holds."""
    return [claim.holds for claim in figure3.claims("coat", many.agreed(means, noise), np.array(told))]


def test_claims_hold_where_panels_differ_clearly_and_fail_where_they_may_not():
    means = {"holdout": 0.2, "Q1": 0.5, "Q2": -0.2}
    assert judged(means) == [True, True, True]
    assert judged(means, {"Q1": 0.4}) == [False, True, True]
    assert judged(means, {"Q2": 0.5}) == [False, True, False]
    unclear = figure3.claims("coat", many.agreed(means, {"Q2": 0.5}), np.array([True]))
    assert [bool(claim.undecided) for claim in unclear] == [True, False, True]
    assert judged(means, told=(True, False, False)) == [True, False, True]
    assert judged({"holdout": 0.5, "Q1": 0.2, "Q2": 0.1}) == [False, True, False]
