"""The page of changes: safe, with every section, and with intervals only where they mean something."""

from __future__ import annotations

import pytest

from openloop.reporting.change_sections import change_page
from tests.audit_cases import HOSTILE, small_audit
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
