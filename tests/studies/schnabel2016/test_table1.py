"""Table 1: every published number has ours beside it, and what must come out does, on a small world.

On ML100K: tests/studies/test_quick.py.
"""

from __future__ import annotations

import pytest

from openloop.studies.schnabel2016 import table1
from openloop.studies.schnabel2016.published import PUBLISHED
from openloop.studies.schnabel2016.worlds import MODELS


def test_table1_puts_every_published_number_beside_ours(small_run):
    result = table1.table1(small_run)
    mae, dcg, deviations, marginals = result.tables
    for table, metric in ((mae, "mae"), (dcg, "dcg@50")):
        for model, true, *estimated in table.rows[: len(MODELS)]:
            printed = PUBLISHED["table1"][metric][model]
            assert true.published == printed["true"]
            shown = [(value.published, value.published_error) for value in estimated]
            assert shown == [printed[name] for name in ("ips", "snips", "naive")]
    assert [row[0] for row in mae.rows] == list(MODELS)
    # The true MAE follows from the marginals of the stars, so it comes out whatever the world.
    assert all(row[1].came_out for row in mae.rows)
    assert sum(value.published is not None for _, value in deviations.values()) == 15
    assert all(value.came_out is None for _, value in deviations.values())  # chance alone moves them too far
    assert [sum(value.value for value in row[1:]) for row in marginals.rows] == pytest.approx([1, 1])
    assert all(value.came_out for value in marginals.rows[1][1:])  # the made-up log has the printed shares


def test_no_tolerance_is_a_quarter_of_its_number_or_of_the_bias_of_naive(small_run):
    mae, dcg, _, marginals = table1.table1(small_run).tables
    for table, metric in ((mae, "mae"), (dcg, "dcg@50")):
        for model, *values in table.rows[: len(MODELS)]:
            printed = PUBLISHED["table1"][metric][model]
            bias = abs(printed["naive"][0] - printed["true"])
            assert all(value.allowed < min(value.published, bias) / 4 for value in values)
    assert all(value.allowed < value.published / 4 for _, value in marginals.values())
