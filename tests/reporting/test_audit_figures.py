"""Figures of comparisons and audits: valid charts that hold the numbers, in the order that is best first."""

from __future__ import annotations

from openloop.reporting.audit_figures import (
    bump_chart,
    forest_plot,
    leaderboard_chart,
    strata_chart,
)
from tests.audit_cases import HOSTILE, small_audit


def rows(chart) -> list[dict]:
    """The records that the points of the chart are drawn from."""
    content = chart.to_dict(validate=True)
    points = next(layer for layer in content["layer"] if layer["mark"]["type"] == "point")
    return points.get("data", content.get("data"))["values"]


def domain(chart, channel: str) -> list[str]:
    found = (layer["encoding"].get(channel, {}).get("scale", {}).get("domain") for layer in chart.to_dict()["layer"])
    return next(names for names in found if names)


def test_the_leaderboard_holds_every_estimate_with_its_interval_best_first(result):
    chart = leaderboard_chart(result, "mae", "snips")
    found = {(row["y"], row["series"]): row for row in rows(chart)}
    assert len(found) == 25
    for (model, estimator), row in found.items():
        e = result[model, "mae", estimator]
        assert (row["value"], row["low"], row["high"]) == (e.value, *e.interval(0.95))
    assert domain(chart, "y") == result.ranking("mae", "snips")


def test_names_are_values_and_domains_never_expressions():
    hostile = small_audit(HOSTILE)
    charts = [
        leaderboard_chart(hostile.result, "mae", "snips"), forest_plot(hostile.result, "mae", "snips"),
        bump_chart(hostile.result, "mae"), strata_chart(hostile.strata[1]),
    ]  # fmt: skip

    def expressions(node):
        if isinstance(node, dict):
            own = [node[key] for key in ("expr", "sort", "calculate", "labelExpr", "test", "equal") if key in node]
            return own + [found for value in node.values() for found in expressions(value)]
        return [found for value in node for found in expressions(value)] if isinstance(node, list) else []

    for chart in charts:
        text = str(expressions(chart.to_dict(validate=True)))
        assert not [name for name in HOSTILE if name in text]
