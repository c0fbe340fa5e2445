"""Figures of comparisons and audits: valid charts that hold the numbers, in the order that is best first."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from openloop.audits.rankings import Friedman
from openloop.reporting.audit_figures import (
    PAIRS,
    bump_chart,
    critical_difference_chart,
    facing,
    forest_plot,
    leaderboard_chart,
    strata_chart,
)
from tests.audit_cases import HOSTILE, NAMES, small_audit
from tests.facts import facts

FRIEDMAN = Friedman(
    statistic=40.0, pvalue=1e-6, users=80, ranks={"a": 1.5, "b": 2.0, "c": 4.0}, critical_difference=1.0, level=0.95
)


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


def test_the_open_loop_stands_beside_the_estimators(audit, result):
    chart = leaderboard_chart(result, "mae", "snips", audit.open_loop.result)
    assert sum(row["series"] == "open loop" for row in rows(chart)) == len(NAMES)


def test_a_metric_without_an_estimator_is_drawn_without_it(result):
    assert ("recall@10", "ips") in result.skipped
    shown = {row["series"] for row in rows(leaderboard_chart(result, "recall@10"))}
    assert shown == {"snips", "stratified", "clipped", "naive"}


def test_the_forest_plot_holds_all_pairs_with_the_better_ranked_model_first(result):
    chart = forest_plot(result, "mae", "snips")
    found = rows(chart)
    assert len(found) == 10
    assert all(row["value"] <= 0 for row in found)  # lower is better
    for row in found:
        first, second = (part.strip("\u2068\u2069") for part in row["label"].split(" − "))
        gap = result.difference(first, second, metric="mae", estimator="snips")
        assert row["value"] == pytest.approx(gap.value)
        assert (row["low"], row["high"]) == pytest.approx(gap.interval(0.95))
        assert row["beside"].startswith("Holm p ")
    subtitle = " ".join(chart.to_dict()["title"]["subtitle"])
    assert re.search(facts("unadjusted", "95 %", "left of 0", "first"), subtitle)


def test_of_too_many_pairs_those_of_the_best_model_are_shown(audit, result):
    found = audit.contrasts["mae", "snips"]
    many = [replace(c, a=f"{c.a}{n}", b=f"{c.b}{n}") for n in range(5) for c in found]
    order = [f"{m}{n}" for n in range(5) for m in result.ranking("mae", "snips")]

    class Ranked:
        def ranking(self, metric, estimator):
            return order

    shown, left = facing(Ranked(), "mae", "snips", many)
    assert len(many) > PAIRS
    assert {c.a for c in shown} == {order[0]}
    assert len(shown) + left == len(many)


def test_the_bump_chart_holds_the_places(result):
    found = {(row["estimator"], row["model"]): row["rank"] for row in rows(bump_chart(result, "mae"))}
    for estimator in result.estimators:
        order = result.ranking("mae", estimator)
        assert [found[estimator, model] for model in order] == [1, 2, 3, 4, 5]


def test_the_strata_chart_holds_each_line_of_the_table(audit):
    table = audit.strata[0]
    chart = strata_chart(table)
    assert domain(chart, "y") == [line.name for line in table.lines]
    assert len(rows(chart)) == len(table.lines) * len(NAMES)


def test_models_within_the_critical_difference_of_the_best_are_told_from_the_others():
    found = {row["label"][1:-1]: row["clear"] for row in rows(critical_difference_chart(FRIEDMAN))}
    assert found.keys() == {"a", "b", "c"}
    assert found["a"] == found["b"] != found["c"]
    assert "not significantly below" in found["a"]


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
