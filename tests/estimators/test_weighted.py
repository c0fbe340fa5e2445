"""Naive, IPS, SNIPS and their clipped forms: by hand, by law, against two-pass formulas and over draws."""

from __future__ import annotations

import re

import numpy as np
import pytest

import openloop as ol
from openloop.blocks.block import Outcome
from openloop.core.feedback import Feedback
from openloop.data.simulate import World
from openloop.errors import UndefinedError
from openloop.estimators.weighted import clipped, ips, ips_eq3, naive, snips, snips_user
from openloop.metrics.naming import metric
from tests.examples import CELL, ORDERED, POOLED, moments, rows_of, same, scaled, small_world
from tests.facts import facts

# Two users × three items; δ of the observed cells is 1, 3 and 2, p is 1/2, 1/4 and 1.
HAND = Feedback.from_arrays([0, 0, 1], [0, 2, 1], [3, 4, 5], users=2, items=3, propensity=[0.5, 0.25, 1.0])
PREDICTED = np.array([2.0, 1.0, 3.0])


def by_hand(cap=None):
    return moments(metric("mae"), rows_of(HAND), Outcome(prediction=PREDICTED), cap=cap)


def test_cell_metrics_by_hand():
    same(naive(by_hand()).value, (1 + 3 + 2) / 3)  # Eq. 5
    same(ips(by_hand()).value, (2 * 1 + 4 * 3 + 1 * 2) / 6)  # Eq. 10
    same(snips(by_hand()).value, (2 * 1 + 4 * 3 + 1 * 2) / (2 + 4 + 1))  # Eq. 11
    same(clipped(by_hand(cap=3.0)).value, (2 * 1 + 3 * 3 + 1 * 2) / 6)


def test_variances_over_cells_by_hand():
    theta = 16 / 7
    same(ips(by_hand()).cell_variance, (0.5 * 4 * 1 + 0.75 * 16 * 9 + 0) / 36)
    same(snips(by_hand()).cell_variance, (0.5 * 4 * (1 - theta) ** 2 + 0.75 * 16 * (3 - theta) ** 2) / 49)
    same(clipped(by_hand(cap=3.0)).cell_variance, (0.5 * 4 * 1 + 0.75 * 9 * 9) / 36)


# User 0 likes items of discount 1 and 1/2 with weights 2 and 4; user 1 one of discount 1/4 with weight 1.
GAINS = Outcome(above=np.array([0, 2, 14]), tied=np.ones(3, int))


def liked(name, **options):
    return moments(metric(name), rows_of(HAND, relevant=np.ones(3)), GAINS, **options)


def test_user_metrics_by_hand():
    same(naive(liked("adg")).value, ((1 + 1 / 2) / 2 + 1 / 4) / 2)
    same(snips(liked("adg")).value, (2 * 1 + 4 / 2 + 1 / 4) / (2 + 4 + 1))  # pooled
    same(snips_user(liked("adg")).value, ((2 * 1 + 4 / 2) / 6 + 1 / 4) / 2)
    same(clipped(liked("adg", cap=3.0)).value, (2 * 1 + 3 / 2 + 1 / 4) / (2 + 3 + 1))
    same(ips_eq3(liked("adg")).value, ((2 * 1 + 4 / 2) / 2 + 1 / 4) / 2)


def test_ndcg_is_normalised_by_the_ideal_order_of_the_weights():
    second = 1 / np.log2(3)
    # User 0's heaviest item comes first in the ideal: 4 · 1 + 2 · 1/log2(3).
    same(snips(liked("ndcg", ideal=True)).value, ((2 * 1 + 4 / 2) / (4 + 2 * second) + 1 / 4) / 2)
    same(snips(liked("ndcg@1", ideal=True)).value, (2 * 1 / 4 + 0) / 2)
    same(
        clipped(liked("ndcg", cap=3.0, ideal=True)).value,
        ((2 * 1 + 3 / 2) / (3 + 2 * second) + 1 / 4) / 2,
    )


