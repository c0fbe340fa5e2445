"""The scores of Table 6: τ as others compute it, and the test as coded by split."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kendalltau

from openloop.studies.jadidinejad2021 import as_coded
from openloop.studies.jadidinejad2021.table6_scores import CutScores


def some_scores(models=40, rng=0):
    """Three splits: in the first two "good" ranks nearly as the open loop does, in the last it does not."""
    rng = np.random.default_rng(rng)
    goal = rng.normal(size=(3, models))
    good = goal + 0.1 * rng.normal(size=goal.shape)
    good[2] = rng.normal(size=models)
    return CutScores(methods={"good": good, "poor": goal + 3 * rng.normal(size=goal.shape)}, goal=goal)


def test_tau_is_kendalls_by_split():
    found = some_scores()
    for split in range(3):
        scores, goal = found.in_split(split)
        assert found.taus["poor"][split] == pytest.approx(kendalltau(scores["poor"], goal).statistic)


def test_the_test_as_coded_is_asked_in_each_split():
    found = some_scores()
    tau = found.taus
    between = [kendalltau(found.methods["good"][r], found.methods["poor"][r]).statistic for r in range(3)]
    told = [as_coded.differs(tau["good"][r], tau["poor"][r], between[r], 40) for r in range(3)]
    assert found.ahead("good", "poor").tolist() == [t and tau["good"][r] > tau["poor"][r] for r, t in enumerate(told)]
    assert found.ahead("good", "poor").tolist()[:2] == [True, True]
    assert not found.ahead("poor", "good")[:2].any()


def test_some_of_the_models_are_compared_by_themselves():
    found, keep = some_scores(), np.arange(40) % 2 == 0
    fewer = found.among(keep)
    assert fewer.goal.shape == (3, 20)
    expected = kendalltau(found.methods["good"][0, keep], found.goal[0, keep]).statistic
    assert fewer.taus["good"][0] == pytest.approx(expected)
