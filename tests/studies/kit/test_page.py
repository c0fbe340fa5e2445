"""The page shows every number, and marks those that did not come out."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape

from openloop.studies.kit.page import html, markdown, parts, shown
from openloop.studies.kit.results import Claim, Table, Value
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


def test_the_first_lines_say_what_came_out_what_did_not_and_on_what_data(study, tmp_path):
    found = reproduce(study, data=tmp_path, workers=0)
    claims = [
        Claim(text="a", holds=True, found="1", gist="coins are fair"),
        Claim(text="b", holds=False, found="2", gist="dice too"),
        Claim(text="c", holds=True, found="3", counted=False, gist="two is two"),
        Claim(text="d", holds=True, found="4", undecided="too few throws", gist="cards as well"),
    ]
    changed = replace(found, results=(replace(found.results[0], claims=tuple(claims)),))
    title, _, out, not_out, not_decided, data, *_ = markdown(changed, "pictures").splitlines()
    assert title.startswith("# Coins")
    assert re.search(facts("1 of 2 claims", "1 of 2 published numbers", "Coins are fair."), out)
    assert re.search(facts("1 of 2 claims", "1 of 2 published numbers", "Dice too."), not_out)
    assert re.search(facts("Not decided", "1 claim", "Cards as well."), not_decided)
    assert re.search(facts("none", "figure1", "figure2"), data)
    assert "? d (not decided: too few throws): 4" in markdown(changed, "pictures")


def test_a_quick_run_decides_nothing(study, tmp_path):
    found = reproduce(study, data=tmp_path, workers=0, quick=True)
    claim = Claim(text="a", holds=True, found="1", gist="coins are fair")
    text = markdown(replace(found, results=(replace(found.results[0], claims=(claim,)),)), "pictures")
    _, _, first, data, blank, *_ = text.splitlines()
    assert "decides nothing" in first
    assert "Data" in data
    assert blank == ""
    assert "Coins are fair" not in text
    assert "| table1 | means | – |\n" in text  # and no tally


def test_an_item_that_cannot_run_shows_the_published_numbers_and_why(study, tmp_path):
    text = markdown(reproduce(study, data=tmp_path, workers=0), "pictures")
    quoted = text[text.index("## figure1: a line (not rerun)") :]
    assert re.search(facts("needs", "coat", "paper"), quoted)
    assert "| line | – (2.5) |" in quoted


def test_a_name_opens_no_element_and_no_block_of_markdown(study, tmp_path):
    name = "x | <script>y</script>\n# z \x1b[2J\u202e"
    found = reproduce(study, ["table1"], data=tmp_path, workers=0)
    table = Table(name="t", caption=f"of {name}", columns=("a", name), rows=((name, 1.0),))
    result = replace(found.results[0], tables=(table,), notes=(name, "p < 0.05 of `<b>`"), figures=())
    text = markdown(replace(found, results=(result,), left_out={"other": f"needs {name}"}), "pictures")
    assert r"| a | x \| \<script>y\</script> # z \x1b[2J\u202e |" in text
    assert r"- x | \<script>y\</script> # z \x1b[2J\u202e" in text
    assert "- p < 0.05 of `<b>`" in text
    assert "<script" not in text.replace(r"\<script", "")
    assert "\n# z" not in text
    assert not set(text) & set("\x1b\u202e")
