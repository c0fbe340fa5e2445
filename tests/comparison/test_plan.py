"""Which moments are asked for, which combinations have no definition, and pairs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import openloop as ol
from openloop.comparison.plan import chosen_pairs
from openloop.errors import InputError
from openloop.metrics.naming import metric
from tests.examples import CELL, ESTIMATORS, METRICS, NORMALISED, ORDERED, POOLED, same, small_world

WORLD = small_world()
LOG = WORLD.observe(1)
MODELS = {"a": WORLD.predictions["a"], "b": WORLD.predictions["b"]}
THREES = np.full(WORLD.ratings.shape, 3.0)

# The table of definitions: which estimators each kind of metric has.
ALWAYS = {"naive", "stratified", "stratified@2:width", "stratified@3:observed"}
DEFINED = (
    dict.fromkeys(CELL, ALWAYS | {"ips", "snips", "clipped", "clipped@2", "dr"})
    | dict.fromkeys(POOLED, ALWAYS | {"snips", "snips_user", "clipped", "clipped@2", "ips_eq3"})
    | dict.fromkeys(NORMALISED, ALWAYS | {"snips", "clipped@2", "ips_eq3"})
    | dict.fromkeys(ORDERED, ALWAYS)
)


def with_imputed(estimators):
    return [ol.dr(THREES) if name == "dr" else name for name in estimators]


@pytest.fixture(scope="module")
def result():
    return ol.evaluate(MODELS, LOG, metrics=METRICS, estimators=with_imputed(ESTIMATORS))


def test_every_combination_is_either_estimated_or_skipped_with_its_reason(result):
    for name, estimator in product(METRICS, ESTIMATORS):
        which = f"{estimator} of {name}"
        if estimator in DEFINED[name]:
            assert {("a", name, estimator), ("b", name, estimator)} <= set(result.estimates), which
            assert (name, estimator) not in result.skipped, which
            assert np.isfinite(result["a", name, estimator].value), which
            assert result["a", name, estimator].method == estimator
        else:
            assert which in result.skipped[name, estimator]


def test_estimates_do_not_depend_on_what_else_was_asked_for(result):
    # Save for a cap that is tuned over all models together.
    for key in [k for k in result.estimates if k[0] == "a" and k[2] != "clipped"]:
        _, name, estimator = key
        asked = {"metrics": [name], "estimators": with_imputed([estimator])}
        alone = ol.evaluate({"a": MODELS["a"]}, LOG, **asked)[key]
        same(alone.value, result[key].value, err_msg=f"{key}")
        same(alone.influence, result[key].influence, atol=1e-9, err_msg=f"{key}")
        if metric(name).kind == "cell":
            same(alone.cell_variance, result[key].cell_variance, err_msg=f"{key}")
        else:
            assert alone.cell_variance is None, key


def test_influence_has_mean_zero(result):
    for key, estimate in result.estimates.items():
        assert abs(estimate.influence.mean()) < 1e-12 * max(1, np.abs(estimate.influence).max()), key


# -- pairs ---------------------------------------------------------------------------------------------------

LINEAR = ("naive", "ips", "snips", "clipped@2", "stratified")


@pytest.mark.parametrize("estimator", LINEAR)
def test_a_paired_difference_is_the_estimate_on_the_difference(estimator):
    # Both predictions below every rating: the difference of absolute errors is the error of a third model.
    low, lower = WORLD.ratings - 1.5 - MODELS["a"] / 9, WORLD.ratings - 3.0 - MODELS["b"] / 9
    third = WORLD.ratings - (low - lower)
    models = {"low": low, "lower": lower, "difference": third}
    result = ol.evaluate(models, LOG, metrics=["mae"], estimators=[estimator])
    found = result.difference("lower", "low", metric="mae", estimator=estimator)
    single = result["difference", "mae", estimator]
    same(found.value, single.value, rtol=1e-6)  # ratings are stored in single precision
    same(found.influence, single.influence, atol=1e-5)
    same(found.cell_variance, single.cell_variance, rtol=1e-5)


@pytest.mark.parametrize("name", [*CELL[:2], *POOLED])
def test_the_parts_of_a_pair_are_its_weighted_positive_and_negative_differences(name, result):
    pair = result.pair("a", "b", metric=name, estimator="snips")
    a, b = result["a", name, "snips"], result["b", name, "snips"]
    total = a.columns[:, 1].sum()
    fixed, positive, negative = pair.parts
    assert min(positive, negative) > 0
    same((fixed + positive - negative) / total, a.value - b.value)


def test_metrics_without_sums_over_pairs_have_none(result):
    for name in ("rmse", *NORMALISED, *ORDERED):
        assert result.pair("a", "b", metric=name, estimator="naive") is None
        assert result.difference("a", "b", metric=name, estimator="naive").cell_variance is None


def test_pairs_are_all_of_few_none_of_many_or_those_named():
    assert chosen_pairs(["a", "b", "c"], None) == [("a", "b"), ("a", "c"), ("b", "c")]
    many = [f"m{j}" for j in range(11)]
    assert chosen_pairs(many, None) == []
    assert len(chosen_pairs(many, "all")) == 55
    assert chosen_pairs(many, [("m3", "m1")]) == [("m3", "m1")]
    assert chosen_pairs(["a", "b"], ()) == []


def test_pairs_of_unknown_models_and_other_words_are_refused():
    with pytest.raises(InputError, match="'x' is not among the models"):
        chosen_pairs(["a", "b"], [("a", "x")])
    with pytest.raises(InputError, match='"all" or a list'):
        chosen_pairs(["a", "b"], "some")
