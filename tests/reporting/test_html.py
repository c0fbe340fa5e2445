"""The report as a file: whole or not at all, small, without addresses to fetch, and with every name escaped."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise

import pytest

from openloop.errors import InputError
from openloop.reporting.html import page, report
from openloop.reporting.sections import Subject
from tests.audit_cases import HOSTILE, METRICS, comparison, small_audit
from tests.facts import facts
from tests.pages import Reader, check_safe

LIMIT = 3_000_000
ELEMENTS = """
    html head meta title style body a header h1 h2 h3 p button main section svg path ul li div dl dt dd span noscript
    link nav table caption thead tbody tr th td bdi small figure figcaption strong
    script details summary pre code footer ol
"""


@cache
def hostile() -> str:
    return page(Subject.of(small_audit(HOSTILE, METRICS, winner=False)))


@cache
def read() -> Reader:
    return Reader(hostile())


def test_the_file_is_small_and_complete():
    assert len(hostile().encode()) < LIMIT
    assert hostile().startswith("<!DOCTYPE html>")
    assert read().open == []  # every element is closed, in order


def test_names_make_no_elements_no_scripts_and_no_requests():
    check_safe(hostile())
    assert {tag for tag, _ in read().tags} <= set(ELEMENTS.split())


def test_names_stand_as_text_and_in_labels():
    text = "".join(read().text)
    for name in HOSTILE:
        assert name in text
        assert any(name in (attributes.get("aria-label") or "") for attributes in read().of("div"))


def test_headings_are_in_order_and_tables_and_charts_are_labelled():
    levels = [int(tag[1]) for tag, _ in read().tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))
    assert len(read().of("caption")) == len(read().of("table"))
    assert all(th.get("scope") in ("col", "row") for th in read().of("th"))
    charts = [a for a in read().of("div") if a.get("class") == "chart"]
    assert all(a["role"] == "img" and re.search(r"\d", a["aria-label"]) for a in charts)
    assert read().of("html") == [{"lang": "en"}]
    assert {"header", "main", "nav", "footer"} <= {tag for tag, _ in read().tags}


def test_links_lead_somewhere_and_ids_are_unique():
    ids = [attributes["id"] for _, attributes in read().tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {a["href"].removeprefix("#") for a in read().of("a")} <= set(ids)


def test_a_report_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("what was there", encoding="utf-8")
    monkeypatch.setattr("openloop.reporting.html.page", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        report(comparison(), path)
    assert path.read_text(encoding="utf-8") == "what was there"
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_an_unwritable_path_is_named_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr("openloop.reporting.html.page", lambda *_: pytest.fail("worked for nothing"))
    with pytest.raises(InputError, match=facts("folder", f"'{tmp_path / 'nowhere'}'")):
        report(comparison(), tmp_path / "nowhere" / "report.html")
    with pytest.raises(InputError, match=facts(tmp_path, "folder")):
        report(comparison(), tmp_path)
    assert list(tmp_path.iterdir()) == []
