"""The parts that fits are cut into."""

from __future__ import annotations

from openloop.learners.blocks.sizes import piece_count


def test_sums_are_cut_into_pieces_where_they_are_too_large_for_the_driver():
    assert piece_count(items=1000, whole=512, on_driver=512, at_once=100) == 1
    assert piece_count(items=1000, whole=513, on_driver=512, at_once=100) == 6
    assert piece_count(items=3, whole=513, on_driver=512, at_once=100) == 3  # a piece has an item
