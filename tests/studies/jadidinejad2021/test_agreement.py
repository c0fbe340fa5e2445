"""Agreement: Kendall's τ as others compute it, and paired differences."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.audits.rankings import kendall
from openloop.studies.jadidinejad2021 import agreement
from openloop.studies.jadidinejad2021.agreement import Agreement
from openloop.studies.jadidinejad2021.open_loop import TARGETS
from openloop.studies.jadidinejad2021.scores import RankedCells, holdout


def table(means, splits=2, draws=3, names=("a", "b")):
    """An Agreement with these mean τ (methods, targets), the same in every split and weighting."""
    values = np.broadcast_to(np.array(means)[:, :, None, None], (len(means), 4, splits, 1 + draws))
    return Agreement(methods=names, values=values.copy())


def test_differences_are_paired():
    found = table([[0.5] * 4, [0.3] * 4])
    noise = np.random.default_rng(0).normal(size=found.values.shape[1:])
    found.values[:] += noise  # the same for both
    ahead = found.ahead("a", "b", "published")
    assert (ahead.value, ahead.won, ahead.splits) == (pytest.approx(0.2), 2, 2)
    assert ahead.drawn == pytest.approx([0.2] * 3)
    assert found.error("a", "published") > 0.1
    assert str(ahead) == "+0.200 (+0.200 … +0.200), ahead in 2 of 2 splits"


def test_the_relative_gain_is_that_of_the_means_with_quantiles_of_the_draws():
    found = table([[0.3] * 4, [0.2] * 4], draws=3)
    found.values[0, :, :, 1:4] = np.array([0.2, 0.3, 0.4])
    gain = found.relative_gain("a", "b", "published")
    assert (gain.value, gain.undefined, gain.interval) == (pytest.approx(0.5), 0, pytest.approx((0.0, 1.0)))
    found.values[1] = -0.2
    assert np.isnan(found.relative_gain("a", "b", "published").value)


def some_scores(rng, models=6, users=9, each=3):
    """Scores of models that rank each user's cells at random among 50."""
    rank = rng.integers(1, 51, (models, users * each))
    places = np.stack([rank - 1, np.ones_like(rank), rank - 1, np.ones_like(rank), rank], axis=1)
    user = np.repeat(np.arange(users), each)
    return holdout(RankedCells(user=user, item=np.arange(len(user)), places=places, n_users=users), "all", None)


def test_a_method_that_is_the_target_agrees_wholly():
    rng = np.random.default_rng(0)
    goal, noise = some_scores(rng), some_scores(rng)
    weighted = agreement.weightings(9, rng, draws=4)
    assert weighted.sum(axis=1).tolist() == [9] * 5
    methods = {"same": lambda: goal, "noise": lambda: noise}
    found = agreement.agreement_of([(methods, dict.fromkeys(TARGETS, lambda: goal))] * 2, weighted)
    assert (found.values[0] == 1).all()
    assert found.mean("noise", "unseen")[0] == pytest.approx(kendall(noise.value, goal.value).value)


def test_marks_name_the_others_by_number():
    rng = np.random.default_rng(0)
    target = rng.normal(size=104)
    near = target + 0.1 * rng.normal(size=104)
    found = agreement.significance_marks(
        {"a": near, "b": near + 1e-3 * rng.normal(size=104), "c": -target + rng.normal(size=104)}, target
    )
    assert found == {"a": "3", "b": "3", "c": "1/2"}