def test_ndcg_of_the_best_order_is_one_under_any_weights():
    rng = np.random.default_rng(0)
    log = Feedback.from_arrays(np.repeat(np.arange(9), 4), np.tile(np.arange(4), 9), np.full(36, 5.0), items=10)
    p = rng.uniform(0.1, 1, 36)
    scores = np.full((9, 10), -1.0)
    scores[log.user, log.item] = 1 / p  # the rarest first
    result = ol.evaluate({"m": scores}, log, p, metrics=["ndcg", "ndcg@2"], estimators=["snips", "clipped@3"])
    same([e.value for e in result.estimates.values()], 1)
    scores[:, 4:] = 99
    worse = ol.evaluate({"m": scores}, log, p, metrics=["ndcg"], estimators=["snips"])["m", "ndcg", "snips"]
    assert 0 < worse.value < 1


# -- what has no definition ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", POOLED)
def test_ips_of_a_user_metric_is_undefined(name):
    with pytest.raises(UndefinedError, match=facts("ips", name, "relevant items")):
        ips(liked(name))


@pytest.mark.parametrize("estimator", [snips, clipped])
@pytest.mark.parametrize("name", ORDERED)
def test_metrics_on_the_order_have_no_weighted_estimate(name, estimator):
    with pytest.raises(UndefinedError, match=facts(estimator.__name__, name, "naive", "stratified")):
        estimator(liked(name, cap=2.0))


@pytest.mark.parametrize("name", ["mae", "ndcg", "map"])
def test_a_users_own_ratio_is_defined_where_lims_model_is_unbiased(name):
    with pytest.raises(UndefinedError, match=facts("snips_user", name, "adg", "atop", "recall@k")):
        snips_user(liked(name) if name != "mae" else by_hand())


def test_weights_are_needed_for_weighted_estimates():
    plain = moments(metric("mae"), rows_of(HAND, probability=None), Outcome(prediction=PREDICTED))
    assert naive(plain).value == 2
    for estimator in (ips, snips):
        with pytest.raises(UndefinedError, match=facts("mae", "propensities")):
            estimator(plain)


# -- laws ----------------------------------------------------------------------------------------------------

WORLD = small_world()
LOG = WORLD.observe(1)
MODELS = {"a": WORLD.predictions["a"], "b": WORLD.predictions["b"]}


@pytest.mark.parametrize("over", ["users", "cells"])
def test_snips_of_a_constant_is_that_constant_with_zero_width(over):
    shifted = {"m": WORLD.ratings.astype(float) + 0.7}
    found = ol.evaluate(shifted, LOG, metrics=["mae"], estimators=["snips", "ips"])
    low, high = found["m", "mae", "snips"].interval(over=over)
    same((low, high), (0.7, 0.7), rtol=1e-7)  # ratings are stored in single precision
    assert high - low < 1e-6
    wide = found["m", "mae", "ips"].interval(over=over)
    assert wide.high - wide.low > 0.01  # while ips does not know that it is constant


@pytest.mark.parametrize("name", [*CELL, *POOLED, "ndcg"])
def test_scaling_all_weights_leaves_snips_alone(name):
    one, other = (
        ol.evaluate(MODELS, scaled(LOG, factor), metrics=[name], estimators=["snips"]) for factor in (1, 0.01)
    )
    for key, estimate in one.estimates.items():
        same(other[key].value, estimate.value)
        same(other[key].influence, estimate.influence, atol=1e-9)


@pytest.mark.parametrize("name", [*CELL, *POOLED])
def test_a_cap_that_cuts_nothing_is_no_cap(name):
    whole = "ips" if metric(name).kind == "cell" else "snips"
    largest = float((1 / LOG.propensity).max())
    result = ol.evaluate(MODELS, LOG, metrics=[name], estimators=[f"clipped@{largest + 1}", whole])
    for model in MODELS:
        uncut, cut = result[model, name, whole], result[model, name, f"clipped@{largest + 1}"]
        same(cut.value, uncut.value)
        same(cut.influence, uncut.influence)
        assert cut.diagnostics.clipped_share == 0
        if metric(name).kind == "cell":
            same(cut.cell_variance, uncut.cell_variance)


# -- variances over cells, against a direct two-pass computation ---------------------------------------------


def two_pass(estimator, delta, p, cells, cap=3.0):
    w, cut = 1 / p, np.minimum(1 / p, cap)
    theta = (w * delta).sum() / w.sum()
    return {
        "naive": ((1 - p) * (delta - delta.mean()) ** 2).sum() / len(p) ** 2,
        "ips": ((1 - p) * w**2 * delta**2).sum() / cells**2,
        "snips": ((1 - p) * w**2 * (delta - theta) ** 2).sum() / w.sum() ** 2,
        "clipped@3": ((1 - p) * cut**2 * delta**2).sum() / cells**2,
    }[estimator]


