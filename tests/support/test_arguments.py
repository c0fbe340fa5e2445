"""What an argument may be."""

from __future__ import annotations

import pytest

from openloop.errors import InputError
from openloop.support.arguments import generator
from tests.facts import facts


@pytest.mark.parametrize("rng", [None, -1, 1.0, "0", True])
def test_anything_else_is_refused(rng):
    with pytest.raises(InputError, match=facts("MF", "rng", repr(rng), "rng=0")):
        generator("MF", rng)
