"""Claims about instances can fail, and notes are made of numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openloop.studies.jadidinejad2021.chance_instances import ChanceCounts
from openloop.studies.jadidinejad2021.instance_claims import (
    FEW_PAIRS,
    InstanceEvidence,
    more_disagreement,
    more_reversals,
    sided_claim,
)
from openloop.studies.jadidinejad2021.instance_tables import about_instances
from openloop.studies.jadidinejad2021.instances import SettingInstances, Sides
from tests.studies.jadidinejad2021 import worlds
from tests.studies.jadidinejad2021.worlds import cells


def test_the_head_model_hides_what_the_tail_prefers(compared):
    claims = {claim.text: claim for claim in compared.claims}
    (pair,) = [c for text, c in claims.items() if "GMF20 against SVD20" in text]
    assert pair.holds
    assert "2 of 2 splits" in pair.found
    (few,) = [c for text, c in claims.items() if "very small minority" in text]
    items = cells(compared, "table5", "Holdout")["items"].value
    assert few.found.startswith(f"Q2 has {worlds.HEAD} of {items:.0f} items")
    assert few.holds is (0.05 * items > worlds.HEAD)


def test_the_notebooks_mostpop_stands_beside_ours():
    names = ("BPR10", "WMF10", "MostPop", "GA")
    fits = worlds.fits(splits=1, with_open_loop=False, names=names)
    (note,) = [n for n in about_instances("table2", "x", fits, comparable=False, notes=()).notes if "MostPop" in n]
    assert "notebook has Holdout 0.373, Q1 0.340 and Q2 0.696" in note
    assert "Table 2 Holdout 0.373, Q1 0.339 and Q2 0.695 for BPR10" in note


NONE = SettingInstances(among="coded", holm=True, pairs=6, instances=((), ()), sides={})


def evidence(found, drawn):
    """By split, how many are found and drawn; reversals are the first of each pair."""
    either, reversals = (
        tuple(ChanceCounts(found=n[kind], drawn=np.full(99, m[kind])) for n, m in zip(found, drawn, strict=True))
        for kind in (1, 0)
    )
    return InstanceEvidence(
        data="coat", pair=("a", "b"), rows=(), plain=NONE, adjusted=NONE, either=either, reversals=reversals
    )


@pytest.mark.parametrize(
    ("found", "drawn", "holds"),
    [
        (((2, 3), (2, 3)), ((0, 0), (0, 0)), [True, True]),
        (((0, 3), (0, 3)), ((0, 0), (0, 0)), [True, False]),  # maskings only
        (((2, 3), (2, 3)), ((0, 4), (0, 4)), [False, True]),
        (((2, 3), (2, 3)), ((0, 0), (4, 4)), [False, False]),  # one of two splits is not most
        (((0, 0), (0, 0)), ((0, 0), (0, 0)), [False, False]),
    ],
)
def test_instances_and_reversals_must_each_be_more_than_chance_gives_in_most_splits(found, drawn, holds):
    given = evidence(found, drawn)
    claims = [more_disagreement(given), more_reversals(given)]
    assert [claim.holds for claim in claims] == holds
    for claim, kind in zip(claims, (1, 0), strict=True):
        assert f"with dealt gains {np.mean([d[kind] for d in drawn]):.2f} per split" in claim.found


def test_the_gist_says_how_many_of_each_kind_there_are():
    for splits, over in ((1, ""), (2, ", over 2 splits of one log")):
        given = replace(evidence(((0, 3),) * splits, ((0, 0),) * splits), data="ml-1m")
        for claim in (more_disagreement(given), more_reversals(given)):
            assert claim.gist.startswith("on ml-1m, ")
            assert claim.gist.endswith(f"(0 reversals and 0 maskings after Holm{over})")
            assert "paradox" not in claim.gist
            assert ("in most splits" in claim.text) is (splits == 2)


def side(majority, aggregate):
    return Sides(majority=majority, aggregate=aggregate, clear_majority=0, clear_aggregate=0)


@pytest.mark.parametrize(
    ("instances", "opposite", "holds"),
    [((6, 2), (5, 4), True), ((6, 2), (4, 5), False), ((2, 6), (5, 4), False), ((4, 4), (5, 4), False),
     ((2, 6), (1, 0), False),  # the other choice decides nothing, this one is enough
     ((7, 1), (0, 1), None), ((5, 0), (5, 4), None), ((0, 0), (0, 0), None)],
)  # fmt: skip
def test_a_method_must_side_with_q1_however_the_pairs_are_chosen(instances, opposite, holds):
    total = sum(instances)
    setting = replace(NONE, instances=((None,) * total, ()))  # only their number counts
    claim = sided_claim("it", setting, side(*instances), side(*opposite))
    assert (None if claim.undecided else claim.holds) is holds


def test_fewer_pairs_than_decide_may_be_on_one_side_by_chance():
    assert 2 * 0.5**FEW_PAIRS < 0.05 < 2 * 0.5 ** (FEW_PAIRS - 1)


def test_in_the_made_up_paradox_the_open_loop_is_asked_both_ways(compared):
    (claim,) = [c for c in compared.claims if "the open loop agrees with Q1 more often than not" in c.text]
    assert "of those significant in Q1" in claim.found
    assert "of those significant over all ratings and not in Q1" in claim.found
