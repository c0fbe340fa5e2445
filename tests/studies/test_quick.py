"""A quick run of every paper goes through all items whose data are here, and again from what was kept."""

from __future__ import annotations

import re

import pytest

from openloop.studies.kit.running import listed, reproduce
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
@pytest.mark.parametrize("paper", HOLD)
def test_a_quick_run_goes_through_every_item_and_gives_the_same_bytes_again(paper, data_dir, tmp_path):
    folder = data_dir("coat").parent
    options = {"data": folder, "quick": True, "cache": tmp_path / "kept"}
    found = reproduce(paper, **options, workers=2)
    can_run = [item.name for name, item, _, why in listed(folder) if name == paper and why is None]
    assert [result.item for result in found.results] == can_run
    for item, subjects in HOLD[paper].items():
        for about in subjects:
            told = [claim for claim in found[item].claims if re.search(about, claim.text)]
            assert told, f"{item} claims nothing like {about!r}"
            assert all(claim.holds for claim in told), told
    again = reproduce(paper, **options, workers=0, step=refuse_to_compute)
    assert again.to_json() == found.to_json()


def refuse_to_compute(what: str, _done: float) -> None:
    """Everything is kept: no trial is left when one begins to count."""
    if ": 0 of " in what:
        pytest.fail(f"computed again: {what}")
