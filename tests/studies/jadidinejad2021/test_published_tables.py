"""Published numbers of what is not rerun: all there, none of ours, with the reason."""

from __future__ import annotations

import pytest

from openloop.studies.jadidinejad2021 import ITEMS, published_tables
from openloop.studies.jadidinejad2021.published import CUTS, PUBLISHED
from openloop.studies.kit.results import Value


def numbers(table):
    """The published numbers of a table, row by row; none may be ours."""
    found = [[cell.published for cell in row if isinstance(cell, Value)] for row in table.rows]
    assert all(cell.value is None for row in table.rows for cell in row if isinstance(cell, Value))
    return found


@pytest.mark.parametrize("item", ["table2", "table3", "table4", "table5"])
def test_an_instance_is_shown_line_by_line_with_its_stars(item):
    table, lines = published_tables.published_instance(item), PUBLISHED[item]["lines"]
    assert numbers(table) == [[x, y, rows, items] for x, y, _, rows, items in lines.values()]
    better = dict(zip(("a", "b", ""), (*PUBLISHED[item]["pair"], "neither"), strict=True))
    assert [row[3] for row in table.rows] == [better[line[2]] for line in lines.values()]


@pytest.mark.parametrize("name", ["yahoo-r3", "coat"])
def test_table_6_is_shown_with_what_it_tells_apart(name):
    table = published_tables.published_table6(name)
    assert numbers(table) == [list(PUBLISHED["table6"]["tau"][name][cut]) for cut in CUTS]
    assert f"Not rerun: {name}" in table.caption
    if name == "yahoo-r3":
        assert table.rows[0][-1] == "1/3, 1/4, 1/5, 2/4, 2/5, 3/4, 3/5"


@pytest.mark.parametrize("name", ["yahoo-r3", "coat"])
def test_of_the_figures_what_the_text_prints_is_shown(name):
    three, four = (PUBLISHED[item][name] for item in ("figure3", "figure4"))
    found = numbers(published_tables.published_figure3(name))
    assert found == [[three["holdout"]], [three["q1"]], [three["q2"]], [three["q1_share"]]]
    table = published_tables.published_figure4(name)
    assert numbers(table) == [[four["one"], four["mean"], four["significant"]]]
    assert table.rows[0][2].published_error == four["behind"]


def test_every_item_on_data_has_published_numbers():
    for item in ITEMS:
        if item.data and item.name.startswith(("table", "figure")):
            assert item.published is not None
            assert all(numbers(table) for table in item.published())
