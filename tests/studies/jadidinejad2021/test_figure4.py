"""Figure 4: a curve over the number of strata."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t

from openloop.audits.rankings import tau_b
from openloop.studies.jadidinejad2021 import figure4
from openloop.studies.jadidinejad2021.strata_rule import NUMBERS
from tests.studies.jadidinejad2021 import many


def test_one_stratum_is_holdout_in_every_column(coat_run):
    result = figure4.figure4(coat_run)
    at_one = {row["method"]: row["tau"] for row in result.figures[0].rows if row["strata"] == 1}
    found = many.some_experiment(3)
    for column, method in (("as coded", "as coded: holdout"), ("ours", "ours: holdout")):
        assert at_one[column] == pytest.approx(tau_b(found.scores(method, None), found.goals(None)).mean())
    assert len(result.figures[0].rows) == 4 * len(NUMBERS)


def test_what_stands_behind_the_papers_spread_is_shown_and_not_held_against_ours(coat_run):
    table = figure4.figure4(coat_run).tables[0]
    row = dict(zip(table.columns, table.rows[0], strict=True))
    sd, half = (row[name].value for name in ("sd over 2 to 10", "95 % half-width over 2 to 10"))
    assert half == pytest.approx(t.ppf(0.975, 8) / 3 * sd, rel=1e-4)
    behind = row["behind ± in the paper"]
    assert (behind.published, behind.came_out) == (0.021, None)
    assert row["sd over 2 to 10"].came_out is None
    assert any("does not say what stands behind its ±" in note for note in figure4.figure4(coat_run).notes)


def test_the_rules_numbers_are_shown_by_split(coat_run):
    rows = figure4.figure4(coat_run).tables[1].rows
    shown = [int(n) for n in rows[0][1].replace(" and", ",").split(", ")]
    assert shown == [split.numbers["ours"]["popularity"] for split in many.some_experiment(3).splits]
    assert rows[0][4].value <= rows[0][3].value


def test_a_gain_is_counted_where_the_test_as_coded_finds_one():
    rng = np.random.default_rng(0)
    goal = rng.normal(size=(1, 104))
    poor = goal + 5 * rng.normal(size=(1, 104))
    scores = np.array([poor, goal + 0.1 * rng.normal(size=(1, 104)), poor, -goal])
    assert figure4.significant_gains(scores, goal).tolist() == [1]
