"""The answers hold together and write themselves down."""

from __future__ import annotations

import json
import math
from dataclasses import replace

from openloop.audits.answers import Assumption, PairAnswer, Reason, Verdict

THIN = Reason(code="rows", text="too few rows", value=12.0, limit=100.0, remedy="collect more")
PAIR = PairAnswer(
    a="x", b="y", better="x", level="conditional", estimand="per relevant item",
    assumption=Assumption(name="kappa", holds_to=0.5, flips_at=math.inf, required=1.0), reasons=(THIN,),
)  # fmt: skip
CONDITIONAL = Verdict(
    level="conditional", headline="x is ahead of y.", leader="x", unbeaten=("x",), pairs=(PAIR,), reasons=(THIN,),
    sentences=("By far.",), remedy="Collect more.",
)  # fmt: skip


def test_only_the_first_answer_is_supported():
    assert Verdict(level="verdict", headline="x beats y.", winner="x").supported
    assert not CONDITIONAL.supported
    assert not Verdict(level="none", headline="This log cannot tell x from y.").supported


def test_a_reason_is_its_text():
    assert str(THIN) == "too few rows"


def test_the_words_end_with_the_remedy():
    assert str(CONDITIONAL) == "x is ahead of y.\nBy far.\nCollect more."


def test_a_reason_that_the_headline_has_is_not_told_twice():
    other = replace(THIN, about="x and y", text="too close")
    assert Verdict(level="none", headline="No: too few rows.", reasons=(THIN, other)).told == ("x and y: too close",)
    carried = replace(THIN, code="kappa", text="any share")
    assert replace(CONDITIONAL, reasons=(carried,)).told == ()  # the condition is in the headline
    assert replace(CONDITIONAL, reasons=(carried, THIN)).told == ("too few rows",)  # another one is not


def test_a_pair_is_found_in_either_order():
    assert CONDITIONAL.pair("y", "x") is PAIR
    assert CONDITIONAL.pair("x", "z") is None


def test_records_are_json_with_infinity_in_words():
    found = json.loads(json.dumps(CONDITIONAL.records(), allow_nan=False))
    assert (found["level"], found["supported"], found["winner"]) == ("conditional", False, None)
    assert found["pairs"][0]["assumption"] == {
        "name": "kappa", "holds_to": 0.5, "flips_at": "infinite", "required": 1.0
    }  # fmt: skip
    assert found["pairs"][0]["reasons"][0] == {
        "code": "rows", "text": "too few rows", "value": 12.0, "limit": 100.0, "remedy": "collect more",
        "about": "",
    }  # fmt: skip
