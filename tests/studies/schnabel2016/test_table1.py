"""Table 1: every published number has ours beside it, and what must come out does, on a small world.

On ML100K: tests/studies/test_quick.py.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from openloop.studies.schnabel2016 import completions, table1
from openloop.studies.schnabel2016.published import PUBLISHED
from openloop.studies.schnabel2016.worlds import MODELS
from tests.facts import facts


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
    assert [sum(value.value for value in row[1:]) for row in marginals.rows] == pytest.approx([1, 1])
    assert all(value.came_out for value in marginals.rows[1][1:])  # the made-up log has the printed shares


def test_table1_says_what_its_tables_allow_beside_chance(small_run):
    mae, dcg, _, marginals = (table.caption for table in table1.table1(small_run).tables)
    assert re.search(facts("Allowed", "rounding of the published number", 3.5, "marginals", "SKEWED"), mae)
    assert re.search(facts("Allowed", 3.5, "other completions"), dcg)
    assert re.search(facts("Allowed", "rounding"), marginals)


def test_another_completion_is_what_a_dcg_is_allowed(small_run):
    result = table1.table1(small_run)
    others = completions.other_completions(small_run, table1.complete(small_run))
    for j, (_, true, *_) in enumerate(result.tables[1].rows[: len(MODELS)]):
        assert true.tolerance == pytest.approx(0.005 + abs(others.truth[0, j] - true.value))


def test_rotate_is_shown_without_users_of_few_ones_and_not_compared(small_run):
    result = table1.table1(small_run)
    name, *_, naive = result.tables[1].rows[-1]
    few = int(np.sum(np.sum(table1.complete(small_run).ratings == 1, axis=1) < 50))
    assert re.search(facts("ROTATE", few), name)
    assert naive.published == PUBLISHED["table1"]["dcg@50"]["ROTATE"]["naive"][0]
    assert naive.came_out is None
    assert re.search(facts("ROTATE", f"{naive.value:.2f}", naive.published), result.notes[-1])
