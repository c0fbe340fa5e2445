"""Table 6: what its tables show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t

from openloop.studies.jadidinejad2021.published import CUTS, METHODS, PUBLISHED
from openloop.studies.jadidinejad2021.table6 import NOTES, told_from_others
from openloop.studies.kit.results import Value
from tests.studies.jadidinejad2021 import many

DIFFERS = PUBLISHED["table6"]["differs"]["coat"]


def test_it_has_a_table_for_each_column_and_one_of_all_methods(table6_result):
    assert [table.name.removeprefix("table6_coat_") for table in table6_result.tables] == [
        "as_coded", "without_wmf", "as_printed", "methods", "cuts", "tests", "table6_yahoo-r3_published"
    ]  # fmt: skip
    assert [table.appendix for table in table6_result.tables] == [False, False, True, True, True, True, False]
    assert table6_result.data == ("coat",)


def test_as_coded_stands_beside_the_published(table6_result):
    table = table6_result.tables[0]
    assert [row[0] for row in table.rows] == list(CUTS)
    published = PUBLISHED["table6"]["tau"]["coat"]
    for cut, *values, apart in table.rows:
        assert len(apart.split(", ")) == sum(len(text.split("/")) for text in DIFFERS[cut]) / 2
        assert [v.published for v in values] == list(published[cut])
        assert all(v.tolerance == pytest.approx(t.ppf(0.975, 2) * v.error * np.sqrt(4 / 3) + 0.0005) for v in values)


def test_a_number_is_judged_where_what_is_allowed_tells_it_from_the_others_of_its_line():
    value = Value(value=0.25, published=0.2, tolerance=0.1)
    assert told_from_others(value, (0.2, 0.31, -0.2)).came_out is True
    assert told_from_others(value, (0.2, 0.29, -0.2)).came_out is None
    assert told_from_others(replace(value, published=None), None).judged


def test_the_numbers_are_those_of_the_table_of_all_methods(table6_result):
    every = {row[0]: row for row in table6_result.tables[3].rows}
    last = table6_result.tables[0].rows[-1][:-1]
    assert last[0] == "ndcg"
    for name, value in zip(METHODS, last[1:], strict=True):
        assert value.value == pytest.approx(every[f"as coded: {name}"][1].value)
    printed = table6_result.tables[2].rows[-1]
    for name, value in zip(METHODS, printed[1:], strict=True):
        assert value.value == pytest.approx(every[f"as printed: {name}"][3].value)


def test_all_methods_are_shown_whatever_came_out(table6_result):
    assert [row[0] for row in table6_result.tables[3].rows] == list(many.some_experiment(3).splits[0].methods)
    assert all(isinstance(cell, Value) for row in table6_result.tables[3].rows for cell in row[1:5])


def test_every_pair_of_published_methods_is_tested(table6_result):
    assert len(table6_result.tables[5].rows) == 10
    assert table6_result.tables[5].rows[0][0] == "holdout − ips"


def test_without_wmf_the_made_up_models_are_the_same(table6_result):
    """None of them is a WMF; over some of the models τ is that of those."""
    coded, others = (table6_result.tables[at].rows for at in (0, 1))
    for row, other in zip(coded, others, strict=True):
        assert [v.value for v in other[1:]] == pytest.approx([v.value for v in row[1:-1]])
    assert "over the 14 models without WMF" in table6_result.tables[1].caption


def test_text_and_code_differ_in_seven_places():
    assert "differ in seven places" in NOTES[0]
    assert all(f"({n}) " in NOTES[0] for n in range(1, 8))
    assert "NMF" in NOTES[0]
