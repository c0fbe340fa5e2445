"""The table of a selection: a line for each candidate, null where a learner lacks a parameter, one best."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from openloop.core.estimate import Estimate
from openloop.core.totals import Shifted
from openloop.errors import UndefinedError
from openloop.learners import ADG, MF, Bias
from openloop.metrics.naming import metric
from openloop.selection.candidates import Candidate, candidates_of
from openloop.selection.tables import WIDE, best_of, marked, table_of
from tests.facts import facts


def estimate(value, parts=(0.1, -0.1)):
    J = np.array(parts)
    return Estimate(
        value=value, influence=-2 * J, deviations=J, columns=J[:, None], function=Shifted(value), method="ips",
        metric="mse",
    )  # fmt: skip


def test_value_and_error_are_those_of_the_mean_over_folds():
    found = table_of(candidates_of(MF(), None), [[estimate(1.0, (0.3, -0.1)), estimate(2.0, (0.1, 0.3))]])
    J = np.array([0.2, 0.1])
    assert found.row(0, named=True) == {
        "value": 1.5, "stderr": pytest.approx(np.sqrt(0.5 * np.sum(J**2))), "fold_1": 1.0, "fold_2": 2.0,
        "problem": None,
    }  # fmt: skip


def test_a_candidate_with_a_problem_has_no_value_and_the_folds_that_worked():
    found = table_of(candidates_of(MF(), None), [[estimate(1.0), "it diverged"]])
    assert found.row(0) == (None, None, 1.0, None, "it diverged")


def test_kinds_have_their_name_and_null_where_they_lack_a_parameter():
    grid = {"mf": {"factors": [2, 3], "solver": ["cg"]}, "adg": {"gamma": [9.0]}}
    found = table_of(
        candidates_of({"mf": MF(), "adg": ADG(), "bias": Bias()}, grid), [[estimate(float(v))] for v in range(4)]
    )
    assert found.columns == ["learner", "factors", "solver", "gamma", "value", "stderr", "fold_1", "problem"]
    assert found.select("learner", "factors", "solver", "gamma").rows() == [
        ("mf", 2, "cg", None), ("mf", 3, "cg", None), ("adg", ADG().factors, None, 9.0), ("bias", None, None, None),
    ]  # fmt: skip


def test_learners_in_a_parameter_are_one_short_line():
    class Stacked(Bias):
        def __init__(self, bases=()):
            self.bases = bases

    many = [MF(reg=float(reg), bias_reg=1.0, loss="absolute", solver="lbfgs", iterations=3) for reg in range(9)]
    given = candidates_of(Stacked(), {"bases": [[MF(3), (Bias(), 0.5)], many]})
    short, long = table_of(given, [[estimate(1.0)], [estimate(2.0)]])["bases"]
    assert short == "[MF(factors=3), (Bias(), 0.5)]"
    assert len(long) == WIDE
    assert long.startswith("[MF(bias_reg=1.0, ")
    assert long.endswith("…")
    assert "\n" not in long


def test_a_parameter_of_numbers_and_words_is_written_as_words():
    values = [1, 2.5, "auto", None, True]
    given = [Candidate(learner=type("L", (), {"get_params": lambda _, v=v: {"x": v}})(), names=("x",)) for v in values]
    found = table_of(given, [[estimate(1.0)]] * 5)
    assert found["x"].to_list() == ["1", "2.5", "auto", None, "True"]
    assert table_of(given[:2], [[estimate(1.0)]] * 2)["x"].to_list() == [1.0, 2.5]


@pytest.mark.parametrize(("name", "place"), [("mse", 1), ("adg", 0)])
def test_the_first_of_the_best_wins(name, place):
    table = pl.DataFrame({"value": [2.0, 1.0, None, 1.0, 2.0], "problem": [None, None, "no", None, None]})
    assert best_of(table, metric(name)) == place
    found = marked(table, place)
    assert found.columns == ["value", "best", "problem"]
    assert found["best"].arg_true().to_list() == [place]


def test_where_nothing_could_be_fitted_there_is_no_best():
    table = pl.DataFrame(
        {"value": [None, None], "problem": ["reg is odd", "no"]}, schema_overrides={"value": pl.Float64}
    )
    with pytest.raises(UndefinedError, match=facts("select", "reg is odd")):
        best_of(table, metric("mse"))
