"""The published numbers are those of the paper's tables."""

from __future__ import annotations

import pytest

from openloop.studies.schnabel2016.published import PUBLISHED, printed_table, printed_tables1, printed_tables2
from openloop.studies.schnabel2016.worlds import MODELS


def test_table1_has_every_model_metric_and_estimator():
    for metric in ("mae", "dcg@50"):
        assert tuple(PUBLISHED["table1"][metric]) == MODELS
        for row in PUBLISHED["table1"][metric].values():
            assert set(row) == {"true", "ips", "snips", "naive"}


def test_published_means_are_close_to_the_published_truth():
    for rows in PUBLISHED["table1"].values():
        for row in rows.values():
            for name in ("ips", "snips"):
                mean, deviation = row[name]
                assert mean == pytest.approx(row["true"], abs=4 * deviation / 50**0.5 + 0.0005 + 0.005 * row["true"])


def test_shares_sum_to_one():
    for shares in PUBLISHED["marginals"].values():
        assert sum(shares) == pytest.approx(1)


def test_table2_has_the_same_methods_for_both_data_sets_but_cpt():
    yahoo, coat = PUBLISHED["table2"]["yahoo-r3"], PUBLISHED["table2"]["coat"]
    assert set(yahoo) - set(coat) == {"CPT-v"}
    for rows in (yahoo, coat):
        best = min(row["mse"] for row in rows.values())
        assert rows["MF-IPS"]["mse"] == best


def test_a_data_set_that_is_not_here_is_shown_as_printed():
    table = printed_table("yahoo-r3")
    assert [row[0] for row in table.rows] == ["MF-IPS", "MF-Naive", "HL-MNAR", "HL-MAR", "CPT-v"]
    assert [value.published for _, value in table.values()][-2:] == [0.770, 1.115]
    assert all(value.came_out is None for _, value in table.values())


def test_whole_tables_are_shown_as_printed_where_no_data_are_here():
    mae, dcg = printed_tables1()
    assert [row[0] for row in mae.rows] == list(MODELS)
    assert (dcg.rows[2][4].published, dcg.rows[2][4].published_error) == (1.38, 0.09)
    assert [table.name for table in printed_tables2()] == ["table2-yahoo-r3", "table2-coat"]
    for table in (mae, dcg, *printed_tables2()):
        assert all(value.value is None for _, value in table.values())
