"""Figures of weights: shares that add up, concentration by hand, and Γ* where a band reaches 0."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from openloop.core.weights import WeightSummary
from openloop.reporting.weight_figures import (
    carried_by,
    concentration_chart,
    propensity_bins,
    ratings_chart,
    weights_chart,
)


@pytest.mark.parametrize("spread", [0.0, 0.5, 4.0, 12.0])
def test_the_bars_of_a_histogram_hold_all_rows_and_all_weight(spread):
    w = np.exp(spread * np.random.default_rng(0).random(500))
    bins = propensity_bins(WeightSummary.of(w))
    assert len(bins) <= 41
    assert sum(b["share of rows"] for b in bins) == pytest.approx(1)
    assert sum(b["share of weight"] for b in bins) == pytest.approx(1)
    assert bins[-1]["from"] <= 1 / w.max()
    assert bins[0]["to"] >= 1 / w.min()
    assert all(a["from"] == b["to"] for a, b in itertools.pairwise(bins))


def test_concentration_by_hand():
    # 90 rows of weight 1 and 10 of weight 9 (each right to the histogram's 4.4 %): a tenth carries half
    summary = WeightSummary.of(np.repeat([1.0, 9.0], [90, 10]))
    assert carried_by(summary, 0.1) == pytest.approx(0.5, abs=0.02)
    assert carried_by(summary, 0.05) == pytest.approx(0.25, abs=0.01)
    assert carried_by(summary, 1.0) == pytest.approx(1.0)


def test_equal_weights_are_not_concentrated():
    summary = WeightSummary.of(np.full(1000, 7.0))
    assert carried_by(summary, 0.3) == pytest.approx(0.3)


def test_charts_of_weights_and_ratings_are_valid_and_hold_their_numbers(audit):
    weights_chart(audit.weights).to_dict(validate=True)
    concentration_chart(audit.weights).to_dict(validate=True)
    content = ratings_chart(audit.setting.ratings, 4).to_dict(validate=True)
    rows = content["data"]["values"]
    assert [(float(row["rating"]), row["rows"]) for row in rows] == list(audit.setting.ratings)
    assert {row["rating"] for row in rows if row["kind"] == "relevant"} == {"4", "5"}
