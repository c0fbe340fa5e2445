"""Chains: R̂ and effective draws by hand and of known processes, what is kept, and going on after an interruption."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pytest

from openloop import learners
from openloop.core.feedback import Feedback
from openloop.errors import FormatError, InputError
from openloop.kernels.streams import normals, row_words
from openloop.learners.chains import ChainPlan, effective_sample_size, mixing_notes, run_chains, split_rhat
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


def test_draws_that_alternate_are_worth_more_than_their_number():
    x = np.random.default_rng(0).standard_normal((1, 2000)) * 0.1 + np.tile([1.0, -1.0], 1000)
    assert effective_sample_size(x) == pytest.approx(2000 * np.log10(2000))


def test_what_is_kept_and_watched():
    run = run_chains(Walk(), plan())
    assert run.traces["x"].shape == (2, 8)
    assert run.draws["x"].shape == (4, 1)  # after sweeps 7 and 10 of each chain
    assert run.draws["x"].dtype == np.float32
    np.testing.assert_allclose(run.draws["x"][:, 0], run.traces["x"][:, [2, 5]].ravel(), rtol=1e-6)
    found = run.diagnostics["x"]
    assert found["mean"] == pytest.approx(run.traces["x"].mean())
    assert found["sd"] == pytest.approx(run.traces["x"].std())


def test_threads_do_not_matter():
    one, two = (run_chains(Walk(), plan(threads=threads)) for threads in (1, 2))
    np.testing.assert_array_equal(one.traces["x"], two.traces["x"])


@pytest.mark.parametrize("stop", [1, 3, 5, 8, 12])
def test_a_chain_that_was_interrupted_goes_on_with_the_same_bits(tmp_path, stop):
    path = tmp_path / "walk.npz"
    with pytest.raises(KeyboardInterrupt):
        run_chains(Walk(stop=stop), plan(checkpoint=path))
    found, whole = run_chains(Walk(), plan(checkpoint=path)), run_chains(Walk(), plan())
    np.testing.assert_array_equal(found.traces["x"], whole.traces["x"])
    np.testing.assert_array_equal(found.draws["x"], whole.draws["x"])


def test_an_interruption_before_the_first_sweep_leaves_the_checkpoint_as_it_was(tmp_path):
    path = tmp_path / "walk.npz"
    with pytest.raises(KeyboardInterrupt):
        run_chains(Walk(stop=0), plan(checkpoint=path))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(KeyboardInterrupt):
        run_chains(Walk(stop=5), plan(checkpoint=path))
    before = path.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        run_chains(Walk(stop=0), plan(checkpoint=path))
    assert path.read_bytes() == before
    np.testing.assert_array_equal(
        run_chains(Walk(), plan(checkpoint=path)).traces["x"], run_chains(Walk(), plan()).traces["x"]
    )


def test_the_bar_says_that_the_first_fit_compiles_before_the_first_sweep(monkeypatch):
    told = []

    @contextmanager
    def bar(what, total, *, show):
        yield lambda done, text: told.append((done, text))

    monkeypatch.setattr("openloop.learners.chains.progress", bar)
    with pytest.raises(KeyboardInterrupt):
        run_chains(Walk(stop=2), plan())
    assert [done for done, _ in told] == [0, 1]
    assert "compiles" in told[0][1]


def test_a_longer_chain_begins_with_the_shorter(tmp_path):
    path = tmp_path / "walk.npz"
    run_chains(Walk(), plan(checkpoint=path))
    longer = run_chains(Walk(stop=5), plan(checkpoint=path, sweeps=20))  # sweep 5 is not made again
    np.testing.assert_array_equal(longer.traces["x"], run_chains(Walk(), plan(sweeps=20)).traces["x"])


def test_checkpoints_that_do_not_fit_are_refused(tmp_path):
    path = tmp_path / "walk.npz"
    run_chains(Walk(), plan(checkpoint=path))
    with pytest.raises(InputError, match=facts("Walk", "walk.npz", 12, "sweeps=11", "checkpoint=")):
        run_chains(Walk(), plan(checkpoint=path, sweeps=11))
    with pytest.raises(InputError, match=facts("Walk", "walk.npz", "rng", "checkpoint=")):
        run_chains(Walk(), plan(checkpoint=path, mark="other"))
    path.write_bytes(b"no archive")
    with pytest.raises(FormatError, match=facts("Walk", "walk.npz", "checkpoint=")):
        run_chains(Walk(), plan(checkpoint=path))


def test_notes_name_what_is_poor():
    good = {"rhat": 1.01, "ess": 200.0, "mean": 0.0, "sd": 1.0}
    assert mixing_notes({"x": good}) == []
    (note,) = mixing_notes({"x": good, "y": good | {"rhat": 1.2}, "z": good | {"ess": 20.0}})
    for fact in ("2 of 3", "'y'", "1.20", "20 effective", "sweeps="):
        assert fact in note
    assert mixing_notes({"x": good | {"rhat": float("nan")}})


def test_plans_that_keep_nothing_are_refused():
    from openloop.learners import OrdinalMF

    log = Feedback.from_arrays([0, 1], [0, 1], [1, 2])
    with pytest.raises(InputError, match=facts("OrdinalMF", "sweeps", 30, 20)):
        ChainPlan.of(OrdinalMF(sweeps=20, burn=10, thin=20), log)
    with pytest.raises(InputError, match=facts("chains", 0)):
        ChainPlan.of(OrdinalMF(chains=0), log)


@pytest.mark.parametrize("name", ["OrdinalMF", "JointMNAR"])
def test_what_is_no_checkpoint_and_no_flag_is_refused_at_the_door(name):
    log = Feedback.from_arrays([0, 1], [0, 1], [1, 2])
    with pytest.raises(InputError, match=facts(name, "checkpoint", "file", 3)):
        ChainPlan.of(getattr(learners, name)(checkpoint=3), log)
    with pytest.raises(InputError, match=facts(name, "progress", "'yes'", "True", "False")):
        ChainPlan.of(getattr(learners, name)(progress="yes"), log)


def test_the_mark_is_of_what_decides_the_draws():
    from openloop.learners import OrdinalMF

    log = Feedback.from_arrays([0, 1], [0, 1], [1, 2])
    mark = ChainPlan.of(OrdinalMF(), log).mark
    same = (OrdinalMF(sweeps=9000), OrdinalMF(threads=1), OrdinalMF(progress=True), OrdinalMF(checkpoint="x"))
    assert {ChainPlan.of(model, log).mark for model in same} == {mark}
    others = [ChainPlan.of(model, log).mark for model in (OrdinalMF(rng=1), OrdinalMF(burn=3), OrdinalMF(factors=2))]
    others.append(ChainPlan.of(OrdinalMF(), Feedback.from_arrays([0, 1], [0, 1], [1, 3])).mark)
    assert mark not in others
    assert len(set(others)) == 4
