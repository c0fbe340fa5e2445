"""Table 1: every published number has ours beside it, and what must come out does, on a small world.

On ML100K: tests/studies/test_quick.py.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from openloop.studies.kit.results import Value
from openloop.studies.schnabel2016 import estimates, table1
from openloop.studies.schnabel2016.published import PUBLISHED
from openloop.studies.schnabel2016.worlds import MODELS
from tests.facts import facts
from tests.studies.schnabel2016.conftest import claim_about


def test_table1_puts_every_published_number_beside_ours(small_run):
    result = table1.table1(small_run)
    mae, dcg, deviations, marginals = result.tables
    for table, metric in ((mae, "mae"), (dcg, "dcg@50")):
        for model, true, *estimated in table.rows:
            printed = PUBLISHED["table1"][metric][model]
            assert true.published == printed["true"]
            shown = [(value.published, value.published_error) for value in estimated]
            assert shown == [printed[name] for name in ("ips", "snips", "naive")]
    assert [row[0] for row in mae.rows] == list(MODELS)
    # MAE follows from the marginals of the stars, so that it comes out whatever the world.
    assert all(value.came_out for _, value in mae.values() if isinstance(value, Value))
    assert sum(value.published is not None for _, value in deviations.values()) == 15
    assert [sum(value.value for value in row[1:]) for row in marginals.rows] == pytest.approx([1, 1])
    assert all(value.came_out for value in marginals.rows[1][1:])  # the made-up log has the printed shares


def test_table1_says_what_its_tables_allow_beside_chance(small_run):
    mae, dcg, _, marginals = (table.caption for table in table1.table1(small_run).tables)
    assert re.search(facts("allowed", 0.003, 0.01), mae)
    assert re.search(facts("allowed", "8%"), dcg)
    assert re.search(facts("allowed", 0.01), marginals)


def test_a_claim_fails_when_its_numbers_do(small_run):
    found = estimates.with_known(small_run, table1.complete(small_run), [0.25])[0.25]
    wrong = found | {"ips": found["ips"] + 1.0, "naive": found["truth"] + 0.001 + np.zeros_like(found["naive"])}
    claims = list(table1._claims(wrong))
    assert not claim_about(claims, "mean", "IPS", "truth").holds
    assert not claim_about(claims, "MAE", "REC_ONES", "REC_FOURS").holds
    assert not claim_about(claims, "deviations", "bias").holds
    assert claim_about(claims, "mean", "SNIPS", "truth").holds
