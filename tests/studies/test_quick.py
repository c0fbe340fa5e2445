"""A quick run of every paper goes through all items whose data are here, and again from what was kept.

Tests of single items on real data are here too: they take the trials that the quick run kept.
"""

from __future__ import annotations

import re

import pytest

from openloop.studies.kit.running import STUDIES, Run, listed, reproduce
from openloop.studies.kit.trials import Trials
from openloop.studies.schnabel2016 import table1, table2
from openloop.studies.schnabel2016.published import PUBLISHED
from tests.facts import facts
from tests.studies.schnabel2016.conftest import claim_about

# What the claims are about that a quick run already shows, by paper.
HOLD = {
    "schnabel2016": {
        "table1": (facts("mean", "IPS", "truth"), facts("MAE", "REC_ONES", "REC_FOURS")),
        "figure2": (facts("α = 0.25", "IPS", "SNIPS"), facts("α = 1", "SNIPS", "naive")),
        "figure3left": (facts("MF-IPS", "MSE", "MF-Naive", "α below 1"),),
        "figure4": (facts("IPS-NB", "naive"),),
    },
    "lim2015": {"table2": (facts("MAP", "NDCG", "10 %"),)},
    # With a few models intervals over users are too wide to decide how methods rank: that is for full runs.
    "jadidinejad2021": {"table2": (facts("minority", "Q2"),), "table5": (facts("minority", "Q2"),)},
    "race": {
        "coat": (
            facts("Recalibrated", "MSE", "all 4,640 test cells"),
            facts("Stack + Exposure", "all 4,640 test cells"),
            facts("beats", "MF-IPS", "MSE"),  # without the cells that are also in the log, too
            facts("beats", "MF-IPS", "nDCG@5"),
        ),
    },
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """The folder of all trials of this file."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture
def run(kept, data_dir):
    """A quick run in this process, of what is not kept yet."""
    with Trials(kept, 0) as trials:
        yield Run(folder=data_dir("coat").parent, quick=True, seed=0, trials=trials)


@pytest.mark.slow
@pytest.mark.parametrize("paper", STUDIES)
def test_a_quick_run_goes_through_every_item_and_gives_the_same_bytes_again(paper, data_dir, kept):
    runs_twice(paper, data_dir("coat").parent, kept, packages=False)


@pytest.mark.slow
@pytest.mark.usefixtures("cornac", "torch")
def test_a_quick_run_goes_through_every_item_that_fits_models_of_cornac(data_dir, tmp_path):
    runs_twice("jadidinejad2021", data_dir("coat").parent, tmp_path / "kept", packages=True)


def runs_twice(paper, folder, cache, *, packages):
    """Runs the items that need optional packages, or those that need none."""
    here = [item for _, item, _, why in listed(folder, paper) if why is None and bool(item.packages) == packages]
    options = {"items": [item.name for item in here], "data": folder, "quick": True, "cache": cache}
    found = reproduce(paper, **options, workers=2)
    assert [result.item for result in found.results] == options["items"] != []
    for item in {result.item for result in found.results} & set(HOLD[paper]):
        for about in HOLD[paper][item]:
            told = [claim for claim in found[item].claims if re.search(about, claim.text)]
            assert told, f"{item} claims nothing like {about!r}"
            assert all(claim.holds for claim in told), told
    again = reproduce(paper, **options, workers=0, step=refuse_to_compute)
    assert again.to_json() == found.to_json()


def test_items_with_claims_to_hold_exist():
    assert {(paper, item) for paper, items in HOLD.items() for item in items} <= {
        (p, i.name) for p, i, _, _ in listed()
    }


def refuse_to_compute(what: str, _done: float) -> None:
    """Everything is kept: no trial is left when one begins to count."""
    if ": 0 of " in what:
        pytest.fail(f"computed again: {what}")


# -- items of Schnabel et al. on their data ------------------------------------------------------------------


def test_table1_of_ml100k_comes_out(run):
    result = table1.table1(run)
    assert [claim.text for claim in result.claims if not claim.holds] == []
    mae = result.tables[0]
    assert [row[1].came_out for row in mae.rows] == [True] * 5  # DCG is judged by the completions of a full run only
    ml100k = result.tables[3].rows[1][1:]
    assert [value.value for value in ml100k] == pytest.approx([0.061, 0.114, 0.271, 0.342, 0.212], abs=6e-4)
    assert [value.came_out for value in ml100k] == [True, True, True, False, True]


def test_coat_comes_out(run):
    coat_result = table2.table2(run)
    # The λ of the absolute loss, and with it the MAE, hangs on how the log falls into folds: MSE does not.
    assert claim_about(coat_result.claims, "coat", "MSE", "MF-IPS", 1.093).holds
    assert claim_about(coat_result.claims, "coat", "MF-IPS", "published errors of HL-MNAR and HL-MAR").holds
    tables = {table.name: table for table in coat_result.tables}
    whole, fresh, significance = (tables[f"table2-coat{part}"] for part in ("", "-new-cells", "-significance"))
    yahoo = tables["table2-yahoo-r3"]
    assert all(value.value is None for _, value in yahoo.values())
    assert all(row[1].value < 0 for row in significance.rows)
    assert [row[2:5:2] for row in significance.rows if "MSE" in row[0]] == [("< 0.001", "< 0.001")] * 3
    assert "4,640" in whole.caption
    assert "366" in fresh.caption
    printed = PUBLISHED["table2"]["coat"]
    assert whole.rows[0][2].published == printed["MF-IPS"]["mse"]
    assert [row[2].published for row in whole.rows[4:]] == [1.214, 1.220, None, None]  # CPT-v is quoted for Yahoo! only
    # A few sweeps of HL-MNAR and HL-MAR already predict about as well as published.
    assert all(row[2].value < 1.1 * row[2].published for row in whole.rows[4:6])
    assert re.search(facts("not rerun"), yahoo.caption)
    # cells that were trained on are easier
    assert all(old[2].value < new[2].value for old, new in zip(whole.rows, fresh.rows, strict=True))


def test_propensities_as_the_paper_trained_them_are_closest_to_the_published_ones(run):
    coat_result = table2.table2(run)
    pairs, offsets = map(float, re.findall(r"\b0\.\d{3}\b", coat_result.notes[0])[-2:])
    assert offsets < pairs
    assert pairs > 0.97
