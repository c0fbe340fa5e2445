"""Arguments as the fields of a noun."""

from __future__ import annotations

from dataclasses import dataclass

from openloop.support.fields import fields_of


@dataclass
class Point:
    x: int
    y: int = 0


@dataclass
class Place:
    y: int
    name: str


def test_fields_are_picked_by_name_from_a_mapping_or_another_noun():
    assert fields_of(Point, {"name": "home", "x": 3}) == {"x": 3}
    assert fields_of(Point, Place(y=4, name="home")) == {"y": 4}
