"""A comparison in a notebook and as text: all its numbers, names escaped, no colour of its own."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from openloop.reporting.comparison_text import MINDED, flags_of, html_of, lines_of, ranging, table_of
from openloop.support.tables import html_list, html_table
from tests.audit_cases import HOSTILE, comparison
from tests.pages import Reader

ELEMENTS = "table caption thead tbody tr th td br small ul li details summary"


@pytest.fixture(scope="module")
def page():
    return Reader(html_of(comparison(HOSTILE)))


def test_a_notebook_has_a_table_per_metric_with_every_model_and_estimator(page):
    result = comparison(HOSTILE)
    assert page.open == []
    assert {tag for tag, _ in page.tags} <= set(ELEMENTS.split())
    assert len(page.of("table")) == len(result.metrics)
    text = "".join(page.text)
    for model in result.models:
        assert text.count(model) >= len(result.metrics)
    for e in result.estimates.values():
        assert f"{e.value:.4g}" in text
        low, high = e.limits(result.level)
        assert f"{low:.4g} … {high:.4g}" in text
    assert "lower is better" in text


def test_a_level_is_told_in_full():
    header, _ = table_of(replace(comparison(), level=0.995))
    assert "99.5 % interval over users" in header


def test_the_best_model_is_first(page):
    result = comparison(HOSTILE)
    text = "".join(page.text)
    places = [text.index(model) for model in result.ranking("mae", result.estimators[0])]
    assert places == sorted(places)


def test_no_colour_is_set_so_that_a_dark_notebook_shows_it(page):
    styles = [attributes["style"] or "" for _, attributes in page.tags if "style" in attributes]
    assert styles
    assert not [style for style in styles if re.search(r"(?<!text-)(?:background|color:(?!inherit))", style)]


def test_many_flags_are_folded_and_few_are_not():
    result = comparison()
    few = {k: replace(e, diagnostics=replace(e.diagnostics, flags=("one",))) for k, e in result.estimates.items()}
    many = {
        k: replace(e, diagnostics=replace(e.diagnostics, flags=tuple(f"flag {n}" for n in range(MINDED + 1))))
        for k, e in result.estimates.items()
    }
    assert "<details open>" in html_of(replace(result, estimates=few))
    assert "<details><summary>! 6 flags" in html_of(replace(result, estimates=many))


def test_each_flag_names_its_estimates_and_those_that_differ_in_numbers_are_one():
    marked = {"ones": "rests on 21.9 users (5 %)", "fours": "rests on 1,005 users (5 %)", "rotate": "is odd\x1b[2J"}
    result = comparison()
    given = {
        key: replace(e, diagnostics=replace(e.diagnostics, flags=(marked[key[0]],)))
        if key[0] in marked and key[1:] == ("recall@10", "snips")
        else replace(e, diagnostics=replace(e.diagnostics, flags=()))
        for key, e in result.estimates.items()
    }
    found = replace(result, estimates=given)
    assert flags_of(found) == [
        "snips of recall@10, ones and fours: rests on 21.9 to 1,005 users (5 %)",
        "snips of recall@10, rotate: is odd\x1b[2J",
    ]
    assert flags_of(found, "recall@10")[0].startswith("snips, ones and fours: ")
    assert flags_of(found, "mae") == []
    assert "\x1b" not in "".join(lines_of(found))
    every = {
        k: replace(e, diagnostics=replace(e.diagnostics, flags=(f"has {n},",)))
        for n, (k, e) in enumerate(given.items())
    }
    assert flags_of(replace(result, estimates=every)) == [f"has 0 to {len(given) - 1},"]
    assert ranging(["recall@10 of 3 users"]) == "recall@10 of 3 users"


def test_text_and_documents_have_a_line_per_estimate():
    result = comparison()
    header, cells = table_of(result)
    assert len(cells) == len(result.estimates)
    assert "estimand" in header
    lines = list(lines_of(result))
    assert len({line[: line.index(" ")] for line in lines[1 : 1 + len(cells)]}) == len(result.models)


def test_parts_are_escaped():
    assert html_list(["<b>"]) == "<ul><li>&lt;b&gt;</li></ul>"
    assert html_list([]) == ""
    assert "<i>" not in html_table("<i>", ["<i>"], [("<i>", ["1"])])
