"""Chains: R̂ and effective draws by hand and of known processes, and going on after an interruption."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from openloop.core.feedback import Feedback
from openloop.errors import InputError
from openloop.kernels.streams import normals, row_words
from openloop.learners.chains import ChainPlan, effective_sample_size, run_chains, split_rhat
from tests.facts import facts

PLAN = {
    "who": "Walk",
    "sweeps": 12,
    "burn": 4,
    "thin": 3,
    "chains": 2,
    "threads": 2,
    "seed": 5,
    "show": False,
    "mark": "m",
}


@dataclass(frozen=True)
class Place:
    x: np.ndarray


class Walk:
    """An autoregression, whose steps are a function of the key; it may stop before a sweep, or as it begins."""

    def __init__(self, rho=0.5, stop=None):
        self.rho, self.stop = rho, stop

    def begin(self, seed, chain):
        if self.stop == 0 and chain == 1:
            raise KeyboardInterrupt
        return Place(np.zeros(1))

    def sweep(self, state, key):
        if key.sweep == self.stop and key.chain == 1:
            raise KeyboardInterrupt
        return Place(self.rho * state.x + normals(row_words(key.word(0), np.arange(1))))

    def watched(self, state):
        return {"x": float(state.x[0])}

    def kept(self, state):
        return {"x": state.x}


def plan(**changes):
    return ChainPlan(**{"checkpoint": None, **PLAN, **changes})


def test_rhat_by_hand():
    # Halves (1, 3), (5, 7): W = 2, var of means = 8, var+ = 2/2 + 8 = 9.
    assert split_rhat(np.array([[1.0, 3.0, 5.0, 7.0]])) == pytest.approx(np.sqrt(9 / 2))
    # An odd draw in the middle belongs to neither half.
    assert split_rhat(np.array([[1.0, 3.0, 99.0, 5.0, 7.0]])) == pytest.approx(np.sqrt(9 / 2))
    assert np.isnan(split_rhat(np.ones((2, 10))))
    assert split_rhat(np.array([[1.0] * 10, [2.0] * 10])) == np.inf
    assert np.isnan(split_rhat(np.array([[1.0, 2.0]])))


def test_chains_apart_have_a_large_rhat_and_few_effective_draws():
    x = np.random.default_rng(0).standard_normal((4, 500))
    assert abs(split_rhat(x) - 1) < 0.01
    apart = x + 3 * np.arange(4)[:, None]
    assert split_rhat(apart) > 2
    assert effective_sample_size(apart) < 10


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_effective_draws_of_an_autoregression(rho):
    noise, x = np.random.default_rng(2).standard_normal((4, 20_000)), np.zeros((4, 20_000))
    for t in range(1, x.shape[1]):
        x[:, t] = rho * x[:, t - 1] + noise[:, t]
    assert effective_sample_size(x) == pytest.approx(x.size * (1 - rho) / (1 + rho), rel=0.1)


@pytest.mark.parametrize("stop", [1, 3, 5, 8, 12])
def test_a_chain_that_was_interrupted_goes_on_with_the_same_bits(tmp_path, stop):
    path = tmp_path / "walk.npz"
    with pytest.raises(KeyboardInterrupt):
        run_chains(Walk(stop=stop), plan(checkpoint=path))
    found, whole = run_chains(Walk(), plan(checkpoint=path)), run_chains(Walk(), plan())
    np.testing.assert_array_equal(found.traces["x"], whole.traces["x"])
    np.testing.assert_array_equal(found.draws["x"], whole.draws["x"])


def test_plans_that_keep_nothing_are_refused():
    from openloop.learners import OrdinalMF

    log = Feedback.from_arrays([0, 1], [0, 1], [1, 2])
    with pytest.raises(InputError, match=facts("OrdinalMF", "sweeps", 30, 20)):
        ChainPlan.of(OrdinalMF(sweeps=20, burn=10, thin=20), log)
    with pytest.raises(InputError, match=facts("chains", 0)):
        ChainPlan.of(OrdinalMF(chains=0), log)
