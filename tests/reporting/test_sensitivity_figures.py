"""Charts against Γ, ρ and κ: valid, with the value at which the order turns."""

from __future__ import annotations

import math

import pytest

from openloop.audits.results import Curve
from openloop.reporting.sensitivity_figures import crossing, sensitivity_chart, turns


def curve(low, high, gamma=(1.0, 2.0, 4.0), b: str | None = "b") -> Curve:
    return Curve(metric="mae", estimator="snips", a="a", b=b, at=gamma, low=low, high=high)


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


def tilted(against, at, turned):
    values = (0.3, 0.1, -0.1)
    low, high = tuple(v - 0.15 for v in values), tuple(v + 0.15 for v in values)
    return Curve(
        metric="recall@10", estimator="snips", a="a", b="b", against=against, at=at, value=values, low=low, high=high,
        turns=turned, turns_low=None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("against", "at", "turned", "wanted"),
    [("rho", (1.0, 1.5, 3.0), 2.25, "ρ* = 2.25×"), ("kappa", (0.0, 0.5, 1.0), 0.75, "κ* = 75 %")],
)
def test_curves_with_intervals_are_lines_that_turn(against, at, turned, wanted):
    chart = sensitivity_chart(tilted(against, at, turned)).to_dict(validate=True)
    assert wanted in str(chart)
    assert "*" not in str(sensitivity_chart(tilted(against, at, math.inf)).to_dict()["layer"][-1])


def test_a_curve_says_itself_where_it_turns():
    assert turns(tilted("rho", (1.0, 2.0, 3.0), 2.5)) == 2.5
    assert turns(tilted("rho", (1.0, 2.0, 3.0), math.inf)) is None
    assert turns(curve((2.0, 1.0, -1.0), (2.0, 3.0, 5.0))) == crossing(curve((2.0, 1.0, -1.0), (2.0, 3.0, 5.0)))
