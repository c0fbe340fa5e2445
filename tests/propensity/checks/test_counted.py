"""A check from counts is the check of the same rows in memory."""

from __future__ import annotations

import math
from dataclasses import asdict

import numpy as np
import pytest

from openloop.core.feedback import Feedback
from openloop.propensity import Calibrated, Popularity, Uniform, check
from openloop.propensity.checks.by_item import CountModel
from openloop.propensity.checks.counted import CountedLog, check_counts

U, I = 30, 7
SEEN = np.random.default_rng(1).random((U, I)) < np.linspace(0.1, 0.9, I)
LOG = Feedback.from_arrays(*np.nonzero(SEEN), np.ones(SEEN.sum()), users=U, items=I)


def counted(log, p):
    order = np.lexsort((log.item, log.user, p[log.item]))[:5]
    return CountedLog(
        users=log.users, items=log.items, by_user=np.bincount(log.user, minlength=U),
        by_item=np.bincount(log.item, minlength=I), mass=np.bincount(log.user, 1 / p[log.item], minlength=U),
        heaviest=list(zip(log.user[order], log.item[order], strict=True)), positives=log.positives,
    )  # fmt: skip


def agree(a, b, where=""):
    if isinstance(a, dict):
        assert a.keys() == b.keys(), where
        for key in a:
            agree(a[key], b[key], f"{where}/{key}")
    elif isinstance(a, list | tuple):
        assert len(a) == len(b), where
        for at, (x, y) in enumerate(zip(a, b, strict=True)):
            agree(x, y, f"{where}/{at}")
    elif isinstance(a, float):
        assert math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-12), (where, a, b)
    else:
        assert a == b, where


@pytest.mark.parametrize(
    "model",
    [Uniform(), Popularity(), Popularity(gamma=1.0), Calibrated(Popularity(gamma=1.0), method=None, floor=0.3)],
    ids=["uniform", "popularity", "popularity-gamma", "floor"],
)
def test_it_is_that_of_the_rows(model):
    fitted = model.fit(LOG)
    counts = CountModel.of(fitted)
    found = check_counts(counts, counted(LOG, counts.fitted), folds=5, rng=0, notes=fitted.notes_)
    agree(asdict(found), asdict(check(fitted, LOG)))


def test_fewer_rows_than_folds_leave_the_calibration_out():
    few = LOG.take(np.arange(4))
    fitted = Uniform().fit(few)
    found = check_counts(CountModel.of(fitted), counted(few, fitted.item_propensities_), folds=5, rng=0)
    assert found.calibration is None
    assert "4 rows cannot be held out in 5 folds" in found.not_computed["calibration"]
