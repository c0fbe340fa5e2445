"""Table 6: claims that can fail, each in a world where it holds and in one where it does not."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from openloop.studies.jadidinejad2021 import table6_claims
from openloop.studies.jadidinejad2021.published import CUTS, METHODS, PUBLISHED
from tests.studies.jadidinejad2021 import many

PRINTED = PUBLISHED["table6"]["tau"]["coat"]


@dataclass
class Known:
    """A cut at which τ of the methods is known by split, and which of them the test as coded has ahead of which."""

    taus: dict
    told: dict = field(default_factory=dict)

    def ahead(self, a, b):
        return np.array(self.told.get((a, b), [False, False, False]))


def table(values, told=None):
    """τ by cut, in METHODS' order, the same in three splits."""
    known = {cut: dict(zip(METHODS, np.array(values[cut])[:, None] * np.ones(3), strict=True)) for cut in CUTS}
    return {cut: Known(known[cut], (told or {}).get(cut, {})) for cut in CUTS}


# ------------------------------------------------------------------------------------------ as published


def test_ours_must_be_nearer_to_table_6_than_its_column_means():
    means = np.mean([PRINTED[cut] for cut in CUTS], axis=0)
    away = np.mean([np.abs(np.array(PRINTED[cut]) - means) for cut in CUTS])
    near, far = ({cut: np.array(PRINTED[cut]) + by for cut in CUTS} for by in (away - 0.001, away + 0.001))
    claims = [table6_claims.nearer_than_means("coat", table(values)) for values in (near, far)]
    assert [claim.holds for claim in claims] == [True, False]
    assert f"are {away:.3f} from it" in claims[0].found
    assert not table6_claims.nearer_than_means("coat", table(dict.fromkeys(CUTS, means))).holds


def test_the_order_must_be_so_on_average_and_in_most_splits():
    good = table(PRINTED)
    assert table6_claims.in_order("coat", good).holds
    good["ndcg"].taus["q1"] = np.array([0.9, 0.9, 0.1])
    assert table6_claims.in_order("coat", good).holds
    good["ndcg"].taus["q1"] = np.array([2.0, 0.1, 0.1])  # the mean is the largest, thanks to one split
    claim = table6_claims.in_order("coat", good)
    assert (claim.holds, "in 1 of 3 splits" in claim.found) == (False, True)


@pytest.mark.parametrize(
    ("stratified", "told", "noise", "holds"),
    [
        (0.290, (True, True, False), 0.001, [True, True, True]),
        (0.277, (True, True, False), 0.001, [False, True, True]),  # 37 %
        (0.290, (True, False, False), 0.001, [True, False, True]),
        (0.283, (True, True, True), 0.2, [None, True, None]),
        (0.277, (True, True, True), 0.01, [None, True, True]),
    ],
)
def test_the_abstracts_gain_has_a_size_and_two_significances(stratified, told, noise, holds):
    means = {table6_claims.STRATIFIED: stratified, table6_claims.HOLDOUT: 0.202}
    agreed = many.agreed(means, dict.fromkeys(means, noise))
    coded = table(PRINTED, {"ndcg": {("stratified", "holdout"): told}})
    claims = list(table6_claims.abstract_gain("coat", coded, agreed))
    assert [None if claim.undecided else claim.holds for claim in claims] == holds
    assert f"{100 * (stratified / 0.202 - 1):+.1f} %" in claims[0].found
    assert len(list(table6_claims.abstract_gain("another", coded, agreed))) == 2
