"""The section about lists: a line per model, intervals where there are any, and nothing where nothing was asked."""

from __future__ import annotations

import pytest

from openloop.evaluation import evaluate
from openloop.reporting.html import page
from openloop.reporting.listings import lists
from openloop.reporting.sections import Subject
from tests.examples import small_world


@pytest.fixture(scope="module")
def result():
    world = small_world()
    metrics = ["recall@3", "coverage@3", "popularity@3"]
    return evaluate(world.predictions, world.observe(rng=0), metrics=metrics, estimators=["snips"])


def test_a_line_per_model_and_a_column_per_metric(result):
    (section,) = lists(Subject.of(result))
    _, table, meaning = section.blocks
    assert table.columns == ("model", "coverage@3", "popularity@3")
    assert [row[0].text for row in table.rows] == ["a", "b"]
    for row, model in zip(table.rows, "ab", strict=True):
        assert row[1].value == result[model, "coverage@3", "lists"].value
        assert (row[1].detail, " … " in row[2].detail) == ("", True)
        assert row[1].text == f"{row[1].value:.3f}"  # as many decimals in each line
    assert [item[0] for item in meaning.items] == ["coverage@3", "popularity@3"]
    assert all(item[1] for item in meaning.items)


def test_the_page_has_the_section_only_where_lists_were_asked_for(result):
    assert 'id="lists"' in page(Subject.of(result))
    world = small_world()
    plain = evaluate(world.predictions, world.observe(rng=0), metrics=["recall@3"], estimators=["snips"])
    assert list(lists(Subject.of(plain))) == []
