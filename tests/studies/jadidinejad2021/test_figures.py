"""Figures 3 and 4: a point for each model, and a curve over the number of strata."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t

from openloop.studies.jadidinejad2021 import as_coded, figures
from openloop.studies.jadidinejad2021.agreement import tau
from openloop.studies.jadidinejad2021.ways import NUMBERS
from tests.studies.jadidinejad2021 import many


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setattr(figures, "evidence", lambda *_: many.some_evidence(3))
    return many.Plain("coat")


def test_figure_3_has_a_point_for_each_model_in_each_panel(run):
    result = figures.figure3(run)
    (figure,) = result.figures
    assert len(figure.rows) == len(figures.PANELS) * len(many.some_evidence(3).models)
    panel = [row for row in figure.rows if row["panel"].startswith("holdout")]
    x, y = (np.array([[row[name] for row in panel]]) for name in ("open loop", "closed loop"))
    assert panel[0]["panel"] == f"holdout, τ = {tau(x, y)[0]:.2f}"
    holdout = result.tables[0].rows[0][1]
    assert (holdout.published, holdout.digits) == (0.20, 2)


def test_the_share_of_q1_is_of_rows(run):
    name, share = figures.figure3(run).tables[0].rows[-1]
    held = many.some_evidence(3).rounds[0].held
    p = as_coded.propensities(held.given["item"], many.ITEMS, many.USERS)
    parts = [part.held for part in many.some_evidence(3).rounds]
    shares = [np.mean(as_coded.strata(p[h.rows[1]], 2)[h.shown] == 0) for h in parts]
    assert name == "Q1's share of the feedback"
    assert share.value == pytest.approx(np.mean(shares))


def test_one_stratum_is_holdout_in_every_column(run):
    result = figures.figure4(run)
    at_one = {row["method"]: row["tau"] for row in result.figures[0].rows if row["strata"] == 1}
    goal = np.array(
        [many.some_evidence(3).targets(part, None)["published"].value() for part in many.some_evidence(3).rounds]
    )
    for column, method in (("as coded", "as coded: holdout"), ("ours", "ours: holdout")):
        scores = np.array([part.methods[method](None).value() for part in many.some_evidence(3).rounds])
        assert at_one[column] == pytest.approx(tau(scores, goal).mean())
    assert len(result.figures[0].rows) == 4 * len(NUMBERS)


def test_what_stands_behind_the_papers_spread_is_shown_and_not_held_against_ours(run):
    table = figures.figure4(run).tables[0]
    row = dict(zip(table.columns, table.rows[0], strict=True))
    sd, half = (row[name].value for name in ("sd over 2 to 10", "95 % half-width over 2 to 10"))
    assert half == pytest.approx(t.ppf(0.975, 8) / 3 * sd, rel=1e-4)
    behind = row["behind ± in the paper"]
    assert (behind.published, behind.came_out) == (0.021, None)
    assert row["sd over 2 to 10"].came_out is None
    assert any("does not say what stands behind its ±" in note for note in figures.figure4(run).notes)


def test_the_rules_numbers_are_shown_by_split(run):
    rows = figures.figure4(run).tables[1].rows
    shown = [int(n) for n in rows[0][1].replace(" and", ",").split(", ")]
    assert shown == [part.numbers["ours"]["popularity"] for part in many.some_evidence(3).rounds]
    assert rows[0][4].value <= rows[0][3].value


def test_a_gain_is_counted_where_the_test_as_coded_finds_one():
    rng = np.random.default_rng(0)
    goal = rng.normal(size=(1, 104))
    poor = goal + 5 * rng.normal(size=(1, 104))
    scores = np.array([poor, goal + 0.1 * rng.normal(size=(1, 104)), poor, -goal])
    assert figures._told(scores, goal).tolist() == [1]
