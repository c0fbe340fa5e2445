"""Learners by name: those of a class with what is given, a stack and a recalibrated one from one flag."""

from __future__ import annotations

import pytest

from openloop import learners
from openloop.commands.recipes import (
    CLASSES,
    COMBINED,
    MODELS,
    PARAMETERS,
    check_model,
    check_parameters,
    check_weights,
    learner_of,
    option,
    recipe_parameters,
)
from openloop.data.simulate import movie_lovers
from openloop.errors import InputError
from tests.facts import facts

LOG = movie_lovers(users=40, items=30).observe(3)
SMALL = movie_lovers(users=12, items=9).observe(3)
GIVEN = {"factors": 3, "reg": 10.0, "iterations": 7, "threads": 1, "rng": 4}


@pytest.mark.parametrize(("name", "kind"), CLASSES.items())
def test_a_class_has_its_defaults_and_what_is_given(name, kind):
    assert type(learner_of(name, {}, LOG, weighted=True)).__name__ == kind
    own = {of: GIVEN[of] for of in recipe_parameters(name) if of in GIVEN}
    assert own.items() <= learner_of(name, own, LOG, weighted=True).get_params().items()


def test_a_stack_is_a_factorisation_by_three_powers_of_the_weights_and_who_saw_what():
    found = learner_of("stack", {}, LOG, weighted=True)
    first, (second, half), (third, none), seen = found.bases
    assert [base.reg for base in (first, second, third)] == [5.0, 6.0, 7.0]
    assert {base.factors for base in (first, second, third)} == {20}
    assert (half, none, seen.rank) == (0.5, 0.0, 8)
    assert isinstance(seen, learners.Exposure)
    assert (found.folds, found.reg) == (learners.Stack([]).folds, learners.Stack([]).reg)


def test_where_weights_are_equal_one_factorisation_is_enough():
    first, seen = learner_of("stack", {}, LOG, weighted=False).bases
    assert (type(first), type(seen)) == (learners.MF, learners.Exposure)


def test_what_is_given_reaches_all_learners_of_a_stack():
    found = learner_of("stack", GIVEN | {"folds": 3}, LOG, weighted=True)
    first, (second, _), (third, _), seen = found.bases
    assert [base.reg for base in (first, second, third)] == [10.0, 12.0, 14.0]
    for base in (first, second, third):
        assert (base.factors, base.iterations, base.threads, base.rng) == (3, 7, 1, 4)
    assert (found.folds, found.rng, seen.rng) == (3, 4, 4)


def test_recalibrated_is_a_factorisation_in_another_learner():
    found = learner_of("recalibrated", GIVEN | {"folds": 3, "loss": "absolute"}, LOG, weighted=True)
    assert isinstance(found, learners.Recalibrated)
    assert (found.folds, found.rng, found.model.reg, found.model.rng, found.model.loss) == (3, 4, 10.0, 4, "absolute")


def test_factors_and_rank_fit_a_small_grid():
    found = learner_of("stack", {}, SMALL, weighted=True)
    assert found.bases[0].factors == 9
    assert found.bases[-1].rank == 3
    assert learner_of("recalibrated", {}, SMALL, weighted=True).model.factors == 9
    assert learner_of("svd", {}, SMALL, weighted=True).factors == 9
    assert found.fit(SMALL).scores([0]).shape == (1, 9)
    tiny = SMALL.take(SMALL.item < 6, items=movie_lovers(users=12, items=6).observe(0).items)
    with pytest.raises(InputError, match=facts("--model stack", 7, 6, "--model recalibrated")):
        learner_of("stack", {}, tiny, weighted=True)


def test_every_parameter_has_a_model_and_every_model_is_taken():
    assert {of for name in MODELS for of in recipe_parameters(name)} == set(PARAMETERS)
    assert all(set(each.takes) <= set(PARAMETERS) for each in COMBINED.values())
    assert option("bias_reg") == "--bias-reg"
    assert option("rng") == "--seed"
    for name in MODELS:
        check_model(name, propensities=True)


def test_what_a_model_does_not_use_is_refused():
    with pytest.raises(InputError, match=facts("--updates", "stack", "--factors", "--folds", "--seed")):
        check_parameters("stack", {"updates": 3})
    with pytest.raises(InputError, match=facts("--seed", "popularity")):
        check_parameters("popularity", {"rng": 3})
    with pytest.raises(InputError, match=facts("--model", "'stak'", "'stack'")):
        check_model("stak", propensities=False)


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
