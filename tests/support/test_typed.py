"""Plain values become the dataclasses that they were, or an error names the place where they do not fit."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import pytest

from openloop.errors import FormatError, InputError
from openloop.support.typed import below, built, fitting, part
from tests.facts import facts


@dataclass(frozen=True)
class Inner:
    x: float
    ends: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        if self.x == 7:
            raise InputError("Inner: x must not be 7, got 7.")


@dataclass(frozen=True)
class Outer:
    name: str
    n: int
    kind: Literal["a", "b"]
    inner: Inner | None
    many: tuple[Inner, ...] = ()
    by: dict[float, int] = field(default_factory=dict[float, int])
    some: Any = None
    sure: bool = False


WHOLE = Outer(name="x", n=3, kind="b", inner=Inner(1.5), many=(Inner(0.0), Inner(2)), by={0.5: 1}, some="y", sure=True)


def plain():
    found = asdict(WHOLE)
    return found | {"by": {"0.5": 1}, "inner": {"x": 1.5, "ends": [0.0, 1.0]},
                    "many": [{"x": 0.0}, {"x": 2, "more": "ignored"}]}  # fmt: skip


def test_a_dataclass_comes_back():
    assert built(Outer, plain(), "f: ") == WHOLE


def test_null_and_words_are_the_numbers_that_json_lacks():
    assert math.isnan(built(float, None, "f: "))
    assert built(float | None, None, "f: ") is None
    assert built(tuple[float, ...], ["infinite", "-infinite"], "f: ") == (math.inf, -math.inf)


def test_whole_numbers_stay_whole():
    assert repr(built(float, 3, "f: ")) == "3"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"name": 3}, ("f: name", "text", "got 3")),
        ({"n": 2.5}, ("f: n", "whole number", "2.5")),
        ({"n": True}, ("f: n", "whole number", "True")),
        ({"n": None}, ("f: n", "whole number", "null")),
        ({"kind": "c"}, ("f: kind", "'a' or 'b'", "'c'")),
        ({"kind": ["a"]}, ("f: kind", "'a' or 'b'", "list of 1")),
        ({"inner": []}, ("f: inner", "object", "list of 0")),
        ({"inner": {"x": "many"}}, ("f: inner.x", "number", "'many'")),
        ({"inner": {"x": 7}}, ("f: inner", "must not be 7")),
        ({"inner": {}}, ("f: inner", "lacks", "'x'")),
        ({"inner": {"x": 1, "ends": [1]}}, ("f: inner.ends", "2 values", "list of 1")),
        ({"many": [{"x": 1}, {"x": {}}]}, ("f: many[1].x", "number", "object with 0 keys")),
        ({"by": {"half": 1}}, ("f: by", "numbers as keys", "'half'")),
        ({"by": {"0.5": "x"}}, ("f: by.0.5", "whole number")),
        ({"some": {}}, ("f: some", "single value")),
        ({"sure": 1}, ("f: sure", "true or false", "got 1")),
        ({"name": "x" * 9000, "n": "y" * 9000}, ("f: n", "whole number", f"'{'y' * 200}'")),
    ],
)
def test_what_does_not_fit_is_named(change, told):
    with pytest.raises(FormatError, match=facts(*told)) as refused:
        built(Outer, plain() | change, "f: ")
    assert len(str(refused.value)) < 400


def test_a_key_that_is_missing_is_named_and_a_place_is_short():
    with pytest.raises(FormatError, match=facts("f: a", "lacks", "'b'")):
        part({}, "b", "f: a")
    with pytest.raises(FormatError, match=facts("f: ", "an object")):
        part(None, "b", "f: ")
    assert below("f: a", "x" * 1000) == f"f: a.{'x' * 60}"
    assert fitting(dict, {}, "f: ") == {}
