"""Figure 2: weighted estimators are more accurate, and without selection bias SNIPS is naive."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.studies.schnabel2016 import figure2
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


def test_claims_fail_when_their_numbers_do():
    good = {0.25: estimated(1.0, 0.05, 0.045), 1.0: estimated(1.0, 1.2, 1.0)}
    assert [claim.text for claim in figure2._claims(good) if not claim.holds] == []
    bad = {0.25: estimated(1.0, 1.2, 2.0), 1.0: estimated(1.0, 0.9, 1.5)}
    assert [claim.text for claim in figure2._claims(bad) if claim.holds] == []
