"""Tables 2 to 5 from fits: published numbers beside ours where they can be, by themselves where they cannot."""

from __future__ import annotations

from openloop.studies.jadidinejad2021.instance_tables import about_instances
from openloop.studies.kit.results import Value
from tests.studies.jadidinejad2021 import worlds
from tests.studies.jadidinejad2021.worlds import cells


def test_published_numbers_stand_beside_ours(compared):
    line = cells(compared, "table5", "Holdout")
    assert isinstance(line["GMF20"], Value)
    assert (line["GMF20"].published, line["SVD20"].published) == (0.245, 0.244)
    assert line["better, published"] == "neither"
    assert (line["ratings"].published, line["items"].published) == (1392, 286)
    assert compared.compared() == 6 * 4 - 1  # all but the open loop of GMF20, whose batches are left to chance


def test_numbers_of_other_data_stand_apart_and_are_not_compared():
    result = about_instances("table2", "ml-1m", worlds.fits(splits=1, with_open_loop=False, names=(
        "BPR10", "WMF10", "MostPop", "GA")), comparable=False, notes=())  # fmt: skip
    assert result.compared() == 0
    line = cells(result, "table2", "Q1")
    assert (line["BPR10, published"], line["WMF10, published"], line["ratings, published"]) == (
        "0.339", "0.350*", 197_600,
    )  # fmt: skip
    assert (
        cells(result, "table2-instances", "training items in the ranking, as coded, p < 0.05 each")["open loop with Q1"]
        is None
    )


def test_instances_are_counted_over_all_splits(compared):
    row = cells(compared, "table5-instances", "training items in the ranking, as coded, p < 0.05 each")
    assert row["pairs"] == 6 * 2
    assert row["reversals"] + row["maskings"] >= 2
    with_q1, against = (int(row[name].split()[0]) for name in ("open loop with Q1", "open loop against"))
    assert with_q1 + against <= row["reversals"] + row["maskings"]
