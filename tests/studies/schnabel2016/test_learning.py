"""Figure 3: trials are pure and weigh as told, paired tests are Student's, and claims follow their numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from openloop.data.simulate import World, low_rank, observation_model
from openloop.studies.schnabel2016 import evaluation, learning
from openloop.studies.schnabel2016.learning import Errors, at_ends, half_width, learned, p_value, paired

GIVEN = {"Y": low_rank(120, 150, 3, rng=0).astype(np.int8)}
SETTING = {"alpha": 0.25, "size": 0, "loss": "squared", "draw": 0, "seed": 0, "regs": (5e-4, 1e-3)}


@pytest.fixture
def run(small_run, monkeypatch):
    monkeypatch.setattr(learning, "complete", evaluation.complete)
    monkeypatch.setattr(learning, "REGS", (1.3e-4, 2.5e-4, 5e-4, 1e-3))
    return small_run


def errors(values, method="MF-IPS", at=0.25, regs=(1.0,)):
    return Errors(method=method, at=at, metric="mse", values=np.array(values), regs=np.array(regs))


def test_a_paired_difference_is_students():
    a, b = np.random.default_rng(0).normal(size=(2, 9))
    found = paired(a, b)
    assert found.p == pytest.approx(stats.ttest_rel(a, b).pvalue)
    assert found.mean == pytest.approx(np.mean(a - b))
    assert found.stderr == pytest.approx(stats.sem(a - b))


def test_equal_errors_do_not_differ_and_a_constant_gap_is_certain():
    same = np.array([0.3, 0.4])
    assert paired(same, same).p == 1
    assert paired(np.array([1.5, 2.5]), np.array([1.0, 2.0])).p == 0
    assert paired(np.array([1.5, 2.5]), np.array([1.0, 2.0])).above
    assert not paired(np.array([1.0, 2.0]), np.array([1.5, 2.5])).above


def test_a_p_value_in_a_column_has_no_sign_but_below_a_thousandth():
    assert [p_value(p) for p in (1e-5, 0.0234, 1.0)] == ["< 0.001", "0.023", "1"]


def test_the_band_is_students_interval_of_the_mean():
    values = np.random.default_rng(1).normal(size=12)
    low, high = stats.t.interval(0.95, 11, values.mean(), stats.sem(values))
    assert half_width(values) == pytest.approx((high - low) / 2)


def test_a_trial_is_a_pure_function_of_its_arrays_and_settings():
    one, other = (learned(GIVEN, by="known", **SETTING) for _ in range(2))
    assert one == other
    assert one["reg"] in SETTING["regs"]
    assert one["mse"] >= one["mae"] ** 2
    assert learned(GIVEN, by="known", **SETTING | {"draw": 1}) != one


def test_where_nobody_chooses_weights_change_nothing():
    naive, known = (learned(GIVEN, by=by, **SETTING | {"alpha": 1.0}) for by in ("naive", "known"))
    assert known == naive


def test_weights_pay_where_people_choose():
    naive, known = (learned(GIVEN, by=by, **SETTING) for by in ("naive", "known"))
    assert known["mse"] < naive["mse"]


def test_naive_bayes_that_has_seen_every_cell_is_nearly_as_good_as_known_propensities():
    known = learned(GIVEN, by="known", **SETTING)
    bayes = learned(GIVEN, by="bayes", **SETTING | {"size": GIVEN["Y"].size})
    assert bayes["mse"] == pytest.approx(known["mse"], rel=0.05)
    assert bayes["mse"] != known["mse"]


def test_the_absolute_loss_is_for_the_mean_absolute_error():
    squared, absolute = (
        np.mean([learned(GIVEN, by="known", **SETTING | {"loss": loss, "draw": draw})["mae"] for draw in range(4)])
        for loss in ("squared", "absolute")
    )
    assert absolute < squared


def test_figure_3_left_has_both_metrics_and_finds_weights_better(run):
    result = learning.figure3left(run)
    assert [table.name for table in result.tables] == ["figure3left-mse", "figure3left-mae"]
    assert [claim.text for claim in result.claims if not claim.holds] == []
    assert all("2 trials" in claim.text for claim in result.claims)  # as many as a quick run has
    (figure,) = result.figures
    assert {(row["metric"], row["at"], row["method"]) for row in figure.rows} == {
        (metric, at, method)
        for metric, at in (("MSE", 0.25), ("MSE", 1.0), ("MAE", 0.25))
        for method in ("MF-Naive", "MF-IPS")
    }
    for row in figure.rows:
        assert row["low"] <= row["error"] <= row["high"]


def test_figure_3_right_takes_its_references_from_the_left(run):
    left, right = learning.figure3left(run), learning.figure3right(run)
    naive, ips = left.tables[0].rows[0][1:3]
    *bayes, known, unweighted = right.tables[0].rows
    assert (known[1].value, unweighted[1].value) == (ips.value, naive.value)
    assert [row[0] for row in bayes] == ["MF-IPS-NB, 10 ratings", "MF-IPS-NB, 1,000 ratings"]
    assert right.claims[0].holds


def test_claims_fail_when_their_numbers_do():
    worse, better = errors([2.0, 2.1, 2.2], "MF-IPS"), errors([1.0, 1.2, 1.1], "MF-Naive")
    below, above = learning._left_claims({("mse", 0.25): (better, worse)}, "mse")
    assert not below.holds
    assert not above.holds
    assert [claim.holds for claim in learning._right_claims([worse], better)] == [False, False]
    below, above = learning._left_claims({("mse", 0.25): (worse, better)}, "mse")
    assert below.holds
    assert above.holds


def test_lambdas_at_the_ends_of_the_grid_are_counted():
    assert at_ends([errors([1.0], regs=(1.0, 2.0)), errors([1.0], regs=(4.0,))], (1.0, 2.0, 4.0)).startswith("2 of 3")
    assert errors([1.0], regs=(2.0, 1.0, 2.0)).chosen == "1 (1×), 2 (2×)"
