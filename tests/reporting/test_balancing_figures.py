"""Figures of balanced weights: valid charts that hold the numbers."""

from __future__ import annotations

from openloop.propensity.checks.balancing import Balancing, Moved
from openloop.reporting.balancing_figures import SHOWN, balancing_plot

FOUND = Balancing(
    moved=tuple(Moved(name=f"rating {r}", rows=0.1 * r, before=0.2, after=0.3, target=0.3) for r in range(1, 6)),
    effective_before=90.5, effective_after=70.25, edges=(0.5, 1.0, 2.0), before=(0.25, 0.75), after=(0.5, 0.5),
)  # fmt: skip


def test_a_chart_has_a_mark_for_each_mean_and_a_bar_for_each_bin():
    content = balancing_plot(FOUND).to_dict(validate=True)
    means, weights = content["hconcat"]
    targets, points = (layer["data"]["values"] for layer in means["layer"])
    assert [(row["of"], row["target"]) for row in targets] == [(m.name, m.target) for m in FOUND.moved]
    assert len(points) == 3 * len(FOUND.moved)
    assert [(row["weights"], row["share"]) for row in weights["data"]["values"]] == [
        ("before", 0.25), ("before", 0.75), ("after", 0.5), ("after", 0.5),
    ]  # fmt: skip
    assert "90.5" in str(content)


def test_of_many_means_those_are_shown_that_moved_most():
    moved = tuple(Moved(name=str(n), rows=0.0, before=n / 100, after=0.0, target=0.0) for n in range(SHOWN + 5))
    chart = balancing_plot(Balancing(
        moved=moved, effective_before=1, effective_after=1, edges=(1.0, 2.0), before=(1.0,), after=(1.0,)
    )).to_dict(validate=True)  # fmt: skip
    shown = [row["of"] for row in chart["hconcat"][0]["layer"][0]["data"]["values"]]
    assert shown == [str(n) for n in range(5, SHOWN + 5)]
