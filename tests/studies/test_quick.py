"""A quick run of every paper goes through all items whose data are here, and again from what was kept."""

from __future__ import annotations

import pytest

from openloop.studies.kit.running import listed, reproduce

# Parts of sentences that a quick run already shows, by paper.
HOLD = {
    "schnabel2016": {
        "table1": ("the mean of IPS is the truth", "ranks REC_ONES above REC_FOURS"),
        "figure2": ("at least ten times as accurate", "SNIPS is the naive estimator"),
        "figure3left": ("The MSE of MF-IPS is below",),
        "figure4": ("IPS-NB is never worse",),
    },
    "lim2015": {"table2": ("MAP and NDCG differ by over 10 %",)},
    "jadidinejad2021": {"figure3": ("Q1 agrees better",)},
}


@pytest.mark.slow
@pytest.mark.parametrize("paper", HOLD)
def test_a_quick_run_goes_through_every_item_and_gives_the_same_bytes_again(paper, data_dir, tmp_path):
    folder = data_dir("coat").parent
    options = {"data": folder, "quick": True, "cache": tmp_path / "kept"}
    found = reproduce(paper, **options, workers=2)
    can_run = [item.name for name, item, _, why in listed(folder) if name == paper and why is None]
    assert [result.item for result in found.results] == can_run
    for item, sentences in HOLD[paper].items():
        for sentence in sentences:
            told = [claim for claim in found[item].claims if sentence in claim.text]
            assert told, f"{item} claims nothing like {sentence!r}"
            assert all(claim.holds for claim in told), told
    again = reproduce(paper, **options, workers=0, step=refuse_to_compute)
    assert again.to_json() == found.to_json()


def refuse_to_compute(what: str, _done: float) -> None:
    """Everything is kept: no trial is left when one begins to count."""
    if ": 0 of " in what:
        pytest.fail(f"computed again: {what}")
