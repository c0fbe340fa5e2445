"""HTML as a test reads it, and what makes a page safe: no text that became markup, no script but ours, no request."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

VOID = {"meta", "path", "br", "img", "link"}
ADDRESSES = ("src", "href", "data", "action", "poster", "srcset")


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


def check_safe(text: str) -> None:
    """Scripts run by the hash in the page's policy, charts are inert JSON, and no attribute runs or loads anything."""
    page = Reader(text)
    assert page.open == []  # every element is closed, in order
    policy = next(m["content"] or "" for m in page.of("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    code = [script for attributes, script in page.scripts if "type" not in attributes]
    digests = {base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in code}
    assert set(re.findall("'sha256-(.*?)'", policy)) == digests
    for attributes, script in page.scripts:
        assert attributes.get("type") in (None, "application/json")
        if "type" in attributes:
            assert not re.search("[<>&\u2028\u2029]", script)
            json.loads(script)
    for tag, attributes in page.tags:
        assert not [key for key in attributes if key.startswith("on")], (tag, attributes)
        for address in filter(None, map(attributes.get, ADDRESSES)):
            assert address.startswith("data:image/" if tag in ("img", "link") else "#"), (tag, address)
    style = next(iter(re.findall(r"<style>(.*?)</style>", text, re.DOTALL)))
    assert "@import" not in style
    assert "url(" not in style
