"""A violated contract is an AssertionError with its facts."""

from __future__ import annotations

import pytest

from openloop.testing.saying import check_same, require
from tests.facts import facts


def test_what_holds_is_silent():
    require(True, "never seen")
    check_same("mine", "scores", [1.0, 2.0], [1.0, 2.0 + 1e-9], "asked again")


def test_what_does_not_hold_is_told():
    with pytest.raises(AssertionError, match="mine: no fit"):
        require(False, "mine: no fit")
    with pytest.raises(AssertionError, match=facts("mine", "scores", "0.5", "asked again")):
        check_same("mine", "scores", [1.0, 2.0], [1.0, 2.5], "asked again")


def test_other_shapes_differ():
    with pytest.raises(AssertionError, match=facts("mine", "nan")):
        check_same("mine", "scores", [1.0], [1.0, 1.0], "asked again")
