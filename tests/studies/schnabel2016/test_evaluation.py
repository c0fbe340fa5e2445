"""Table 1, Figure 2 and Figure 4: what must come out does, on a small world and on ML100K."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.studies.kit.results import Value
from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Trials
from openloop.studies.schnabel2016 import evaluation
from openloop.studies.schnabel2016.published import PUBLISHED
from openloop.studies.schnabel2016.worlds import MODELS


def claims(result):
    return {claim.text: claim for claim in result.claims}


def test_table1_puts_every_published_number_beside_ours(small_run):
    result = evaluation.table1(small_run)
    mae, dcg, deviations, marginals = result.tables
    for table, metric in ((mae, "mae"), (dcg, "dcg@50")):
        for model, true, *estimates in table.rows:
            printed = PUBLISHED["table1"][metric][model]
            assert true.published == printed["true"]
            shown = [(value.published, value.published_error) for value in estimates]
            assert shown == [printed[name] for name in ("ips", "snips", "naive")]
    assert [row[0] for row in mae.rows] == list(MODELS)
    # MAE follows from the marginals of the stars, so that it comes out whatever the world.
    assert all(value.came_out for _, value in mae.values() if isinstance(value, Value))
    assert sum(value.published is not None for _, value in deviations.values()) == 15
    assert [sum(value.value for value in row[1:]) for row in marginals.rows] == pytest.approx([1, 1])
    assert all(value.came_out for value in marginals.rows[1][1:])  # the made-up log has the printed shares


def test_table1_says_what_its_tables_allow_beside_chance(small_run):
    mae, dcg, _, marginals = (table.caption for table in evaluation.table1(small_run).tables)
    assert "0.003 is allowed" in mae
    assert "0.01 in all" in mae
    assert "8%" in dcg
    assert "0.01 is allowed" in marginals


def test_figure2_finds_weighted_estimators_more_accurate_and_equal_without_bias(small_run):
    result = evaluation.figure2(small_run)
    (figure,) = result.figures
    rmse = {(row["metric"], row["estimator"], row["α"]): row["RMSE"] for row in figure.rows}
    for metric in ("MSE", "MAE", "DCG@50"):
        assert rmse[metric, "IPS", 0.25] < rmse[metric, "Naive", 0.25] / 3
        assert rmse[metric, "SNIPS", 1.0] == pytest.approx(rmse[metric, "Naive", 1.0], rel=1e-12)
    assert claims(result)["at α = 1 SNIPS is the naive estimator"].holds
    for row in figure.rows:
        assert 0 < row["low"] < row["RMSE"] < row["high"]


def test_figure4_is_never_worse_than_naive_and_improves_with_the_sample(small_run):
    result = evaluation.figure4(small_run)
    (figure,) = result.figures
    rmse = {(row["metric"], row["estimator"], row["sample"]): row["RMSE"] for row in figure.rows}
    for metric in ("MSE", "MAE", "DCG@50"):
        assert rmse[metric, "IPS-NB", 100_000] < rmse[metric, "IPS-NB", 10] < rmse[metric, "Naive", 10]
        assert rmse[metric, "Naive", 10] == rmse[metric, "Naive", 100_000]
    assert claims(result)["IPS-NB is never worse than the naive estimator, averaged over the five models"].holds
    lacking = result.tables[1].rows[0]
    assert lacking[1] > lacking[-1] == 0


def test_a_claim_fails_when_its_numbers_do(small_run):
    found = evaluation.with_known(small_run, evaluation.complete(small_run), [0.25])[0.25]
    wrong = found | {"ips": found["ips"] + 1.0, "naive": found["truth"] + 0.001 + np.zeros_like(found["naive"])}
    held = {claim.text[:30]: claim.holds for claim in evaluation._table1_claims(wrong)}
    assert not held["the mean of IPS is the truth, "]
    assert not held["by MAE the naive estimator ran"]
    assert not held["deviations of IPS and SNIPS ar"]
    assert held["the mean of SNIPS is the truth"]


def test_a_penalty_of_twice_the_error_is_not_small():
    titles = evaluation.TITLES.values()
    rmse = {(t, k, a): 1.0 for t in titles for k in ("Naive", "IPS", "SNIPS") for a in (0.25, 1.0)}
    found = {a: {"snips": np.ones(1), "naive": np.ones(1)} for a in (0.25, 1.0)}
    for ratio, small in ((1.5, True), (2.5, False), (0.8, False)):
        given = rmse | {(t, "IPS", 1.0): ratio for t in titles}
        (claim,) = (c for c in evaluation._figure2_claims(found, given) if "penalty" in c.text)
        assert claim.holds is small


def test_the_same_run_gives_the_same_numbers(small_run, tmp_path):
    once = evaluation.figure2(small_run).figures[0].rows
    with Trials(tmp_path, 0) as trials:
        fresh = Run(folder=tmp_path, quick=True, seed=0, trials=trials)
        assert evaluation.figure2(fresh).figures[0].rows == once


def test_table1_of_ml100k_comes_out(data_dir, tmp_path):
    with Trials(tmp_path, 0) as trials:
        run = Run(folder=data_dir("ml-100k").parent, quick=True, seed=0, trials=trials)
        result = evaluation.table1(run)
    assert [claim.text for claim in result.claims if not claim.holds] == []
    for table in result.tables[:2]:
        true = [row[1] for row in table.rows]
        assert [value.came_out for value in true] == [True] * 5
    ml100k = result.tables[3].rows[1][1:]
    assert [value.value for value in ml100k] == pytest.approx([0.061, 0.114, 0.271, 0.342, 0.212], abs=6e-4)
    assert [value.came_out for value in ml100k] == [True, True, True, False, True]
