"""Charts hold the records that they were given, and refuse what they cannot draw."""

from __future__ import annotations

import pytest

from openloop.errors import InputError
from openloop.studies.kit.charts import TITLE, intervals, lines, scatter
from openloop.studies.kit.colours import COLOUR
from tests.facts import facts

ROWS = [
    {"x": x, "y": x + k, "low": x + k - 0.5, "high": x + k + 0.5, "name": f"n{k}", "part": part}
    for x in (1, 2, 4) for k in (1, 2) for part in ("first", "second")
]  # fmt: skip


def marks(spec):
    """The marks of all layers."""
    if "layer" in spec:
        return [m for layer in spec["layer"] for m in marks(layer)]
    return [spec["mark"]["type"]]


def test_lines_with_a_band_have_line_points_and_area_for_each_facet():
    spec = lines(ROWS, "x", "y", series="name", facet="part", low="low", high="high", log_x=True).to_dict()
    assert [chart["title"] for chart in spec["concat"]] == [["first"], ["second"]]
    assert all(marks(chart) == ["area", "line", "point"] for chart in spec["concat"])
    x = spec["concat"][0]["layer"][1]["encoding"]["x"]
    low, high = x["scale"]["domain"]
    assert x["scale"]["type"] == "log"
    assert low < 1
    assert high > 4


def test_series_have_one_colour_in_every_facet():
    rows = [row for row in ROWS if row["name"] == "n1" or row["part"] == "first"]  # the second lacks n2
    spec = lines(rows, "x", "y", series="name", facet="part").to_dict()
    domains = [chart["layer"][0]["encoding"]["color"]["scale"]["domain"] for chart in spec["concat"]]
    assert domains == [["n1", "n2"], ["n1", "n2"]]


def test_a_method_has_its_colour_in_every_figure():
    rows = [{"x": 1, "y": 2, "name": name} for name in ("another", "IPS", "Naive", "one more")]
    for chosen in (rows, rows[1:], rows[::-1]):
        scale = lines(chosen, "x", "y", series="name").to_dict()["layer"][0]["encoding"]["color"]["scale"]
        colours = dict(zip(scale["domain"], scale["range"], strict=True))
        assert colours["IPS"] == COLOUR["IPS"]
        assert colours["Naive"] == COLOUR["Naive"]
        assert len(set(colours.values())) == len(chosen)


def test_a_published_number_of_several_places_is_dashed_and_those_of_one_are_in_the_legend():
    theirs = [{"x": 1, "y": 3, "name": "n1"}, {"x": 2, "to": 4, "y": 2, "name": "n1"}]
    *_, hollow, dashed = lines(ROWS, "x", "y", series="name", published=theirs).to_dict()["layer"]
    assert hollow["encoding"]["opacity"]["scale"]["domain"] == ["as published"]
    assert [dashed["mark"]["type"], dashed["encoding"]["x2"]["field"]] == ["rule", "to"]
    assert hollow["encoding"]["x"]["scale"]["padding"] > 0  # not on the corner


def test_published_numbers_are_hollow_and_in_the_charts_of_their_facet():
    theirs = [{"x": 9, "y": 3, "name": "n1", "part": "second"}]
    first, second = lines(ROWS, "x", "y", series="name", facet="part", published=theirs).to_dict()["concat"]
    assert marks(first) == ["line", "point"]
    assert marks(second) == ["line", "point", "point"]
    assert second["layer"][2]["mark"]["filled"] is False


def test_hollow_points_and_ticks_at_the_values_there_are():
    rows = [row | {"short": row["x"] == 2 and row["part"] == "first"} for row in ROWS]
    spec = lines(rows, "x", "y", series="name", facet="part", log_x=True, hollow="short", x_values=True).to_dict()
    first, second = spec["concat"]
    assert (marks(first), marks(second)) == (["line", "point", "point"], ["line", "point"])
    emptied = first["layer"][-1]
    assert emptied["mark"]["fill"] == "white"
    assert {row["x"] for row in emptied["data"]["values"]} == {2}
    assert second["layer"][0]["encoding"]["x"]["axis"]["values"] == [1, 2, 4]


def test_long_titles_and_legends_are_not_cut():
    rows = [{"x": 1, "y": k, "name": f"method {'x' * 60} {k}", "part": "a title of many words " * 4} for k in range(3)]
    (chart,) = lines(rows, "x", "y", series="name", facet="part").to_dict()["concat"]
    assert max(map(len, chart["title"])) <= TITLE
    legend = chart["layer"][0]["encoding"]["color"]["legend"]
    assert legend["labelLimit"] == 0
    assert legend["columns"] == 1


def test_points_of_a_scatter_are_coloured_by_series():
    spec = scatter(ROWS, "x", "y", series="name").to_dict()
    assert spec["layer"][0]["encoding"]["color"]["scale"]["domain"] == ["n1", "n2"]


def test_intervals_have_a_rule_at_zero_a_span_and_a_point_for_each_name_and_series():
    spec = intervals(ROWS, "y", "x", series="name", facet="part", low="low", high="high").to_dict()
    assert [marks(chart) for chart in spec["concat"]] == [["rule", "rule", "point"]] * 2
    span = spec["concat"][0]["layer"][1]["encoding"]
    assert (span["x"]["field"], span["x2"]["field"], span["yOffset"]["sort"]) == ("low", "high", ["n1", "n2"])


def test_scatter_draws_points_and_a_line_of_least_squares():
    assert marks(scatter(ROWS, "x", "y", label="name").to_dict()) == ["point", "line"]


def test_line_of_equal_values_runs_from_corner_to_corner_of_axes_alike():
    spec = scatter(ROWS, "x", "y", equal=True).to_dict()
    (line,) = (layer for layer in spec["layer"] if layer["mark"]["type"] == "line")
    ends = line["data"]["values"]
    domain = line["encoding"]["x"]["scale"]["domain"]
    assert [(end["x"], end["y"]) for end in ends] == [(at, at) for at in domain]
    assert line["encoding"]["y"]["scale"]["domain"] == domain
    values = [row[name] for row in ROWS for name in ("x", "y")]
    assert domain[0] < min(values) < max(values) < domain[1]


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(InputError, match=facts("lines", "no rows")):
        lines([], "x", "y", series="name")
    with pytest.raises(InputError, match=facts("scatter", "12 of 12", "'z'")):
        scatter(ROWS, "x", "z")
    with pytest.raises(InputError, match=facts("log axis", "x", 0)):
        lines([{"x": 0, "y": 1, "name": "a"}], "x", "y", series="name", log_x=True)
