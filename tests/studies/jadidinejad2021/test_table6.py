"""Table 6: what its tables show."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.studies.jadidinejad2021 import experiment
from openloop.studies.jadidinejad2021.published import CUTS, METHODS, PUBLISHED
from openloop.studies.jadidinejad2021.table6 import table6
from openloop.studies.kit.results import Value
from tests.studies.jadidinejad2021 import many


@pytest.fixture(scope="module")
def result():
    patch = pytest.MonkeyPatch()
    patch.setattr(experiment, "experiment", lambda *_: many.some_experiment(3))
    yield table6(many.Plain("coat"))
    patch.undo()


def test_it_has_a_table_for_each_column_and_one_of_all_methods(result):
    assert [table.name.removeprefix("table6_coat_") for table in result.tables] == [
        "as_coded", "as_printed", "methods", "cuts", "tests"
    ]  # fmt: skip
    assert result.data == ("coat",)


def test_as_coded_stands_beside_the_published(result):
    table = result.tables[0]
    assert [row[0] for row in table.rows] == list(CUTS)
    published = PUBLISHED["table6"]["tau"]["coat"]
    for cut, *values in table.rows:
        assert [v.published for v in values] == list(published[cut])
        assert all(v.tolerance == pytest.approx(2 * v.error * np.sqrt(4 / 3) + 0.0005) for v in values)


def test_the_numbers_are_those_of_the_table_of_all_methods(result):
    every = {row[0]: row for row in result.tables[2].rows}
    last = result.tables[0].rows[-1]
    assert last[0] == "ndcg"
    for name, value in zip(METHODS, last[1:], strict=True):
        assert value.value == pytest.approx(every[f"as coded: {name}"][1].value)
    printed = result.tables[1].rows[-1]
    for name, value in zip(METHODS, printed[1:], strict=True):
        assert value.value == pytest.approx(every[f"as printed: {name}"][3].value)


def test_all_methods_are_shown_whatever_came_out(result):
    assert [row[0] for row in result.tables[2].rows] == list(many.some_experiment(3).splits[0].methods)
    assert all(isinstance(cell, Value) for row in result.tables[2].rows for cell in row[1:5])


def test_every_pair_of_published_methods_is_tested(result):
    assert len(result.tables[4].rows) == 10
    assert result.tables[4].rows[0][0] == "holdout − ips"
