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


@pytest.mark.parametrize("name", ["yahoo-r3", "coat"])
def test_table_6_is_shown_with_what_it_tells_apart(name):
    table = published_tables.published_table6(name)
    assert numbers(table) == [list(PUBLISHED["table6"]["tau"][name][cut]) for cut in CUTS]
    assert f"Not rerun: {name}" in table.caption
    if name == "yahoo-r3":
        assert table.rows[0][-1] == "1/3, 1/4, 1/5, 2/4, 2/5, 3/4, 3/5"


def test_every_item_on_data_has_published_numbers():
    for item in ITEMS:
        if item.data and item.name.startswith(("table", "figure")):
            assert item.published is not None
            assert all(numbers(table) for table in item.published())
