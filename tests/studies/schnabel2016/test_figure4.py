"""Figure 4: learned propensities are never worse than none, and improve with the sample."""

from __future__ import annotations

import numpy as np

from openloop.studies.schnabel2016 import estimates, figure4
from openloop.studies.schnabel2016.estimates import cut_fits, with_learned
from tests.studies.schnabel2016.conftest import claim_about


def test_figure4_is_never_worse_than_naive_and_improves_with_the_sample(small_run):
    result = figure4.figure4(small_run)
    (figure,) = result.figures
    rmse = {(row["metric"], row["estimator"], row["sample"]): row["RMSE"] for row in figure.rows}
    both = "IPS-NB and SNIPS-NB"  # one line, as they lie on each other
    assert {name for _, name, _ in rmse} == {both, "IPS-KNOWN", "Naive"}
    for metric in ("MSE", "MAE", "DCG@50"):
        assert rmse[metric, both, 100_000] < rmse[metric, both, 10] < rmse[metric, "Naive", 10]
        assert rmse[metric, "Naive", 10] == rmse[metric, "Naive", 100_000]
    assert claim_about(result.claims, "IPS-NB", "naive").holds
    same = claim_about(result.claims, "SNIPS-NB is IPS-NB")
    assert same.holds
    assert not same.counted
    lacking = result.tables[1].rows[0]
    assert lacking[1] > lacking[-1] == 0


def test_claims_fail_when_their_numbers_do():
    errors = np.random.default_rng(0).normal(size=(50, 3, 5))
    reference = {"truth": np.full((3, 5), 10.0), "naive": 10 + errors, "ips": 10 + 0.1 * errors}
    for size, holds in ((0.05, True), (1.5, False)):
        found = {"ips": 10 + size * errors[:, None], "snips": 10 + size * errors[:, None]}
        claims = figure4._claims(reference, (10,), found, np.zeros((50, 1), bool))
        assert [claim.holds for claim in claims if claim.counted] == [holds, holds]


def test_both_estimators_must_be_one_where_no_propensity_was_cut():
    ips = np.ones((4, 2, 3, 5))
    snips, cut = ips.copy(), np.zeros((4, 2), bool)
    snips[1, 0] = 1.002
    cut[1, 0] = True
    claim = figure4._same({"ips": ips, "snips": snips}, cut)
    assert claim.holds
    assert "in 7 fits; in the other 1 of 8" in claim.found
    assert not figure4._same({"ips": ips, "snips": snips}, ~cut).holds


def test_a_cut_is_where_the_weights_do_not_add_up_to_all_cells(small_run, monkeypatch):
    world = figure4.complete(small_run)
    sizes, found = with_learned(small_run, world)
    apart = np.abs(found["snips"] / found["ips"] - 1).max(axis=(2, 3)) > 1e-9
    assert (cut_fits(small_run, world, sizes) == apart).all()
    # 100 ones give 4★ the share 1/105, and P̂ = 0.42·0.05·105 > 1
    monkeypatch.setattr(estimates, "uniform_sample", lambda _world, size, _rng: np.ones(size, np.float32))
    assert cut_fits(small_run, world, (100,)).all()
    assert not cut_fits(small_run, world, (1,)).any()