@pytest.mark.parametrize("estimator", ["naive", "ips", "snips", "clipped@3"])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_variances_over_cells_are_those_of_two_passes(estimator, offset):
    predicted = {"m": WORLD.predictions["a"] + offset}
    delta = np.abs(LOG.rating - predicted["m"][LOG.user, LOG.item])
    found = ol.evaluate(predicted, LOG, metrics=["mae"], estimators=[estimator])["m", "mae", estimator]
    same(found.cell_variance, two_pass(estimator, delta, LOG.propensity, 360), rtol=1e-6 if offset else 1e-10)


def test_variances_over_cells_are_those_of_the_draws():
    world, rng, draws = small_world(60, 20, seed=5), np.random.default_rng(3), 1000
    names = ["ips", "snips", "clipped@3", "dr", "stratified@3"]
    ways = [ol.dr(np.full((60, 20), 3.0)) if name == "dr" else name for name in names]
    options = {"metrics": ["mae"], "estimators": ways, "pairs": ()}
    found = [ol.evaluate({"m": world.predictions["a"]}, world.observe(rng), **options) for _ in range(draws)]
    for name in names:
        values = np.array([f["m", "mae", name].value for f in found])
        stated = np.array([f["m", "mae", name].cell_variance for f in found])
        # A variance of 1,000 draws has a relative error of √(2/1000) = 4.5 %.
        assert abs(stated.mean() / values.var(ddof=1) - 1) < 0.15, name


def test_ips_is_unbiased_and_naive_is_not():
    rng = np.random.default_rng(0)
    Y = rng.integers(1, 6, (40, 25)).astype(np.float32)
    world = World(ratings=Y, propensities=0.08 * Y, predictions={"m": np.full(Y.shape, 2.0)})
    truth = np.abs(Y - 2).mean()
    options = {"metrics": ["mae"], "estimators": ["naive", "ips"], "pairs": ()}
    found = [ol.evaluate(dict(world.predictions), world.observe(rng), **options) for _ in range(400)]
    for name, right in (("ips", True), ("naive", False)):
        values = np.array([f["m", "mae", name].value for f in found])
        off = abs(values.mean() - truth) / (values.std() / np.sqrt(400))
        assert off < 3.5 if right else off > 10, name


# -- square roots --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ["naive", "ips", "snips", "clipped@2", "stratified"])
@pytest.mark.parametrize("over", ["users", "cells"])
def test_rmse_is_the_root_of_mse_with_the_root_of_its_interval(estimator, over):
    result = ol.evaluate(MODELS, LOG, metrics=["mse", "rmse"], estimators=[estimator])
    mse, rmse = result["a", "mse", estimator], result["a", "rmse", estimator]
    same(rmse.value, np.sqrt(mse.value))
    same(rmse.influence, mse.influence / (2 * rmse.value))
    same(rmse.interval(over=over), np.sqrt(np.maximum(mse.interval(over=over), 0)))
    same(rmse.function(rmse.columns.sum(axis=0)), rmse.value)


def test_scaling_all_weights_scales_ips():
    one, other = (ol.evaluate(MODELS, scaled(LOG, f), metrics=["mae"], estimators=["ips"]) for f in (1, 0.5))
    same(other["a", "mae", "ips"].value, 2 * one["a", "mae", "ips"].value)
    found = other["a", "mae", "ips"].diagnostics
    assert any(re.search(facts("population", f"{found.mass:.2f}"), flag) for flag in found.flags)


def test_cut_weights_have_diagnostics_of_their_own_and_say_when_they_bias():
    world = small_world(users=300)
    log = world.observe(0)
    found = ol.evaluate({"a": world.predictions["a"]}, log, metrics=["mae"], estimators=["snips", "clipped@1.5"])
    cut, plain = found["a", "mae", "clipped@1.5"].diagnostics, found["a", "mae", "snips"].diagnostics
    w = np.minimum(1 / log.propensity, 1.5)
    assert cut.mass == pytest.approx(w.sum() / world.ratings.size)
    assert cut.effective_size == pytest.approx(w.sum() ** 2 / (w**2).sum(), rel=0.05)
    assert cut.quantiles[1.0] == 1.5 < plain.quantiles[1.0]
    assert any(re.search(facts("clipping", f"{cut.mass:.2f}"), flag) for flag in cut.flags)
