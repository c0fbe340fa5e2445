"""The section about positions: a curve with its table, what estimates rest on, and checks; none without positions."""

from __future__ import annotations

import pytest

import openloop as ol
from openloop.reporting.blocks import Bullets, FigureBlock, TableBlock
from openloop.reporting.html import page
from openloop.reporting.positions import positions, positions_chart
from openloop.reporting.sections import Subject


@pytest.fixture(scope="module")
def found():
    world = ol.simulate.click_world(400, 6, 3, logging="shuffled")
    log = world.observe(rng=1)
    return ol.audit(world.ranks(log), log, ol.propensity.Examination(by="randomised").fit(log))


def test_the_section_has_a_curve_what_estimates_rest_on_and_checks(found):
    (section,) = positions(Subject.of(found))
    kinds = [type(block) for block in section.blocks]
    assert kinds.count(FigureBlock) == kinds.count(TableBlock) == kinds.count(Bullets) == 1
    table = next(block for block in section.blocks if isinstance(block, TableBlock))
    assert len(table.rows) == len(found.models) * len(found.result.estimators)


def test_the_chart_has_examination_and_rates_relative_to_the_first(found):
    rows = positions_chart(found.positions).to_dict()["datasets" if False else "data"]["values"]
    first = [row["value"] for row in rows if row["position"] == 1]
    assert first == [1.0, 1.0]
    assert len(rows) == 2 * len(found.positions.lines)


def test_a_page_of_impressions_has_positions_and_nothing_about_ratings(found):
    text = page(Subject.of(found))
    assert 'id="positions"' in text
    assert 'id="strata"' not in text
    assert 'id="weights"' not in text


def test_other_audits_have_no_positions(found):
    assert list(positions(Subject.of(found.result))) == []
