"""The page of changes: safe, with every section, and with intervals only where they mean something."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openloop.audits.change_lists import Differing
from openloop.reporting.blocks import STATES, TableBlock
from openloop.reporting.change_sections import change_page, difference, differing
from openloop.reporting.html import report
from tests.audit_cases import HOSTILE, small_audit
from tests.change_cases import VALUE, changes
from tests.pages import Reader, check_safe


@pytest.fixture(scope="module")
def hostile():
    old = small_audit(HOSTILE, winner=False)
    return small_audit((*HOSTILE[:3], "new one", HOSTILE[4])).since(old)


def test_the_page_is_safe_and_has_its_sections(hostile):
    text = change_page(hostile)
    check_safe(text)
    page = Reader(text)
    assert [a["id"] for a in page.of("section")] == ["verdict", "verdicts", "orders", "estimates", "support"]
    shown = "".join(page.text)
    for name in (*HOSTILE, "new one"):
        assert name in shown


def test_report_writes_it(tmp_path):
    report(changes(), tmp_path / "diff.html", title="Week 3 <4>")
    text = (tmp_path / "diff.html").read_text(encoding="utf-8")
    assert "<title>Week 3 &lt;4&gt;</title>" in text
    assert "are not tests" in text
    assert "now neither is ahead" in text


def test_nothing_in_common_leaves_words():
    text = change_page(changes(shared=(), orders=(), values=(), support=(), settings=()))
    check_safe(text)
    assert "no order to compare" in text
    assert "settings in the two files are the same" in text
    assert "<h3>Why</h3>" not in text
    assert STATES["changes"][0] in text


def test_differences_have_an_interval_where_there_is_one():
    assert difference(VALUE) == ("+1.00", "0.80 … 1.20")
    assert difference(replace(VALUE, low=None, high=None)) == ("+1.00", "")  # rounded as the two values are
    point = {"old_low": 1.0, "old_high": 1.0, "new_low": 2.0, "new_high": 2.0}
    assert difference(replace(VALUE, low=None, high=None, **point)) == ("+1", "")
    assert difference(replace(VALUE, new_estimand="per user")) == ("not the same estimand", "")


def test_text_numbers_and_what_is_missing_are_told():
    table = differing("x", (Differing(name="log", old="<a>", new="b"), Differing(name="rows", old=1234, new=None)))
    assert isinstance(table, TableBlock)
    assert [cell.text for row in table.rows for cell in row] == ["log", "<a>", "b", "rows", "1,234", "–"]
