"""A choice at an end of its grid is marked."""

from __future__ import annotations

import pytest

from openloop.studies.kit.grids import EDGES, edge, told


@pytest.mark.parametrize(
    ("value", "grid", "mark"),
    [(1, (1, 2, 4), "↓"), (2, (4, 2, 1), ""), (4, (1, 2, 4), "↑"), (1, (1,), ""), (1, (1, 1), "")],
)
def test_the_least_and_the_largest_are_marked(value, grid, mark):
    assert edge(value, grid) == mark
    assert mark in EDGES


def test_a_value_is_told_with_its_mark():
    assert [told(value, (0.05, 0.1, 0.4)) for value in (0.05, 0.1, 0.4)] == ["0.05↓", "0.1", "0.4↑"]
