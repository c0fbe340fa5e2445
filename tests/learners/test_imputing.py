"""Imputed ratings: every cell by the model that was fitted without its fold."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from openloop.core.feedback import Feedback
from openloop.errors import InputError
from openloop.learners import MF, Bias, Popularity
from openloop.learners.crossing import for_rows, latin_folds
from openloop.learners.imputing import cross_imputed
from tests.facts import facts

U, I = 20, 15


@pytest.fixture(scope="module")
def log() -> Feedback:
    rng = np.random.default_rng(0)
    user, item = np.nonzero(rng.random((U, I)) < 0.5)
    return Feedback.from_arrays(user, item, rng.integers(1, 6, len(user)), users=U, items=I)


@pytest.fixture(scope="module")
def w(log) -> np.ndarray:
    return np.random.default_rng(1).gamma(2.0, size=len(log))


def impute(log, w, learner, folds=3, seed=4):
    return cross_imputed(SimpleNamespace(folds=folds), learner, log, w, np.random.default_rng(seed))


@pytest.mark.parametrize("learner", [Bias(3.0), MF(2, 1.0, dtype="float64")], ids=["Bias", "MF"])
def test_a_cell_is_predicted_by_the_fit_without_its_fold(log, w, learner):
    grid = impute(log, w, learner)[0].dense()
    folds = latin_folds("test", log, 3, np.random.default_rng(4))
    u, i = np.indices((U, I))
    for k in range(3):
        keep = folds.of(log.user, log.item) != k
        fitted = for_rows(learner, keep.mean()).fit(log.take(keep), sample_weight=w[keep])
        mine = folds.of(u, i) == k
        np.testing.assert_allclose(grid[mine], fitted.scores(np.arange(U))[mine], rtol=1e-10)


@pytest.mark.parametrize("learner", [Popularity(), MF, None], ids=["no factors", "a class", "nothing"])
def test_what_is_no_learner_of_factors_is_refused(log, w, learner):
    kind = "MF" if learner is MF else type(learner).__name__
    with pytest.raises(InputError, match=facts("SimpleNamespace", "imputation", "MF()", kind)):
        impute(log, w, learner)
