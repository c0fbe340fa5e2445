"""The section about a rehearsal."""

from __future__ import annotations

from dataclasses import replace

from openloop.reporting.html import page
from openloop.reporting.rehearsals import rehearsal
from openloop.reporting.sections import Subject
from tests.audit_cases import HOSTILE, small_audit
from tests.audits.test_rehearsal import FOUND


def test_an_audit_without_a_rehearsal_has_no_such_section():
    assert list(rehearsal(Subject.of(small_audit()))) == []
    assert 'id="rehearsal"' not in page(Subject.of(small_audit()))


def test_it_has_both_rates_the_answers_and_what_is_assumed():
    (section,) = rehearsal(Subject.of(replace(small_audit(), rehearsal=FOUND)))
    intro, judged, table, assumed = section.blocks
    assert "200 logs" in intro.text
    assert "3.0 %" in judged.text
    assert "60 %" in judged.text
    assert [[cell.text for cell in row[1:]] for row in table.rows] == [
        ["4", "2", "10", "184"],
        ["120", "1", "29", "50"],
    ]
    assert len(assumed.items) == 3


def test_names_are_text_on_the_page():
    found = replace(FOUND, a=HOSTILE[0], b=HOSTILE[1])
    text = page(Subject.of(replace(small_audit(), rehearsal=found)))
    assert 'id="rehearsal"' in text
    assert HOSTILE[0] not in text
