"""Figure 2: weighted estimators are more accurate, and without selection bias SNIPS is naive."""

from __future__ import annotations

import re

import numpy as np
import pytest

from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Trials
from openloop.studies.schnabel2016 import figure2
from tests.facts import facts
from tests.studies.schnabel2016.conftest import claim_about


def test_figure2_finds_weighted_estimators_more_accurate_and_equal_without_bias(small_run):
    result = figure2.figure2(small_run)
    (figure,) = result.figures
    rmse = {(row["metric"], row["estimator"], row["α"]): row["RMSE"] for row in figure.rows}
    for metric in ("MSE", "MAE", "DCG@50"):
        assert rmse[metric, "IPS", 0.25] < rmse[metric, "Naive", 0.25] / 3
        assert rmse[metric, "SNIPS", 1.0] == pytest.approx(rmse[metric, "Naive", 1.0], rel=1e-12)
    assert claim_about(result.claims, "α = 1", "SNIPS", "naive").holds
    for row in figure.rows:
        assert 0 < row["low"] < row["RMSE"] < row["high"]


def estimated(naive, ips, snips):
    """Draws whose errors have these sizes, for every metric and model; the truth is 10."""
    errors = np.random.default_rng(0).normal(size=(50, 3, 5))
    sizes = {"naive": naive, "ips": ips, "snips": snips}
    return {"truth": np.full((3, 5), 10.0)} | {name: 10 + size * errors for name, size in sizes.items()}


@pytest.mark.parametrize(("penalty", "small"), [(1.5, True), (2.5, False), (0.8, False)])
def test_ips_may_be_less_accurate_by_a_factor_below_two(penalty, small):
    found = {0.25: estimated(1.0, 0.05, 0.04), 1.0: estimated(1.0, penalty, 1.0)}
    assert claim_about(figure2._claims(found), "α = 1", "less accurate", "factor below 2").holds is small


def test_the_penalty_is_judged_by_what_the_figure_plots():
    """MAE, the second metric, is beside it."""
    found = {0.25: estimated(1.0, 0.05, 0.04), 1.0: estimated(1.0, 1.5, 1.0)}
    found[1.0]["ips"][:, 1] = 10 + 3 * (found[1.0]["naive"][:, 1] - 10)
    claim = claim_about(figure2._claims(found), "α = 1", "less accurate")
    assert claim.holds
    assert "for MAE" in claim.found


def test_claims_fail_when_their_numbers_do():
    good = {0.25: estimated(1.0, 0.05, 0.045), 1.0: estimated(1.0, 1.2, 1.0)}
    assert [claim.text for claim in figure2._claims(good) if not claim.holds] == []
    bad = {0.25: estimated(1.0, 1.2, 2.0), 1.0: estimated(1.0, 0.9, 1.5)}
    assert [claim.text for claim in figure2._claims(bad) if claim.holds] == []


def test_published_deviations_are_drawn_at_their_alpha(small_run):
    (figure,) = figure2.figure2(small_run).figures
    layers = [layer for panel in figure.chart["concat"] for layer in panel["layer"]]
    assert sum(layer["mark"].get("shape") == "diamond" for layer in layers) == 2  # MAE and DCG; Table 1 has no MSE
    assert re.search(facts("MAE, Naive", "DCG@50, Naive"), figure.caption)


def test_the_same_run_gives_the_same_numbers(small_run, tmp_path):
    once = figure2.figure2(small_run).figures[0].rows
    with Trials(tmp_path, 0) as trials:
        fresh = Run(folder=tmp_path, quick=True, seed=0, trials=trials)
        assert figure2.figure2(fresh).figures[0].rows == once
