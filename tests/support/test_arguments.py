"""What an argument may be."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.errors import InputError
from openloop.support.arguments import check_level, generator, is_count, is_number, is_whole
from tests.facts import facts


@pytest.mark.parametrize(
    ("value", "whole", "number"),
    [
        *((value, True, True) for value in (3, -1, np.int8(3))),
        *((value, False, True) for value in (2.5, np.float32(2.5))),
        *((value, False, False) for value in (True, np.bool_(True), "3", None, [3])),
    ],
)
def test_booleans_and_text_are_no_numbers(value, whole, number):
    assert is_whole(value) is whole
    assert is_number(value) is number


def test_a_seed_stands_for_its_generator_and_a_generator_for_itself():
    assert generator("MF", 7).random() == np.random.default_rng(7).random()
    given = np.random.default_rng(1)
    assert generator("MF", given) is given


@pytest.mark.parametrize("rng", [None, -1, 1.0, "0", True])
def test_anything_else_is_refused(rng):
    with pytest.raises(InputError, match=facts("MF", "rng", repr(rng), "rng=0")):
        generator("MF", rng)


@pytest.mark.parametrize("level", [0, 1, 1.5, float("nan")])
def test_a_level_lies_strictly_between_0_and_1(level):
    check_level("find", 0.95)
    with pytest.raises(InputError, match=facts("find: level", f"got {level}")):
        check_level("find", level)


@pytest.mark.parametrize(("text", "found"), [
    ("1", True), ("2147483647", True), ("0", False), ("-1", False), ("", False), ("2147483648", False),
    ("9" * 30, False), ("9" * 5000, False), ("1.0", False), ("１２", False), ("²", False),
])  # fmt: skip
def test_counts_in_digits(text, found):
    assert is_count(text) is found
