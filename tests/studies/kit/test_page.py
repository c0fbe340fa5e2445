"""The page shows every number, and marks those that did not come out."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape

from openloop.studies.kit.page import html, markdown, parts, shown
from openloop.studies.kit.results import Value, unjudged
from openloop.studies.kit.running import reproduce
from tests.facts import facts


def test_cells_show_the_published_number_in_brackets_and_mark_what_differs():
    assert shown(Value(value=0.5, published=0.5, digits=1)) == "0.5 (0.5)"
    assert shown(Value(value=0.7, published=0.5, digits=1)) == "0.7 ≠ (0.5)"
    assert shown(Value(value=None, published=0.5, digits=1)) == "– (0.5)"
    assert [shown(cell) for cell in (1234, 0.123456, None, "text")] == ["1,234", "0.1235", "", "text"]


def test_markdown_has_tables_claims_notes_and_what_did_not_come_out(study, tmp_path):
    text = markdown(reproduce(study, data=tmp_path, workers=0), "pictures")
    assert "# Coins | and dice (1713)" in text
    assert "| die | 3.5 ≠ (3.6) |  |" in text
    assert "- ✓ a coin is fair: " in text
    assert "| table1 | die, mean | 3.5 | 3.6 | -0.1 |" in text
    assert any(re.search(facts("1 number", "2 compared"), line) for line in text.splitlines())
    assert any(re.search(facts("figure1", "left out", "coat"), line) for line in text.splitlines())


def test_html_escapes_text_and_holds_its_pictures(study, data_dir):
    text = html(reproduce(study, ["table1", "figure1"], data=data_dir("coat").parent, workers=0))
    assert "&lt;a note&gt; with <code>code</code>" in text
    assert 'src="data:image/svg+xml;base64,' in text
    assert "Content-Security-Policy" in text
    assert "<strong>Means.</strong>" in text


def test_html_and_markdown_show_the_same_parts(study, tmp_path):
    found = reproduce(study, data=tmp_path, workers=0)
    page, text = html(found), markdown(found, "pictures")
    for part in parts(found):
        assert f"# {part.title}" in text
        assert escape(part.title) in page


def test_the_page_says_by_which_command_and_on_what_it_was_written(study, data_dir):
    text = markdown(reproduce(study, ["figure1"], data=data_dir("coat").parent, seed=3, workers=0), "pictures")
    assert "`openloop reproduce made_up figure1 --data DIR --seed 3 --report FILE`" in text
    assert "numpy 2" in text
    assert "- coat: 290 users × 300 items" in text


def test_a_page_without_comparisons_says_so(study, data_dir):
    text = markdown(reproduce(study, ["figure1"], data=data_dir("coat").parent, workers=0), "pictures")
    assert re.search(facts("None", "compared"), text.splitlines()[-1])


def test_numbers_beside_published_ones_that_are_not_judged_were_measured_otherwise(study, tmp_path):
    found = reproduce(study, data=tmp_path, workers=0)
    beside = replace(found, results=tuple(unjudged(result) for result in found.results))
    last = markdown(beside, "pictures").splitlines()[-1]
    assert re.search(facts("None", "compared", "protocols"), last)
