"""The published numbers: what the paper says of its own tables holds of them as they are written down here."""

from __future__ import annotations

import pytest

from openloop.studies.lim2015 import ITEMS, PUBLISHED
from openloop.studies.lim2015.published import ADG, AUC, MEASURES, SIZES, TABLE1, TABLE2

SPARSITY = {"lastfm-msd": 0.097, "ml-10m": 1.44, "amazon-games": 0.064}  # per cent, as printed beside the sizes


@pytest.mark.parametrize("name", SIZES)
def test_sizes_give_the_printed_sparsity(name):
    users, items, interactions = SIZES[name]
    assert 100 * interactions / (users * items) == pytest.approx(SPARSITY[name], abs=1e-3 if name != "ml-10m" else 1e-2)


@pytest.mark.parametrize("name", SIZES)
def test_adg_is_better_on_all_measures_but_atop(name):
    better = [b[0] > a[0] for a, b in zip(TABLE1[name, AUC], TABLE1[name, ADG], strict=True)]
    assert dict(zip(MEASURES, better, strict=True)) == {m: m != "atop" for m in MEASURES}


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("learner", [AUC, ADG])
def test_table_2_repeats_the_test_values_of_table_1_and_its_differences_follow(measure, learner):
    test, validation, percent = TABLE2[measure, learner]
    assert test == TABLE1["ml-10m", learner][MEASURES.index(measure)][0]
    rounding = 100 * 0.0001 / test  # half a unit of each number
    slip = -0.16 if (measure, learner) == ("ndcg", ADG) else 0.0  # -20.42 is printed, and -20.26 follows
    assert percent - slip == pytest.approx(100 * (validation - test) / test, abs=rounding + 0.005)


def test_every_item_names_its_data_and_the_numbers_are_public():
    assert [item.name for item in ITEMS] == ["table1", "table2"]
    assert set(PUBLISHED) == {"sizes", "table1", "table2"}
    assert all(set(SIZES) < set(item.data) for item in ITEMS)
