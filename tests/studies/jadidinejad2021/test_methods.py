"""The methods by name: strata that partition, and weights that match what was held out."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.studies.jadidinejad2021 import as_coded, methods, scores
from openloop.studies.jadidinejad2021.models import given_of
from tests.studies.jadidinejad2021 import many


def test_the_five_columns_as_coded():
    held, _, _ = many.held()
    found = methods.coded(held)
    assert list(found) == ["holdout", "ips", "stratified", "q1", "q2"]
    p = as_coded.propensities(held.given["item"], many.ITEMS, many.USERS)
    share = np.mean(as_coded.strata(p[held.rows[1]], 2)[held.shown] == 0)
    assert 0 < share < 1
    q1, q2 = (found[name](None).value for name in ("q1", "q2"))
    assert found["stratified"](None).value == pytest.approx(share * q1 + (1 - share) * q2)
    cells = held.cells.where(held.shown[held.relevant])
    gain = as_coded.ips_gain(p, held.split.order)[cells.item]
    assert found["ips"](10).value == pytest.approx(scores.snips(cells, "coded", 10, gain).value)


def test_propensities_expect_the_rows_of_the_log():
    log = many.logs()[1]
    for kind in ("eq7", *methods.PROPENSITIES):
        p = methods.propensity(given_of(log), kind=kind)["p"]
        total = np.broadcast_to(p, (many.USERS, many.ITEMS)).sum()
        assert total == pytest.approx(len(log), rel=0.1 if kind == "calibrated" else 1e-3)


@pytest.mark.parametrize(("among", "t"), [("all", 0), ("outside", 1)])
def test_a_candidate_is_observed_with_pi(among, t):
    held, _, _ = many.held()
    s, p = held.split.share, np.linspace(0.7, 0.05, many.ITEMS)
    mine = p[held.cells.item]
    by_hand = scores.snips(held.cells, among, None, (1 - mine * (1 - s) * t) / (mine * s))
    found = methods.ours(held, {"popularity": p}, among)["snips, popularity"](None)
    assert found.value == pytest.approx(by_hand.value)


def test_catalogue_shares_count_candidates():
    held, _, _ = many.held()
    grid = methods.grid_of(held, np.where(np.arange(many.ITEMS) < 10, 0.6, 0.1))
    everything = methods.catalogued(held, grid, "all", 2).keywords["share"]
    outside = methods.catalogued(held, grid, "outside", 2).keywords["share"]
    assert everything == pytest.approx([0.75, 0.25])
    assert outside[1] < 0.25  # the often observed items are more often in the training part
