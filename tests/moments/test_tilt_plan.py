"""Which tilts a log has, and the factors of rows."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.metrics.naming import metric
from openloop.moments.tilt_plan import KAPPAS, RHOS, place, planned, popularity_factors, rating_factors, tilted
from tests.examples import same

RATED = {"weighted": True, "span": (1.0, 5.0), "positives": False, "by_items": True, "typical": 30.0}


def test_the_grids_have_the_values_that_verdicts_ask_for():
    assert (RHOS[0], RHOS[-1], len(RHOS)) == (1, 3, 7)
    assert 1.5 in RHOS
    assert {0, 0.5, 1} <= set(KAPPAS)


def test_rho_is_per_star_of_five_whatever_the_scale():
    same(place(np.array([1.0, 3.0, 5.0]), (1.0, 5.0)), [0, 2, 4])
    same(place(np.array([0.5, 5.0]), (0.5, 5.0)), [0, 4])
    same(rating_factors(np.array([0.0, 1.0, 4.0]))[:, RHOS.index(2.0)], [1, 1 / 2, 1 / 16])
    same(popularity_factors(np.array([0, 1, 16]))[:, KAPPAS.index(0.5)], [1, 1, 1 / 4])


def test_weighted_rows_are_tilted_by_rating_and_unweighted_positives_by_popularity():
    assert planned(**RATED).against == ("rho",)
    assert planned(**RATED).raked
    assert planned(**RATED | {"span": (1.0, 1.0)}).against == ()
    assert planned(**RATED | {"weighted": False}).against == ()
    liked = RATED | {"weighted": False, "positives": True}
    assert planned(**liked).against == ("kappa",)
    assert planned(**liked).notes == ()


def test_items_with_few_rows_hold_no_margin_and_shrink_kappa():
    few = planned(**RATED | {"typical": 19.0})
    assert not few.raked
    assert "19 rows" in few.notes[0]
    assert planned(**RATED | {"typical": 19.0, "by_items": False}).notes == ()
    assert "3 rows" in planned(**RATED | {"weighted": False, "positives": True, "typical": 3.0}).notes[0]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("mae", True), ("rmse", False), ("recall@5", True), ("dcg", True), ("ndcg", False), ("auc", False)],
)
def test_only_weighted_means_over_rows_are_tilted(name, wanted):
    assert tilted(metric(name)) is wanted
