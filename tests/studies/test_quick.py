"""A quick run of every paper goes through all items whose data are here, and again from what was kept."""

from __future__ import annotations

import re

import pytest

from openloop.studies.kit.running import STUDIES, listed, reproduce
from tests.facts import facts

# What the claims are about that a quick run already shows, by paper.
HOLD = {
    "schnabel2016": {
        "table1": (facts("mean", "IPS", "truth"), facts("MAE", "REC_ONES", "REC_FOURS")),
        "figure2": (facts("α = 0.25", "IPS", "SNIPS"), facts("α = 1", "SNIPS", "naive")),
        "figure3left": (facts("MSE", "MF-IPS", "α ≤ 0.75"),),
        "figure4": (facts("IPS-NB", "naive"),),
    },
    "lim2015": {"table2": (facts("MAP", "NDCG", "10 %"),)},
    "jadidinejad2021": {"figure3": (facts("Q1", "holdout", "Q2"),)},
}


@pytest.mark.slow
@pytest.mark.parametrize("paper", STUDIES)
def test_a_quick_run_goes_through_every_item_and_gives_the_same_bytes_again(paper, data_dir, tmp_path):
    runs_twice(paper, data_dir("coat").parent, tmp_path / "kept", packages=False)


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
