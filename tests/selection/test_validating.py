"""One fold of one candidate: fitted with its λ scaled, scored on the held-out part, or read from where it was kept."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.data.simulate import movie_lovers
from openloop.errors import DivergenceError, MissingPackageError
from openloop.learners import Bias
from openloop.metrics.naming import metric
from openloop.selection.candidates import Candidate
from openloop.selection.fitting import Fitting
from openloop.selection.keeping import Checkpoint
from openloop.selection.validating import Validation

LOG = movie_lovers(users=12, items=9).observe(1)
TRAIN, HELD_OUT = next(ol.folds(LOG, 3, rng=0))
BIAS = Candidate(learner=Bias(6.0), names=())


def validation(checkpoint=None, name="mse"):
    return Validation(
        rows=len(LOG), fitting=Fitting(weighted=True), metric=metric(name), estimator="snips", threshold=3.0,
        checkpoint=checkpoint,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["mse", "adg"])
def test_the_outcome_is_the_estimate_by_hand(name):
    model = Bias(6.0 * len(TRAIN) / len(LOG)).fit(TRAIN, 1 / (TRAIN.propensity * TRAIN.share))
    exclude = TRAIN if name == "adg" else None
    by_hand = ol.evaluate({"m": model}, HELD_OUT, metrics=[name], estimators=["snips"], exclude=exclude, threshold=3.0)[
        "m", name, "snips"
    ]
    found = validation(name=name).outcome(1, TRAIN, HELD_OUT, BIAS)
    assert (found.value, found.stderr) == (by_hand.value, by_hand.stderr)


def test_a_fold_is_fitted_once_and_then_read(tmp_path, monkeypatch):
    kept = Checkpoint.of(tmp_path)
    first = validation(kept).outcome(1, TRAIN, HELD_OUT, BIAS)
    monkeypatch.setattr(Bias, "fit", lambda *_, **__: pytest.fail("fitted again"))
    again = validation(kept).outcome(1, TRAIN, HELD_OUT, BIAS)
    assert (first.value, first.stderr) == (again.value, again.stderr)
    np.testing.assert_array_equal(first.influence, again.influence)
    with pytest.raises(pytest.fail.Exception):
        validation(kept).outcome(2, TRAIN, HELD_OUT, BIAS)


@pytest.mark.parametrize(("error", "files"), [(DivergenceError, 1), (MissingPackageError, 0)])
def test_reasons_are_kept_but_for_packages_that_may_be_installed_later(tmp_path, monkeypatch, error, files):
    def fit(*_args, **_given):
        raise error("Bias: no")

    monkeypatch.setattr(Bias, "fit", fit)
    assert validation(Checkpoint.of(tmp_path)).outcome(1, TRAIN, HELD_OUT, BIAS) == "Bias: no"
    assert len(list(tmp_path.iterdir())) == files
