"""The page shows every number, marks those that did not come out, and is written whole."""

from __future__ import annotations

import pytest

from openloop.errors import InputError
from openloop.studies.kit.page import html, markdown, shown, write_page
from openloop.studies.kit.results import Value
from openloop.studies.kit.running import reproduce


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
    assert "1 number of 2 compared." in text
    assert "figure1 was left out: it needs one of coat" in text


def test_html_escapes_text_and_holds_its_pictures(study, data_dir):
    text = html(reproduce(study, ["table1", "figure1"], data=data_dir("coat").parent, workers=0))
    assert "&lt;a note&gt; with <code>code</code>" in text
    assert 'src="data:image/svg+xml;base64,' in text
    assert "http" not in text.split("</style>")[1].replace("https://example.org", "")


def test_a_page_is_written_with_its_pictures_beside_it(study, tmp_path, data_dir):
    found = reproduce(study, ["figure1"], data=data_dir("coat").parent, workers=0)
    written = write_page(found, tmp_path / "page.md")
    assert written == [tmp_path / "page.md", tmp_path / "page" / "figure1.svg"]
    assert "![figure1](page/figure1.svg)" in written[0].read_text()
    assert written[1].read_text().startswith("<svg")
    assert write_page(found, tmp_path / "page.html") == [tmp_path / "page.html"]
    with pytest.raises(InputError, match=r"no such format"):
        write_page(found, tmp_path / "page.pdf")
    (tmp_path / "taken").write_text("")
    with pytest.raises(InputError, match="which is a file"):
        write_page(found, tmp_path / "taken.md")


def test_pictures_of_an_earlier_run_do_not_stay(study, tmp_path, data_dir):
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "old.svg").write_text("")
    write_page(reproduce(study, ["figure1"], data=data_dir("coat").parent, workers=0), tmp_path / "page.md")
    assert [file.name for file in (tmp_path / "page").iterdir()] == ["figure1.svg"]


def test_the_page_says_by_which_command_and_on_what_it_was_written(study, data_dir):
    text = markdown(reproduce(study, ["figure1"], data=data_dir("coat").parent, seed=3, workers=0), "pictures")
    assert "`openloop reproduce made_up figure1 --data DIR --seed 3 --report FILE`" in text
    assert "numpy 2" in text
    assert "- coat: 290 users × 300 items" in text


def test_a_page_without_comparisons_says_so(study, data_dir):
    text = markdown(reproduce(study, ["figure1"], data=data_dir("coat").parent, workers=0), "pictures")
    assert text.endswith("None was compared: the data here are not the paper's.\n")
