"""Figure 2: weighted estimators are more accurate, and without selection bias SNIPS is naive."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Trials
from openloop.studies.schnabel2016 import estimates, figure2
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


def test_a_penalty_of_twice_the_error_is_not_small():
    titles = estimates.TITLES.values()
    rmse = {(t, k, a): 1.0 for t in titles for k in ("Naive", "IPS", "SNIPS") for a in (0.25, 1.0)}
    found = {a: {"snips": np.ones(1), "naive": np.ones(1)} for a in (0.25, 1.0)}
    for ratio, small in ((1.5, True), (2.5, False), (0.8, False)):
        given = rmse | {(t, "IPS", 1.0): ratio for t in titles}
        assert claim_about(figure2._claims(found, given), "α = 1", "penalty").holds is small


def test_the_same_run_gives_the_same_numbers(small_run, tmp_path):
    once = figure2.figure2(small_run).figures[0].rows
    with Trials(tmp_path, 0) as trials:
        fresh = Run(folder=tmp_path, quick=True, seed=0, trials=trials)
        assert figure2.figure2(fresh).figures[0].rows == once
