"""The demonstration holds estimates against a truth that is computed here a second time."""

from __future__ import annotations

import json
import re
from dataclasses import FrozenInstanceError
from itertools import pairwise

import numpy as np
import pytest

from openloop.commands.demo import estimates as d
from openloop.data.simulate import schnabel_world
from openloop.errors import InputError
from tests.facts import facts

MODELS = ("REC_ONES", "REC_FOURS", "ROTATE", "SKEWED", "COARSENED")


@pytest.fixture(scope="module")
def shown():
    return d.demonstrate(300, 400, seed=0)


def made(truth, **values):
    """By hand: the truth and the values of each estimator, one number a model, the same for both metrics."""
    filled = {estimator: values.get(estimator, truth) for estimator in d.ESTIMATORS}
    judgements = {
        (model, metric, estimator): d.Judgement(truth=t, value=x, low=x - 0.1, high=x + 0.1)
        for metric in d.METRICS
        for estimator, row in filled.items()
        for model, t, x in zip("abc", truth, row, strict=False)
    }
    better = {"mae": "lower", "dcg@50": "higher"}
    return d.Demonstration(users=10, items=50, seed=0, observed=25, better=better, judgements=judgements)


# -- by hand -------------------------------------------------------------------------------------------------


def test_an_interval_covers_its_limits_and_forgives_rounding():
    assert d.Judgement(truth=1.0, value=0.9, low=0.8, high=1.0).covers
    assert d.Judgement(truth=1.0, value=1 + 1e-15, low=1 + 1e-15, high=1 + 1e-15).covers
    assert not d.Judgement(truth=1.0, value=0.9, low=0.8, high=0.999).covers


def test_wrong_pairs_name_the_preferred_first():
    by_hand = made((1.0, 2.0, 4.0), naive=(3.0, 2.5, 4.0))
    assert by_hand.order("mae", "naive").wrong == (("b", "a"),)
    assert by_hand.order("dcg@50", "naive").wrong == (("a", "b"),)
    assert by_hand.order("mae", "ips").right
    assert by_hand.order("mae", "ips").pairs == 3


def test_a_tie_of_models_that_differ_is_wrong_and_a_true_tie_is_not():
    assert made((1.0, 2.0), naive=(3.0, 3.0)).order("mae", "naive").wrong == (("b", "a"),)
    assert made((2.0, 2.0), naive=(3.0, 1.0)).order("mae", "naive").right


def test_the_setting_names_the_sizes():
    told = made((1.0, 2.0)).setting()
    assert "10 users × 50 items" in told
    assert "64 times" in told
    assert "25 of 500 ratings (5.0%)" in told


def test_words_follow_from_the_numbers():
    mae, dcg, weighted = made((1.0, 2.0, 4.0), naive=(3.0, 2.5, 2.0)).findings()
    assert re.search(facts("naive", "c to a", "4 times", "0.5 to 3 times", "0 of its 3 intervals"), mae)
    assert re.search(facts("naive", "a to c", "25%"), dcg)
    assert re.search(facts("ips, snips and stratified", "right order", "18 of their 18 intervals"), weighted)


def test_words_also_tell_what_speaks_against_weighting():
    mae, dcg, weighted = made((1.0, 2.0), snips=(2.0, 1.0)).findings()
    assert all(re.search(facts("naive", "correctly"), said) and "prefers" not in said for said in (mae, dcg))
    assert re.search(facts("snips prefers", "b to a", "2 times", "mae", "8 of their 12 intervals"), weighted)


def test_words_name_those_who_err_alike_together():
    turned = (2.0, 1.0)
    *_, weighted = made((1.0, 2.0), ips=turned, snips=turned, stratified=turned).findings()
    assert len(re.findall(r"ips, snips and stratified \w+ b to a", weighted)) == 1


