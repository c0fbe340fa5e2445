"""Table 6: what its tables show."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t

from openloop.studies.jadidinejad2021.published import CUTS, METHODS, PUBLISHED

DIFFERS = PUBLISHED["table6"]["differs"]["coat"]


def test_it_has_a_table_for_each_column_and_one_of_all_methods(table6_result):
    assert [table.name.removeprefix("table6_coat_") for table in table6_result.tables] == [
        "as_coded", "without_wmf", "as_printed", "methods", "table6_yahoo-r3_published"
    ]  # fmt: skip
    assert table6_result.data == ("coat",)


def test_as_coded_stands_beside_the_published(table6_result):
    table = table6_result.tables[0]
    assert [row[0] for row in table.rows] == list(CUTS)
    published = PUBLISHED["table6"]["tau"]["coat"]
    for cut, *values, apart in table.rows:
        assert len(apart.split(", ")) == sum(len(text.split("/")) for text in DIFFERS[cut]) / 2
        assert [v.published for v in values] == list(published[cut])
        assert all(v.tolerance == pytest.approx(t.ppf(0.975, 2) * v.error * np.sqrt(4 / 3) + 0.0005) for v in values)


def test_the_numbers_are_those_of_the_table_of_all_methods(table6_result):
    every = {row[0]: row for row in table6_result.tables[3].rows}
    last = table6_result.tables[0].rows[-1][:-1]
    assert last[0] == "ndcg"
    for name, value in zip(METHODS, last[1:], strict=True):
        assert value.value == pytest.approx(every[f"as coded: {name}"][1].value)
    printed = table6_result.tables[2].rows[-1]
    for name, value in zip(METHODS, printed[1:], strict=True):
        assert value.value == pytest.approx(every[f"as printed: {name}"][3].value)
