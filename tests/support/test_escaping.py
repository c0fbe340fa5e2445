"""Text that a terminal would obey is shown, and means the same in JSON."""

from __future__ import annotations

import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openloop.support.atomic import json_text, write_text
from openloop.support.escaping import json_safe, on_one_line, visible

KEPT = "\u200c\u200d"


def test_all_characters_that_act_are_shown_and_all_that_are_read_stay():
    acting = {"Cc", "Cs", "Zl", "Zp"}
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        kind, turns = unicodedata.category(character), unicodedata.bidirectional(character)
        if kind in acting or turns in {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI", "BN", "S", "B"}:
            assert (visible(character) == character) == (character in KEPT), hex(code)
        elif kind[0] in "LNSPM":
            assert visible(character) == character, hex(code)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mb", r"a\x1b[31mb"),
        ("bell\x07 back\x08 return\r", r"bell\x07 back\x08 return\r"),
        ("user\u202etxt.exe", r"user\u202etxt.exe"),
        ("\x9b2J", r"\x9b2J"),
        ("zero\u200bwidth\ufeff", r"zero\u200bwidth\ufeff"),
        ("half \udc80", r"half \udc80"),
        ("two\nlines", r"two\nlines"),
        ("مُوصٍ عربي 🦜 95\u00a0% [red]", "مُوصٍ عربي 🦜 95\u00a0% [red]"),
    ],
)
def test_known_texts(text, shown):
    assert visible(text) == shown


def test_lines_stay_where_they_are_meant():
    assert visible("a\n\tb", lines=True) == "a\n\\tb"
    assert on_one_line("a\r\nb\x1b") == r"a  b\x1b"


@given(st.text())
def test_shown_text_is_shown_again_as_it_is(text):
    assert visible(visible(text)) == visible(text)


@given(st.text(alphabet=st.characters(exclude_categories=[])))
def test_json_means_the_same_and_holds_nothing_that_acts(text):
    written = json_text({"name": text})
    assert json.loads(written) == {"name": text} == json.loads(json.dumps({"name": text}))
    assert visible(written, lines=True) == written
    written.encode()


def test_a_character_beyond_16_bits_is_a_pair():
    assert json_safe('"\U000e0041"') == r'"\udb40\udc41"'


def test_half_a_character_can_be_written(tmp_path):
    write_text(tmp_path / "x", "a\udc80b")
    assert (tmp_path / "x").read_text() == r"a\udc80b"
