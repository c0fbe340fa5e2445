"""θ from an examination or an array: its error from this log, from another, or none."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from openloop.errors import InputError
from openloop.impressions.examined import examined_by, theta_of
from tests.click_cases import log_of, randomised
from tests.examples import same
from tests.facts import facts


def examined(exam, log, depth=3):
    return examined_by(exam, theta_of(exam, depth), log.fingerprint, log.n_clusters)


def test_an_array_is_taken_as_known():
    found = examined([1.0, 0.5, 0.4, 0.2], log_of())
    assert found.theta.tolist() == [1, 0.5, 0.4]
    assert not found.fitted
    assert examined(None, log_of()) is None


def test_theta_of_this_log_keeps_its_parts_and_of_another_its_covariance():
    log = log_of()
    exam = randomised(log)
    assert examined(exam, log).influence is not None
    found, U = examined(exam, log_of(1)), log.n_clusters
    assert found.influence is None
    same(found.effects.T @ found.effects, exam.influence_.T @ exam.influence_ / U / (U - 1))
    assert found.size == U


def test_an_examination_without_error_is_known():
    exam = SimpleNamespace(theta_=np.ones(3), influence_=np.zeros((5, 3)))
    assert not examined(exam, log_of()).fitted
    assert not examined(SimpleNamespace(theta_=np.ones(3), influence_=None), log_of()).fitted


def test_the_affine_model_has_twice_as_many_parameters():
    psi = np.random.default_rng(0).normal(size=(5, 3))
    exam = SimpleNamespace(theta_=np.ones(3), influence_=psi, offset_=np.zeros(3), offset_influence_=2 * psi)
    found = examined(exam, log_of())
    same(found.effects.T @ found.effects, np.hstack([psi, 2 * psi]).T @ np.hstack([psi, 2 * psi]) / 20)
    assert found.offset.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("given", "told"),
    [(np.ones(2), (3, "(2,)")), ([1, 0, 1], ("position 2",)), ([1, np.nan, 1], ("position 2",)), ("theta", ("str",))],
    ids=["short", "zero", "missing", "text"],
)
def test_what_is_no_examination(given, told):
    with pytest.raises(InputError, match=facts(*told)):
        examined(given, log_of())
