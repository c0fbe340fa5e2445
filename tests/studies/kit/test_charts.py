"""Charts hold the records that they were given, and refuse what they cannot draw."""

from __future__ import annotations

import pytest

from openloop.errors import InputError
from openloop.studies.kit.charts import lines, scatter
from tests.facts import facts

ROWS = [
    {"x": x, "y": x + k, "low": x + k - 0.5, "high": x + k + 0.5, "name": f"n{k}", "part": part}
    for x in (1, 2, 4) for k in (1, 2) for part in ("first", "second")
]  # fmt: skip


def test_series_have_one_colour_in_every_facet():
    rows = [row for row in ROWS if row["name"] == "n1" or row["part"] == "first"]  # the second lacks n2
    spec = lines(rows, "x", "y", series="name", facet="part").to_dict()
    domains = [chart["layer"][0]["encoding"]["color"]["scale"]["domain"] for chart in spec["concat"]]
    assert domains == [["n1", "n2"], ["n1", "n2"]]


def test_a_published_number_of_several_places_is_dashed_and_those_of_one_are_in_the_legend():
    theirs = [{"x": 1, "y": 3, "name": "n1"}, {"x": 2, "to": 4, "y": 2, "name": "n1"}]
    *_, hollow, dashed = lines(ROWS, "x", "y", series="name", published=theirs).to_dict()["layer"]
    assert hollow["encoding"]["opacity"]["scale"]["domain"] == ["as published"]
    assert [dashed["mark"]["type"], dashed["encoding"]["x2"]["field"]] == ["rule", "to"]
    assert hollow["encoding"]["x"]["scale"]["padding"] > 0  # not on the corner


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(InputError, match=facts("lines", "no rows")):
        lines([], "x", "y", series="name")
    with pytest.raises(InputError, match=facts("scatter", "12 of 12", "'z'")):
        scatter(ROWS, "x", "z")
    with pytest.raises(InputError, match=facts("log axis", "x", 0)):
        lines([{"x": 0, "y": 1, "name": "a"}], "x", "y", series="name", log_x=True)
