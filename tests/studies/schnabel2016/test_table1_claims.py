"""The sentences about Table 1 fail when their numbers do."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.studies.schnabel2016 import estimates, table1, table1_claims
from openloop.studies.schnabel2016.estimates import METRICS
from tests.studies.schnabel2016.conftest import claim_about


def test_a_claim_fails_when_its_numbers_do(small_run):
    found = estimates.with_known(small_run, table1.complete(small_run), [0.25])[0.25]
    wrong = found | {"ips": found["ips"] + 1.0, "naive": found["truth"] + 0.001 + np.zeros_like(found["naive"])}
    claims = list(table1_claims.claims(wrong))
    assert not claim_about(claims, "mean", "IPS", "truth").holds
    assert not claim_about(claims, "MAE", "REC_ONES", "REC_FOURS").holds
    assert not claim_about(claims, "deviations", "bias").holds
    assert claim_about(claims, "mean", "SNIPS", "truth").holds


@pytest.mark.parametrize(
    ("mae", "dcg", "holds"), [(0.5, 1.1, True), (0.5, 0.5, False), (1.0, 1.1, False), (0.5, 1.6, False)]
)
def test_snips_must_lower_the_deviation_for_mae_and_not_for_dcg(mae, dcg, holds):
    rng = np.random.default_rng(0)
    truth, sizes = np.full((len(METRICS), 5), 10.0), np.ones((len(METRICS), 1))
    sizes[METRICS.index("mae")], sizes[METRICS.index("dcg@50")] = mae, dcg
    ips, snips = (10 + rng.normal(size=(50, len(METRICS), 5)) for _ in range(2))
    snips = 10 + sizes * (snips - 10)
    found = {"truth": truth, "ips": ips, "snips": snips, "naive": ips + 100}
    assert claim_about(table1_claims.claims(found), "SNIPS lowers", "MAE", "DCG").holds is holds
