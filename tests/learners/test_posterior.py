"""Predictions from kept draws, and the quantities by which chains are judged."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from openloop.core.feedback import Feedback, Vocabulary
from openloop.kernels.ordinal_prediction import level_chances
from openloop.learners.chains import ChainRun
from openloop.learners.posterior import OrdinalPosterior, Watch, kept_parts, state_draws
from openloop.learners.solvers.ordinal_gibbs import OrdinalRows, begin, stretched

LOG = Feedback.from_arrays([0, 0, 1, 2], [0, 1, 1, 0], [1, 2, 3, 2], users=3, items=2)
LEVELS = np.array([1, 2, 3], np.float32)
ROWS = OrdinalRows.of(LOG, np.array([0, 1, 2, 1]), 3)


class Fitted(OrdinalPosterior):
    def __init__(self, states=()):
        self.threads, self.levels_, self.users_, self.items_ = 1, LEVELS, Vocabulary.range(3), Vocabulary.range(2)
        draws = [kept_parts(state) for state in states]
        kept = {name: np.stack([draw[name] for draw in draws]).astype(np.float32) for name in draws[0]}
        self.said = self._keep_draws(ChainRun(draws=kept, traces={"x": np.arange(8.0).reshape(2, 4)}))


def states(n=3):
    return [begin(ROWS, 2, seed=4, chain=chain) for chain in range(n)]


def chances(state, user, item):
    m, s = state.u[user] @ state.v[item], np.sqrt(state.user_scale[user] * state.item_scale[item])
    return np.diff(norm.cdf((state.b - m) / s), prepend=0, append=1)


def test_chances_are_means_over_draws():
    given = [replace(state, user_scale=np.array([0.5, 1.0, 2.0])) for state in states()]
    model = Fitted(given)
    expected = np.mean([chances(state, 2, 1) for state in given], axis=0)
    np.testing.assert_allclose(model.predict_proba([2], [1])[0], expected, rtol=1e-5)
    assert model.predict([2], [1])[0] == pytest.approx(expected @ LEVELS, rel=1e-5)
    assert model.scores([2])[0, 1] == pytest.approx(expected @ LEVELS, rel=1e-5)
    assert model.predict_proba([], []).shape == (0, 3)


def test_arrays_of_users_and_items_come_first():
    model = Fitted(states(4))
    assert model.user_draws_.shape == (3, 4, 2)
    assert model.item_draws_.shape == (2, 4, 2)
    assert (model.user_scale_draws_.shape, model.item_scale_draws_.shape) == ((3, 4), (2, 4))
    assert model.threshold_draws_.shape == (4, 2)
    assert set(model.diagnostics_) == {"x"}
    assert len(model.said) == 1  # the trace rises, so chains have not mixed


def test_watched_quantities_by_hand():
    (state,), watch = states(1), Watch.of(ROWS, LEVELS, LOG)
    each = np.array([chances(state, u, i) for u, i in zip(watch.user, watch.item, strict=True)])
    with ThreadPoolExecutor(1) as pool:
        found = watch(state, level_chances(state_draws(state), watch.user, watch.item, pool), pool)
    m = np.sum(state.u[LOG.user] * state.v[LOG.item], axis=1)
    assert found["threshold 1 - mean score"] == pytest.approx(state.b[0] - m.mean())
    assert found["threshold 2 - mean score"] == pytest.approx(state.b[1] - m.mean())
    rows = [chances(state, u, i)[code] for u, i, code in zip(LOG.user, LOG.item, ROWS.code, strict=True)]
    assert found["log-likelihood"] == pytest.approx(np.log(rows).sum())
    assert found["mean prediction"] == pytest.approx((each @ LEVELS).mean(), rel=1e-6)


def test_what_is_watched_does_not_depend_on_signs_or_turns_of_factors():
    (state,), watch = states(1), Watch.of(ROWS, LEVELS, LOG)
    turned = replace(state, u=-state.u[:, ::-1], v=-state.v[:, ::-1])
    with ThreadPoolExecutor(1) as pool:
        one, two, longer = (
            watch(each, level_chances(state_draws(each), watch.user, watch.item, pool), pool)
            for each in (state, turned, stretched(state, 2.0))
        )
    assert two == pytest.approx(one)
    assert longer["log-likelihood"] != pytest.approx(one["log-likelihood"])
