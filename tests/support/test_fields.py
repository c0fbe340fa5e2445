"""Arguments as the fields of a noun."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openloop.support.fields import changed, fields_named, fields_of


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


def walk(*, steps=1, way=("north",), over=None):
    return steps, way, over


def test_what_was_changed_is_what_is_no_default():
    assert changed(walk, {"steps": 1, "way": ("north",), "over": None}) == []
    given = {"steps": np.arange(3), "way": ("north", "east"), "over": np.arange(2)}  # an array is not compared
    assert changed(walk, given) == ["steps", "way", "over"]
    assert fields_named(Point) == ["x", "y"]
