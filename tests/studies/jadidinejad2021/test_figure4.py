"""Figure 4: a curve over the number of strata, and claims that can fail."""

from __future__ import annotations

import numpy as np
import pytest

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


def test_a_gain_is_counted_where_the_test_as_coded_finds_one():
    rng = np.random.default_rng(0)
    goal = rng.normal(size=(1, 104))
    poor = goal + 5 * rng.normal(size=(1, 104))
    scores = np.array([poor, goal + 0.1 * rng.normal(size=(1, 104)), poor, -goal])
    assert figure4.significant_gains(scores, goal).tolist() == [1]


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