def test_truth_is_the_average_over_all_cells():
    world = schnabel_world(12, 60, rng=3)
    truth = d.truths(world)
    Y = world.ratings.astype(np.float64)
    for model, Y_hat in world.predictions.items():
        assert truth[model, "mae"] == pytest.approx(np.abs(Y - Y_hat).mean(), rel=1e-9)
    # Without ties Eq. 8 is a plain sort: (1/U) Σ_u Σ_{rank ≤ 50} Y / log2(1 + rank).
    order = np.argsort(-world.predictions["SKEWED"].clip(0.001, 5.999), axis=1)[:, :50]
    ranked = np.take_along_axis(Y, order, axis=1) / np.log2(np.arange(2, 52))
    assert truth["SKEWED", "dcg@50"] == pytest.approx(ranked.sum(axis=1).mean(), rel=0.03)


# -- by law --------------------------------------------------------------------------------------------------


def test_truth_does_not_depend_on_the_blocks(monkeypatch):
    world = schnabel_world(11, 60, rng=3)
    whole = d.truths(world)
    monkeypatch.setattr(d, "BLOCK", 4 * 60)
    assert d.truths(world) == pytest.approx(whole, rel=1e-12)


def test_every_cell_of_the_table_is_there(shown):
    assert shown.models == MODELS
    assert set(shown.judgements) == {(m, x, e) for m in MODELS for x in d.METRICS for e in d.ESTIMATORS}
    assert shown.observed == pytest.approx(d.OBSERVED * 300 * 400, rel=0.05)


def test_results_are_frozen(shown):
    with pytest.raises(FrozenInstanceError):
        shown.seed = 1


def test_progress_runs_from_0_towards_1():
    seen = []
    d.demonstrate(20, 60, step=lambda what, done: seen.append((what, done)))
    shares = [done for _, done in seen]
    assert shares[0] == 0
    assert all(a <= b for a, b in pairwise(shares))
    assert shares[-1] < 1
    assert {what for what, _ in seen} == {"making a world", "estimating from the log", "computing the truth"}


# -- by simulation with known truth --------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ["ips", "snips", "stratified"])
def test_weighted_estimates_are_within_five_standard_errors_of_the_truth(shown, estimator):
    for model in MODELS:
        for metric in d.METRICS:
            judged = shown[model, metric, estimator]
            error = (judged.high - judged.low) / 2 / 1.96
            assert abs(judged.value - judged.truth) <= 5 * error + 1e-9


def test_naive_errs_as_in_the_paper(shown):
    assert ("REC_ONES", "REC_FOURS") in shown.order("mae", "naive").wrong
    assert not any(shown[model, metric, "naive"].covers for model in MODELS for metric in d.METRICS)
    ones, fours = (shown[model, "mae", "ips"].truth for model in ("REC_ONES", "REC_FOURS"))
    assert ones / fours == pytest.approx(4, rel=0.01)
    assert re.search(facts("REC_ONES to REC_FOURS", "4 times"), shown.findings()[0])


# -- output --------------------------------------------------------------------------------------------------


def test_json_is_the_same_for_the_same_seed_and_another_for_another():
    first, again, other = (d.demonstrate(20, 60, seed=seed).to_json() for seed in (4, 4, 5))
    assert first == again
    assert first != other


def test_json_holds_every_row_and_is_written(shown, tmp_path):
    text = shown.to_json(tmp_path / "demo.json")
    assert (tmp_path / "demo.json").read_text(encoding="utf-8") == text + "\n"
    content = json.loads(text)
    assert content["estimates"] == list(shown.rows())
    assert len(content["orders"]) == len(d.METRICS) * len(d.ESTIMATORS)
    assert content["findings"] == shown.findings()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        pytest.param({"users": 9}, facts("users", 10, 9), id="few users"),
        pytest.param({"items": 49}, facts("items", 50, 49), id="few items"),
        pytest.param({"seed": -1}, facts("seed", 0, -1), id="negative seed"),
        pytest.param({"users": 100_000}, facts("50,000,000", "100,000 × 1,683"), id="large world"),
    ],
)
def test_sizes_that_cannot_be_shown_are_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        d.demonstrate(**wrong)
