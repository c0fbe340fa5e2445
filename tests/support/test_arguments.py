"""What an argument may be."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.errors import InputError
from openloop.support.arguments import generator, is_number, is_whole
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


@pytest.mark.parametrize("rng", [None, -1, 1.0, "0", True])
def test_anything_else_is_refused(rng):
    with pytest.raises(InputError, match=facts("MF", "rng", repr(rng), "rng=0")):
        generator("MF", rng)
