"""Factorisation on a GPU, by Triton's interpreter: the CPU's sweeps, the same bits twice, and what it does not take."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from openloop.core.feedback import Feedback
from openloop.errors import DeviceError, DivergenceError, InputError
from openloop.learners import MF, WMF
from tests.facts import facts

U, I = 8, 6


def log(kind="rating") -> Feedback:
    rng = np.random.default_rng(0)
    user, item = np.nonzero(rng.random((U, I)) < 0.6)
    rating = rng.normal(3, 1, len(user))
    return Feedback.from_arrays(user, item, rating > 3 if kind == "label" else rating, users=U, items=I)


LEARNERS = {
    "squared": (MF(factors=2, reg=0.5, bias_reg=0.1, iterations=2), "rating"),
    "absolute": (MF(factors=2, reg=0.2, loss="absolute", iterations=2), "rating"),
    "logistic": (MF(factors=2, reg=0.2, loss="logistic", iterations=2), "label"),
    "offsets": (MF(factors=0, reg=0.5, iterations=2), "rating"),
    "positives": (WMF(factors=2, reg=0.1, rest=0.2, threshold=3, iterations=2), "rating"),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_sweeps_are_the_cpus_but_for_rounding(triton, name):
    learner, kind = LEARNERS[name]
    w = np.random.default_rng(1).gamma(2.0, size=len(log(kind)))
    here = clone(learner).fit(log(kind), w)
    there = clone(learner).set_params(device="cuda").fit(log(kind), w)
    np.testing.assert_allclose(there.history_, here.history_, rtol=2e-5)
    np.testing.assert_allclose(there.scores(np.arange(U)), here.scores(np.arange(U)), atol=2e-3)
    assert (there.user_factors_.dtype, there.user_factors_.shape) == (np.float32, here.user_factors_.shape)
    assert there.notes_ == here.notes_


def test_bits_repeat_themselves(triton):
    first, second = (MF(factors=2, iterations=1, device="cuda", rng=3).fit(log()) for _ in range(2))
    np.testing.assert_array_equal(first.scores(np.arange(U)), second.scores(np.arange(U)))
    assert first.history_.tolist() == second.history_.tolist()


def test_what_no_number_holds_diverges_as_on_the_cpu(triton):
    large = Feedback.from_arrays(np.arange(4) % 2, np.arange(4) // 2, np.full(4, 1e30, np.float32) * [1, 2, 3, 4])
    for device in (None, "cuda"):
        with pytest.raises(DivergenceError, match=facts("MF", "reg")):
            MF(factors=1, device=device).fit(large)


@pytest.mark.parametrize(("name", "value"), [("solver", "cholesky"), ("solver", "lbfgs"), ("dtype", "float64")])
def test_other_solvers_and_precisions_are_refused(triton, name, value):
    with pytest.raises(InputError, match=facts("MF", "device", "'cuda'", name, repr(value))):
        MF(factors=2, device="cuda", **{name: value}).fit(log())


@pytest.mark.parametrize("learner", [MF, WMF])
def test_a_device_that_is_none_is_refused(triton, learner):
    with pytest.raises(InputError, match=facts(learner.__name__, "device", "'tpu?'")):
        learner(factors=2, device="tpu?").fit(log())


def test_too_little_memory_is_told_with_the_size_of_the_fit(triton, monkeypatch):
    monkeypatch.setattr("openloop.kernels.cuda.devices.free_bytes", lambda _: 2**20)
    with pytest.raises(DeviceError, match=facts("MF", f"{len(log())}", U, I, "GiB")):
        MF(factors=2, device="cuda").fit(log())
