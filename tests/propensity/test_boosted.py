"""Boosted propensities find thresholds, forget how cells were sampled, and add up to the log."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.core.feedback import Feedback
from openloop.data.simulate import World
from openloop.errors import UndefinedError
from openloop.propensity import boosted
from openloop.propensity.boosted import Boosted
from openloop.propensity.logistic import Logistic
from tests.contracts import PropensityModelContract
from tests.facts import facts


def threshold_world(U=300, I=200, seed=0):
    """Those past a threshold see much of what is past another: a corner that products of covariates cannot draw."""
    rng = np.random.default_rng(seed)
    X, Z = rng.uniform(-1, 1, (U, 1)), rng.uniform(-1, 1, (I, 1))
    match = (X > 0.2) & (np.abs(Z[:, 0]) < 0.5)  # (U, I)
    P = np.where(match, 0.3, 0.03)
    Y = np.where(match, 4.0, 2.0) + rng.integers(0, 2, (U, I))
    return World(ratings=Y, propensities=P, predictions={"four": np.full((U, I), 4.0)}), X, Z


def error(P, world):
    return float(np.sqrt(np.mean((P - world.propensities) ** 2)))


class TestCounts(PropensityModelContract):
    def make(self):
        return Boosted(min_samples_leaf=10)


class TestCovariates(PropensityModelContract):
    def make(self):
        return Boosted(rng=2, min_samples_leaf=10)

    def fit(self, model, feedback):
        rng = np.random.default_rng(0)
        return model.fit(feedback, user_features=rng.random((30, 2)), item_features=rng.random((20, 2)))


def mass(P, log):
    """Σw/(U·I), 1 when p is right."""
    return float(np.sum(1 / P[log.user, log.item]) / P.size)


def test_thresholds_are_found_where_products_see_a_slope():
    world, X, Z = threshold_world(600, 400)
    log = world.observe(0)
    trees, lines = Boosted().fit(log, X, Z).matrix(), Logistic().fit(log, X, Z).matrix()
    assert error(trees, world) < 0.75 * error(lines, world)
    # Outside the corner the slope falls far below the truth, and its weights explode; those of trees do not. That
    # their mass is right also says that p does not follow the cell's own row: in-sample trees come to 0.83.
    assert abs(mass(lines, log) - 1) > 0.3
    assert abs(mass(trees, log) - 1) < 0.03


def test_the_number_of_negatives_is_taken_out_again():
    world, X, Z = threshold_world(400, 300)
    log = world.observe(0)
    few, many = (Boosted(negatives=k).fit(log, X, Z) for k in (1, 5))
    truth = world.propensities
    for model in (few, many):
        P = model.matrix()
        # Both kinds of cells have their p, though one of two cells was a positive in one fit and one of six there.
        assert P[truth == 0.3].mean() == pytest.approx(0.3, rel=0.05)
        assert P[truth == 0.03].mean() == pytest.approx(0.03, rel=0.1)
    assert np.all(few.shift_ < many.shift_ - 1)  # log 5 = 1.6 apart, but for the last shift


@pytest.mark.parametrize("whole", [2**22, 1000])
def test_the_grid_sums_to_the_log_wholly_or_on_a_sample(monkeypatch, whole):
    monkeypatch.setattr(boosted, "WHOLE", whole)
    monkeypatch.setattr(boosted, "SAMPLED", 20_000)
    world, X, Z = threshold_world()
    log = world.observe(0)
    model = Boosted().fit(log, X, Z)
    assert model.matrix().sum() == pytest.approx(len(log), rel=1e-6 if whole > 60_000 else 0.02)
    assert ("20,000 cells" in model.notes_[-1]) == (whole == 1000)


def test_a_log_of_every_cell_or_of_hardly_any_is_refused():
    user, item = (c.ravel() for c in np.indices((5, 4)))
    with pytest.raises(UndefinedError, match=facts("Boosted", "observed cells", 0, "Uniform")):
        Boosted().fit(Feedback.from_arrays(user, item, np.ones(20)))
