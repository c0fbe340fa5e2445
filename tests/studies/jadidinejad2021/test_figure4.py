"""Figure 4: a curve over the number of strata, and claims that can fail."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t

from openloop.audits.rankings import tau_b
from openloop.studies.jadidinejad2021 import figure4
from openloop.studies.jadidinejad2021.strata_rule import NUMBERS
from tests.studies.jadidinejad2021 import many


def test_one_stratum_is_holdout_in_every_column(figure4_result):
    at_one = {row["method"]: row["tau"] for row in figure4_result.figures[0].rows if row["strata"] == 1}
    found = many.some_experiment(3)
    for column, method in (("as coded", "as coded: holdout"), ("ours", "ours: holdout")):
        assert at_one[column] == pytest.approx(tau_b(found.scores(method, None), found.goals(None)).mean())
    assert len(figure4_result.figures[0].rows) == 4 * len(NUMBERS)


def test_the_papers_spread_is_shown_and_not_compared_with_ours(figure4_result):
    table = figure4_result.tables[0]
    row = dict(zip(table.columns, table.rows[0], strict=True))
    sd, half = (row[name].value for name in ("sd over 2 to 10", "95 % half-width over 2 to 10"))
    assert half == pytest.approx(t.ppf(0.975, 8) / 3 * sd, rel=1e-4)
    behind = row["the paper's ±"]
    assert (behind.published, behind.came_out) == (0.021, None)
    assert row["sd over 2 to 10"].came_out is None
    assert any("does not say what its ± is" in note for note in figure4_result.notes)
    assert row["mean τ, 2 to 10, 14 models without WMF"].value == pytest.approx(row["mean τ, 2 to 10"].value)


def test_the_rules_numbers_are_shown_by_split_with_edges_marked(figure4_result):
    rows = figure4_result.tables[1].rows
    shown = rows[0][1].replace(" and", ",").split(", ")
    picked = [split.numbers["ours"]["popularity"] for split in many.some_experiment(3).splits]
    assert shown == [f"{n}{'↓' if n == 1 else '↑' if n == 10 else ''}" for n in picked]
    assert rows[0][4].value <= rows[0][3].value


def test_a_gain_is_counted_where_the_test_as_coded_finds_one():
    rng = np.random.default_rng(0)
    goal = rng.normal(size=(1, 104))
    poor = goal + 5 * rng.normal(size=(1, 104))
    scores = np.array([poor, goal + 0.1 * rng.normal(size=(1, 104)), poor, -goal])
    assert figure4.significant_gains(scores, goal).tolist() == [1]


def test_only_what_the_paper_prints_is_drawn_beside_ours(figure4_result):
    point, mean = figure4.published_points("coat")
    assert point == {"strata": 1, "method": "as coded", "tau": 0.202}
    assert (mean["strata"], mean["to"], mean["tau"]) == (2, 10, 0.266)
    rules = [layer for layer in figure4_result.figures[0].chart["layer"] if layer["mark"]["type"] == "rule"]
    assert len(rules) == 1
    assert figure4_result.compared() == 0  # Table 6's, or chance
    assert figure4.published_points("another") == []
    assert "Of 2 to 10 strata the paper prints only the mean, 0.266" in figure4_result.figures[0].caption
    assert figure4_result.tables[-1].name == "figure4_yahoo-r3_published"


def judged(**world):
    """Whether each claim holds."""
    return [claim.holds for claim in claimed(**world)]


def claimed(coded=0.3, ours=0.5, rule=0.6, noise=None, gains=(5, 9, 4)):
    """The claims where τ is 0.2 with one stratum, and these with several, as coded and ours."""
    means = {"as coded 1": 0.2} | {f"as coded {n}": coded for n in figure4.SEVERAL}
    means |= {f"ours {n}": ours for n in figure4.SEVERAL} | {"rule": rule}
    return list(figure4.claims("coat", many.agreed(means, noise), np.array(gains, float)))


def test_claims_hold_where_gains_are_clear_and_fail_where_they_are_not():
    assert judged() == [True, True, True, True, True]
    assert judged(coded=0.1) == [False, True, False, True, True]
    assert judged(gains=(5, 4, 4)) == [True, False, True, True, True]  # most splits, not one of them
    assert judged(noise={"as coded 1": 0.3}) == [True, True, False, True, True]
    assert judged(ours=0.3) == [True, True, True, False, True]
    assert judged(noise={"ours 7": 0.5})[3] is False  # every number of strata, not most
    assert judged(rule=0.5) == [True, True, True, True, False]
    assert [claim.ours for claim in claimed()] == [False, False, False, True, True]
    assert [bool(c.undecided) for c in claimed(noise={"as coded 1": 0.3})] == [False, False, True, False, False]
