"""The Movie-Lovers example: the naive estimator prefers the wrong model, the weighted ones do not."""

from __future__ import annotations

import pytest

from openloop.studies.schnabel2016 import figure1


def test_the_truth_follows_from_the_genres():
    truth = figure1.movie_lovers_estimates({}, seed=0, draws=2)["truth"]
    # Ŷ1 is 2 off on a quarter of the cells, Ŷ2 is 4 off on three eighths.
    assert truth[:3, 0] == pytest.approx([0.5, 1.0, 0.75])
    assert truth[:3, 1] == pytest.approx([1.5, 6.0, 0.625])
    assert truth[3, 2] == pytest.approx(3.0)  # half of the users love horror (5), half hate it (1)


def test_every_claim_of_the_example_holds(small_run):
    result = figure1.figure1(small_run)
    assert [claim.holds for claim in result.claims] == [True] * 3
    assert [row[0] for row in result.tables[0].rows][-1] == "CG of Ŷ3"
