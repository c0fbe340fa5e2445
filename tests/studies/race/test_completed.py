"""Worlds of known truth: what selects is what their names say, and p is what it is told to be."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.studies.race.completed import KINDS, OBSERVED, SHAPES, known, world


@pytest.fixture(scope="module")
def given():
    """In the place of ML-100K completed: values of low rank, and uneven counts."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(150, 3)) @ rng.normal(size=(3, 200))
    counts = (rng.pareto(1.5, 150) * 20 + 5).astype(int), (rng.pareto(1.2, 200) * 10).astype(int)
    return {"values": values.astype(np.float32), "activity": counts[0], "popularity": counts[1]}


@pytest.mark.parametrize("kind", KINDS)
def test_a_log_shows_a_twentieth_of_the_cells(given, kind):
    made, log = world(given, kind, 0, quick=True)
    assert made.ratings.shape == SHAPES[True]
    assert made.propensities.mean() == pytest.approx(OBSERVED, rel=1e-6)
    n = made.propensities.size
    assert abs(len(log) - OBSERVED * n) < 4 * np.sqrt(OBSERVED * n)
    again, _ = world(given, kind, 0, quick=True)
    assert again.ratings.tolist() == made.ratings.tolist()


def test_ratings_alone_select_or_taste_or_neither(given):
    made, _ = world(given, "rating", 0, quick=True)
    assert all(np.ptp(made.propensities[made.ratings == star]) < 1e-12 for star in range(1, 6))
    related = {}
    for kind in ("taste", "blind"):
        made, _ = world(given, kind, 0, quick=True)
        p = np.log(made.propensities)
        centred = p - p.mean(axis=0) - p.mean(axis=1, keepdims=True) + p.mean()
        related[kind] = (
            np.corrcoef(centred.ravel(), made.ratings.ravel())[0, 1],
            np.corrcoef(p.ravel(), made.ratings.ravel())[0, 1],
        )
    assert related["taste"][0] > 0.3
    assert abs(related["blind"][1]) < 0.1


def test_p_is_true_or_of_ratings_or_of_users_and_items(given):
    made, log = world(given, "rating", 0, quick=True)
    assert known("true", made, log, 0) == pytest.approx(log.propensity)
    by_rating = known("bayes", made, log, 0)
    assert all(np.ptp(by_rating[log.rating == star]) == 0 for star in np.unique(log.rating))
    wrong = known("wrong", made, log, 0)
    assert np.corrcoef(wrong, log.rating)[0, 1] < 0.5 < np.corrcoef(by_rating, log.rating)[0, 1]
