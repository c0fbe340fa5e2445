"""What charts share: colours with shapes that tell many series apart, and axes with ticks."""

from __future__ import annotations

import altair as alt
import pytest

from openloop.reporting.style import COLOURS, SHAPES, VARIABLES, isolated, log_axis, rule_at, series, styled


def test_no_two_of_many_series_have_both_colour_and_shape_in_common():
    names = [f"model {n}" for n in range(len(COLOURS) * len(SHAPES))]
    found = series("model", names)
    colours, shapes = (found[channel].to_dict()["scale"]["range"] for channel in ("color", "shape"))
    assert len(set(zip(colours, shapes, strict=True))) == 42


def test_every_colour_of_a_series_changes_with_the_look_of_a_page():
    assert set(COLOURS) <= set(VARIABLES)


@pytest.mark.parametrize(("low", "high"), [(1e-6, 1.0), (0.01, 0.3), (0.2, 0.21), (1e-12, 1e-3)])
def test_a_log_axis_has_a_few_ticks_inside_its_ends(low, high):
    ticks = log_axis(low, high).to_dict()["values"]
    assert 2 <= len(ticks) <= 12
    assert all(low <= tick <= high for tick in ticks)


def test_a_styled_chart_is_valid():
    content = styled(alt.layer(rule_at(0), rule_at(1, "y", dashed=True))).to_dict(validate=True)
    assert content["config"]["legend"]["orient"] == "bottom"
    assert content["config"]["legend"]["columnPadding"] > 20  # a wider font than the drawer's still fits


def test_an_isolated_name_keeps_its_text():
    assert isolated("عربي")[1:-1] == "عربي"
    assert {isolated("x")[0], isolated("x")[-1]} == {"\u2068", "\u2069"}
