"""Matrix factorisation on the semi-synthetic world: trials are pure and weigh as told."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.data.simulate import low_rank
from openloop.studies.schnabel2016.factorisation import Errors, below, errors_of_fit

GIVEN = {"Y": low_rank(120, 150, 3, rng=0).astype(np.int8)}
SETTING = {"alpha": 0.25, "size": 0, "loss": "squared", "draw": 0, "seed": 0}
SEARCH = {"regs": (5e-4, 1e-3), "start": 0, "tol": 3e-4, "sweeps": 40}
SETTING["search"] = SEARCH


def errors(values, regs=(1.0,)):
    return Errors(method="MF-IPS", at=0.25, metric="mse", values=np.array(values), regs=np.array(regs))


def test_a_trial_is_a_pure_function_of_its_arrays_and_settings():
    one, other = (errors_of_fit(GIVEN, by="known", **SETTING) for _ in range(2))
    assert one == other
    assert one["reg"] in SEARCH["regs"]
    assert one["mse"] >= one["mae"] ** 2
    assert errors_of_fit(GIVEN, by="known", **SETTING | {"draw": 1}) != one


def test_where_nobody_chooses_weights_change_nothing():
    naive, known = (errors_of_fit(GIVEN, by=by, **SETTING | {"alpha": 1.0}) for by in ("naive", "known"))
    assert known == naive


def test_weights_pay_where_people_choose():
    naive, known = (errors_of_fit(GIVEN, by=by, **SETTING) for by in ("naive", "known"))
    assert known["mse"] < naive["mse"]


def test_a_difference_that_is_significant_alone_may_not_be_among_many():
    good = errors([1.0, 1.1, 0.9, 1.0, 1.05])
    bad = errors([1.1, 1.15, 1.05, 1.05, 1.06])
    holds, ((gap, p),) = below([(good, bad)])
    assert holds
    assert 0.01 < p == gap.pvalue < 0.05
    holds, found = below([(good, bad)] * 5)
    assert not holds
    assert found[0][1] == pytest.approx(5 * p)
    assert not below([(bad, good)])[0]
