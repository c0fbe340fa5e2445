"""Figure 4: learned propensities are never worse than none, and improve with the sample."""

from __future__ import annotations

import numpy as np

from openloop.studies.schnabel2016 import figure4
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
