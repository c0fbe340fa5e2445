"""Claims about instances can fail."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from openloop.studies.jadidinejad2021.instance_claims import in_most_splits, sided_claim
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


NONE = SettingInstances(among="coded", holm=True, pairs=6, instances=((), ()), sides={})


@pytest.mark.parametrize(
    ("splits", "holds"), [(("rm", "r"), (True, True)), (("m", "rm", ""), (True, False)), (("r", ""), (False, False))]
)
def test_instances_and_reversals_must_be_in_most_splits(splits, holds):
    kinds = {"r": "reversal", "m": "masking"}
    setting = replace(NONE, instances=tuple(tuple(SimpleNamespace(kind=kinds[k]) for k in split) for split in splits))
    assert (in_most_splits(setting, kinds.values()), in_most_splits(setting, ["reversal"])) == holds


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
