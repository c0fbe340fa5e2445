"""Figures of weights: shares that add up, concentration by hand, and Γ* where a band reaches 0."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from openloop.audits.results import Curve
from openloop.core.weights import WeightSummary
from openloop.reporting.weight_figures import (
    carried_by,
    concentration_chart,
    crossing,
    propensity_bins,
    ratings_chart,
    sensitivity_chart,
    weights_chart,
)


def curve(low, high, gamma=(1.0, 2.0, 4.0), b: str | None = "b") -> Curve:
    return Curve(metric="mae", estimator="snips", a="a", b=b, at=gamma, low=low, high=high)


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


def test_the_band_reaches_zero_where_interpolation_in_log_gamma_says():
    assert crossing(curve((2.0, 1.0, -1.0), (2.0, 3.0, 5.0))) == pytest.approx(math.sqrt(8))
    assert crossing(curve((-2.0, -3.0, -5.0), (-2.0, 0.0, 1.0))) == pytest.approx(2.0)
    assert crossing(curve((2.0, 1.5, 1.0), (2.0, 3.0, 4.0))) is None
    assert crossing(curve((0.0, -1.0, -2.0), (0.0, 1.0, 2.0))) is None


def test_the_critical_gamma_is_marked_for_a_difference_only():
    marked = str(sensitivity_chart(curve((2.0, 1.0, -1.0), (2.0, 3.0, 5.0))).to_dict(validate=True))
    assert "Γ* = 2.83×" in marked
    assert "Γ* = 2.5×" in str(sensitivity_chart(curve((2.0, 1.0, -1.0), (2.0, 3.0, 5.0)), 2.5).to_dict())
    assert "Γ*" not in str(sensitivity_chart([curve((2.0, 1.0, -1.0), (2.0, 3.0, 5.0), b=None)]).to_dict(validate=True))


def test_charts_of_weights_and_ratings_are_valid_and_hold_their_numbers(audit):
    weights_chart(audit.weights).to_dict(validate=True)
    concentration_chart(audit.weights).to_dict(validate=True)
    content = ratings_chart(audit.setting.ratings, 4).to_dict(validate=True)
    rows = content["data"]["values"]
    assert [(float(row["rating"]), row["rows"]) for row in rows] == list(audit.setting.ratings)
    assert {row["rating"] for row in rows if row["kind"] == "relevant"} == {"4", "5"}
