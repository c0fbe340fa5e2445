from __future__ import annotations

import pytest

import openloop as ol
from openloop.reporting.cold_rows import cold
from openloop.reporting.sections import Subject
from tests.audits.test_cold import MODELS, OPTIONS, TEST, TRAIN


@pytest.mark.parametrize("way", ["keep", "drop", "report"])
def test_the_section_is_there_with_the_numbers_that_were_asked_for(way):
    found = ol.audit(MODELS, TEST, exclude=TRAIN, cold=way, **OPTIONS)
    sections = list(cold(Subject.of(found)))
    assert len(sections) == (way != "keep")
    tables = [block for section in sections for block in section.blocks if block.kind == "table"]
    assert len(tables) == (way == "report")
    for table in tables:
        for row in table.rows:
            model = row[0].text
            assert row[1].value == found.result[model, "recall@5", "naive"].value
            assert row[2].value == found.cold.result[model, "recall@5", "naive"].value


def test_a_comparison_has_none():
    assert not list(cold(Subject.of(ol.evaluate(MODELS, TEST, **OPTIONS))))
