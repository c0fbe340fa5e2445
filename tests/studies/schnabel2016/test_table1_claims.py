"""The sentences about Table 1 fail when their numbers do."""

from __future__ import annotations

import numpy as np

from openloop.studies.schnabel2016 import estimates, table1, table1_claims
from tests.studies.schnabel2016.conftest import claim_about


def test_a_claim_fails_when_its_numbers_do(small_run):
    found = estimates.with_known(small_run, table1.complete(small_run), [0.25])[0.25]
    wrong = found | {"ips": found["ips"] + 1.0, "naive": found["truth"] + 0.001 + np.zeros_like(found["naive"])}
    claims = list(table1_claims.claims(wrong))
    assert not claim_about(claims, "mean", "IPS", "truth").holds
    assert not claim_about(claims, "MAE", "REC_ONES", "REC_FOURS").holds
    assert not claim_about(claims, "deviations", "bias").holds
    assert claim_about(claims, "mean", "SNIPS", "truth").holds
