"""The report as a file: whole or not at all, small, without addresses to fetch, and with every name escaped."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from openloop.errors import InputError
from openloop.reporting.html import page, report
from openloop.reporting.sections import Subject
from tests.audit_cases import HOSTILE, METRICS, comparison, small_audit

LIMIT = 3_000_000
VOID = {"meta", "path", "br"}
ELEMENTS = """
    html head meta title style body a header h1 h2 h3 p button main section svg path ul li div dl dt dd span noscript
    nav table caption thead tbody tr th td bdi small figure figcaption strong script details summary pre code footer
"""


class Reader(HTMLParser):
    """Tags with their attributes, text outside of scripts and styles, and the scripts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts.append((self.tags[-1][1], data))
        elif not self.open or self.open[-1] != "style":
            self.text.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


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


def test_names_make_no_elements_and_no_attributes():
    assert {tag for tag, _ in read().tags} <= set(ELEMENTS.split())
    assert not [key for _, attributes in read().tags for key in attributes if key.startswith("on") or key == "src"]


def test_names_stand_as_text_and_in_labels():
    text = "".join(read().text)
    for name in HOSTILE:
        assert name in text
        assert any(name in (attributes.get("aria-label") or "") for attributes in read().of("div"))


def test_a_name_is_isolated_from_the_text_around_it():
    assert hostile().count(f"<bdi>{HOSTILE[3]}</bdi>") > 10


def test_scripts_are_ours_by_their_hash_and_all_others_are_data():
    policy = next(m["content"] for m in read().of("meta") if m.get("http-equiv") == "Content-Security-Policy")
    code = [text for attributes, text in read().scripts if "type" not in attributes]
    assert len(code) == 2
    for text in code:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe-eval" not in policy
    assert {a.get("type") for a, _ in read().scripts} == {None, "application/json"}


def test_each_chart_is_json_with_nothing_that_html_gives_a_meaning():
    specs = [text for attributes, text in read().scripts if attributes.get("type") == "application/json"]
    assert len(specs) == len([a for a in read().of("div") if a.get("class") == "chart"]) > 20
    for text in specs:
        assert not re.search("[<>&\u2028\u2029]", text)
        json.loads(text)


def test_nothing_is_fetched_by_address():
    for tag, attributes in read().tags:
        for key in ("src", "href", "data", "action", "poster", "srcset"):
            value = attributes.get(key) or "#"
            assert value.startswith("#"), (tag, key, value)
    assert "@import" not in hostile()
    assert "url(" not in next(iter(re.findall(r"<style>(.*?)</style>", hostile(), re.DOTALL)))


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


def test_the_verdict_comes_first_and_its_state_is_in_words():
    supported = page(Subject.of(small_audit()))
    assert "The log supports a choice" in supported
    assert "The log does not support a choice" in hostile()
    assert hostile().index("Why not") < hostile().index('id="leaderboard"')
    assert "the estimators disagree on the order" in hostile()


def test_a_comparison_has_what_it_can_fill():
    text = page(Subject.of(comparison()))
    found = Reader(text)
    assert [a["id"] for a in found.of("section")] == [
        "verdict",
        "leaderboard",
        "differences",
        "places",
        "notes",
        "method",
    ]
    assert "A comparison, without a verdict" in text


def test_the_title_can_be_given(tmp_path):
    report(comparison(), tmp_path / "r.html", title="Spring <2026>")
    assert "<title>Spring &lt;2026&gt;</title>" in (tmp_path / "r.html").read_text(encoding="utf-8")


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
    with pytest.raises(InputError, match=r"folder '.*nowhere' does not exist"):
        report(comparison(), tmp_path / "nowhere" / "report.html")
    with pytest.raises(InputError, match="is a folder"):
        report(comparison(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_other_things_are_refused(tmp_path):
    with pytest.raises(InputError, match="takes an Audit or a Comparison, got dict"):
        report({}, tmp_path / "r.html")
