"""What weights rest on may be too little for a verdict, however clear the difference is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openloop.audits.basis import Basis
from openloop.audits.verdict import decide
from tests.verdicts import comparison, evidence


def clear(basis):
    """Evidence of two models that differ clearly, with weights that rest on this."""
    users = np.random.default_rng(3).normal(0.3, 0.1, 400)
    return evidence(comparison({"mf": users + 0.05, "bpr": users}), basis=basis, ranked=False)


def test_weights_by_the_rating_alone_judge_ratings_and_no_rankings():
    basis = Basis(sample=600, by_rating=True)
    assert decide(clear(basis)).level == "verdict"
    found = decide(replace(clear(basis), ranked=True))
    assert (found.level, found.reasons[0].code) == ("none", "by-rating")
    assert "Balanced" in found.remedy
    alone = replace(clear(replace(basis, balanced=True)), ranked=True)
    assert decide(alone).level == "none"  # balancing by the rating adds nothing to weights by the rating
    balanced = replace(clear(Basis(sample=600, balanced=True)), ranked=True)
    assert decide(balanced).level == "verdict"


def test_the_guess_of_a_joint_model_is_no_ground():
    found = decide(clear(Basis(modelled=True)))
    assert (found.level, [r.code for r in found.reasons]) == ("none", ["modelled"])
    assert "Balanced" in found.remedy


@pytest.mark.parametrize(("unseen", "level"), [(0.05, "verdict"), (0.06, "none")])
def test_ratings_that_the_log_never_has_are_no_ground(unseen, level):
    assert decide(clear(Basis(sample=600, balanced=True, unseen=unseen))).level == level
