"""Learners by name: those of a class with what is given, a stack and a recalibrated one from one flag."""

from __future__ import annotations

import pytest

from openloop import learners
from openloop.commands.recipes import (
    MODELS,
    check_model,
    check_weights,
    learner_of,
)
from openloop.data.simulate import movie_lovers
from openloop.errors import InputError
from tests.facts import facts

LOG = movie_lovers(users=40, items=30).observe(3)


def test_a_stack_is_a_factorisation_by_three_powers_of_the_weights_and_who_saw_what():
    found = learner_of("stack", {}, LOG, weighted=True)
    first, (second, half), (third, none), seen = found.bases
    assert [base.reg for base in (first, second, third)] == [5.0, 6.0, 7.0]
    assert {base.factors for base in (first, second, third)} == {20}
    assert (half, none, seen.rank) == (0.5, 0.0, 8)
    assert isinstance(seen, learners.Exposure)
    assert (found.folds, found.reg) == (learners.Stack([]).folds, learners.Stack([]).reg)


def test_a_model_that_needs_p_is_refused_without(monkeypatch):
    monkeypatch.setattr(learners.Bias, "needs_propensities", True)
    check_model("bias", propensities=True)
    with pytest.raises(InputError, match=facts("--model bias", "--propensity COLUMN")):
        check_model("bias", propensities=False)


def test_a_model_without_weights_is_refused_with_them():
    check_weights("mixture", weighted=False)
    for name in set(MODELS) - {"mixture", "ordinal-mf", "joint-mnar"}:
        check_weights(name, weighted=True)
    with pytest.raises(InputError, match=facts("--model mixture", "--propensity", "--weight", "--model mf")):
        check_weights("mixture", weighted=True)
