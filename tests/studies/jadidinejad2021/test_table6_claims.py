"""Table 6: claims that can fail, each in a world where it holds and in one where it does not."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from openloop.studies.jadidinejad2021 import table6, table6_claims
from openloop.studies.jadidinejad2021.agreement import Lead
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


def test_claims_are_judged_by_their_numbers(table6_result):
    assert len(table6_result.claims) == 10
    assert [claim.ours for claim in table6_result.claims] == [True, *[False] * 7, True, True]
    near, *_, published, candidates = table6_result.claims
    assert not near.holds  # made-up models are not the paper's
    for claim in (published, candidates):
        assert "chosen after seeing the results" in claim.text
        low = float(claim.found.rpartition("(")[2].split()[0])
        assert claim.holds == ("ahead of 10 of 10 published methods" in claim.found and low > 0)


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


def test_there_is_no_relative_gain_over_a_holdout_that_is_not_above_0():
    agreed = many.agreed({table6_claims.STRATIFIED: 0.3, table6_claims.HOLDOUT: -0.1})
    first, *_ = table6_claims.abstract_gain("coat", table(PRINTED), agreed)
    assert (first.holds, "no relative gain" in first.found) == (False, True)


def test_draws_without_a_relative_gain_are_told():
    means = {table6_claims.STRATIFIED: 0.3, table6_claims.HOLDOUT: 0.1}
    first, *_ = table6_claims.abstract_gain("coat", table(PRINTED), many.agreed(means, dict.fromkeys(means, 0.2)))
    assert first.undecided
    assert "no limit to no limit" in first.found
    assert "not above 0 in 30 of them" in first.found  # every other draw of 60


@pytest.mark.parametrize(("cuts", "holds"), [(4, True), (3, False)])
def test_stratified_must_be_ahead_of_both_at_most_cuts(cuts, holds):
    both = {("stratified", b): (True, True, False) for b in ("holdout", "ips")}
    told = {cut: both if at < cuts else {("stratified", "holdout"): (True, True, True)} for at, cut in enumerate(CUTS)}
    claim = table6_claims.better_at_most_cuts("coat", table(PRINTED, told))
    assert (claim.holds, f"at {cuts} of 6" in claim.found) == (holds, True)


@pytest.mark.parametrize(("above", "below", "holds"), [(4, 0, True), (3, 0, None), (3, 3, False), (0, 2, None)])
def test_ips_must_be_clearly_above_holdout_at_most_cuts_and_fails_where_it_clearly_is_not(above, below, holds):
    values = [0.1] * above + [-0.1] * below + [0.0] * (6 - above - below)
    leads = {
        cut: Lead(value=value, drawn=value + np.array([-0.01, 0.01]), won=1, splits=2)
        for cut, value in zip(CUTS, values, strict=True)
    }
    claim = table6_claims.ips_above("coat", leads)
    assert (None if claim.undecided else claim.holds) is holds
    assert f"{values[-1]:+.3f} ({values[-1] - 0.01:+.3f} … {values[-1] + 0.01:+.3f}) by ndcg" in claim.found


def test_the_leads_of_ips_are_those_of_the_table_by_cut():
    found = many.some_experiment(3)
    leads = table6.ips_leads(found, 5)
    for cut, scores in table6.scores_by_cut(found, "as coded", "published").items():
        taus = scores.taus
        assert leads[cut].value == pytest.approx((taus["ips"] - taus["holdout"]).mean())


def test_ips_is_told_from_holdout_where_the_test_as_coded_says_so_in_most_splits():
    assert table6_claims.ips_told_apart("coat", table(PRINTED)).holds
    told = {"ndcg@5": {("holdout", "ips"): (True, True, False)}, "ndcg@10": {("ips", "holdout"): (True, False, False)}}
    apart = table6_claims.ips_told_apart("coat", table(PRINTED, told))
    assert not apart.holds
    assert "they differ at ndcg@5;" in apart.found
    assert table6_claims.ips_told_apart("coat", table(PRINTED, {"ndcg@10": told["ndcg@10"]})).holds  # one is not most


# -------------------------------------------------------------------------------------------------- ours


@pytest.mark.parametrize(
    ("noise", "blind", "holds", "ahead"),
    [
        ((0.0, 0.01, 0.01), 0.0, True, "2 of 2"),
        ((0.0, 0.01, 0.2), 0.0, False, "1 of 2"),  # clearly ahead of the best, not clearly of the other
        ((0.0, 0.2, 0.01), 0.0, False, "1 of 2"),
        ((0.0, 0.01, 0.01), -0.2, False, "2 of 2"),  # and of no use to those who did not choose it
    ],
)
def test_one_of_ours_must_be_clearly_ahead_of_each_published_method_and_blind(noise, blind, holds, ahead):
    means = {"ours: a": 0.5, table6_claims.RIVAL: 0.4, "as printed: q1": 0.3}
    agreed = many.agreed(means, dict(zip(means, noise, strict=True)), halves={"ours: a": blind})
    claim = table6_claims.ahead_of_all("coat", agreed, "published", "here")
    assert claim.holds is holds
    assert f"ahead of {ahead} published methods" in claim.found


def test_a_blind_lead_whose_lower_limit_is_below_0_does_not_hold():
    """Ours is ahead on average of the halves, but by chance."""
    agreed = many.agreed({"ours: a": 0.5, table6_claims.RIVAL: 0.4, "as printed: q1": 0.3})
    one, _ = agreed.weighted.halves
    agreed.values[0, ..., one] += 0.5  # far ahead on one half of the users, a little on the other
    blind = agreed.chosen_blind("published")
    assert blind.value > 0 > blind.interval[0]
    assert not table6_claims.ahead_of_all("coat", agreed, "published", "here").holds
