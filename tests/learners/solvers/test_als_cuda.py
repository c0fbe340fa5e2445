"""Factorisation on a GPU, by Triton's interpreter: the sweeps of the CPU, and what it does not take."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from openloop.core.feedback import Feedback
from openloop.errors import InputError
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


@pytest.mark.parametrize(("name", "value"), [("solver", "cholesky"), ("solver", "lbfgs"), ("dtype", "float64")])
def test_other_solvers_and_precisions_are_refused(triton, name, value):
    with pytest.raises(InputError, match=facts("MF", "device", "'cuda'", name, repr(value))):
        MF(factors=2, device="cuda", **{name: value}).fit(log())
