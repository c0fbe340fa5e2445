"""Matrix factorisation on the semi-synthetic world: trials are pure and weigh as told."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.data.simulate import low_rank
from openloop.studies.schnabel2016.factorisation import Errors, at_ends, errors_of_fit

GIVEN = {"Y": low_rank(120, 150, 3, rng=0).astype(np.int8)}
SETTING = {"alpha": 0.25, "size": 0, "loss": "squared", "draw": 0, "seed": 0, "regs": (5e-4, 1e-3)}


def errors(regs):
    return Errors(method="MF-IPS", at=0.25, metric="mse", values=np.ones(1), regs=np.array(regs))


def test_a_trial_is_a_pure_function_of_its_arrays_and_settings():
    one, other = (errors_of_fit(GIVEN, by="known", **SETTING) for _ in range(2))
    assert one == other
    assert one["reg"] in SETTING["regs"]
    assert one["mse"] >= one["mae"] ** 2
    assert errors_of_fit(GIVEN, by="known", **SETTING | {"draw": 1}) != one


def test_where_nobody_chooses_weights_change_nothing():
    naive, known = (errors_of_fit(GIVEN, by=by, **SETTING | {"alpha": 1.0}) for by in ("naive", "known"))
    assert known == naive


def test_weights_pay_where_people_choose():
    naive, known = (errors_of_fit(GIVEN, by=by, **SETTING) for by in ("naive", "known"))
    assert known["mse"] < naive["mse"]


def test_naive_bayes_that_has_seen_every_cell_is_nearly_as_good_as_known_propensities():
    known = errors_of_fit(GIVEN, by="known", **SETTING)
    bayes = errors_of_fit(GIVEN, by="bayes", **SETTING | {"size": GIVEN["Y"].size})
    assert bayes["mse"] == pytest.approx(known["mse"], rel=0.05)
    assert bayes["mse"] != known["mse"]


def test_the_absolute_loss_is_for_the_mean_absolute_error():
    squared, absolute = (
        np.mean(
            [errors_of_fit(GIVEN, by="known", **SETTING | {"loss": loss, "draw": draw})["mae"] for draw in range(4)]
        )
        for loss in ("squared", "absolute")
    )
    assert absolute < squared


def test_lambdas_at_the_ends_of_the_grid_are_counted():
    assert at_ends([errors((1.0, 2.0)), errors((4.0,))], (1.0, 2.0, 4.0)).startswith("2 of 3")
    assert errors((2.0, 1.0, 2.0)).chosen == "1 (1×), 2 (2×)"
