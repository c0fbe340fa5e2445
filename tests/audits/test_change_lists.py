"""Changes in words: what was, what is, and no claim beyond."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from openloop.audits.change_lists import SCHEMA, Differing, OrderChange, Verdicts, named
from tests.change_cases import PAIR, changes
from tests.facts import facts


def test_the_words_say_what_was_and_what_is():
    text = str(changes())
    assert text.splitlines()[0] == "The older audit chooses a, the newer one cannot tell the models apart."
    assert "threshold: 4.0 → 3.0" in text
    assert "snips of mae: a, <b> → <b>, a" in text
    assert "a was ahead of <b>; now neither is ahead" in text
    assert "\x1b" not in text
    assert repr(changes()) == text


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("a", "<b>", "<b> is now ahead of a; it was behind"),
        (None, "<b>", "<b> is now ahead of a; before, neither was ahead"),
        ("<b>", None, "<b> was ahead of a; now neither is ahead"),
    ],
)
def test_pairs_are_told_in_each_way(old, new, told):
    assert str(replace(PAIR, old_better=old, new_better=new)) == told


def test_a_setting_that_one_audit_lacks_is_a_dash():
    assert "excluded: – → 1234" in str(changes(settings=(Differing(name="excluded", old=None, new=1234),)))


def test_verdicts_that_are_the_same_are_told_once():
    def same(level, winner):
        verdicts = Verdicts(old_level=level, new_level=level, old="x", new="y", old_winner=winner, new_winner=winner)
        return changes(verdicts=verdicts).headline

    assert same("verdict", "a") == "Both audits choose a"
    assert "Neither" in same("none", None)
    assert "assumption" in same("conditional", None)
    assert [named(level, "a") for level in ("verdict", "conditional")] == [
        "chooses a", "chooses under an assumption only",
    ]  # fmt: skip


def test_intervals_say_what_they_assume_and_are_no_test():
    assert re.search(facts("90 %", "independent", "not tests"), changes().about_intervals)
    assert re.search(facts("same log", "no interval"), changes(one_log=True).about_intervals)
    assert any("thresholds differ" in line for line in changes().sentences)
    assert not any("thresholds differ" in line for line in changes(settings=()).sentences)


def test_json_and_html_have_it_too():
    found = json.loads(changes().to_json())
    assert found["schema"] == SCHEMA
    assert found["values"][0]["low"] == 0.8
    assert found["orders"][0]["pairs"][0]["new_better"] is None
    shown = changes()._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown


def test_orders_that_stay_are_unchanged():
    assert not OrderChange(metric="mae", estimator="snips", old=("a",), new=("a",)).changed
    assert OrderChange(metric="mae", estimator="snips", old=("a",), new=("a",), pairs=(PAIR,)).changed
