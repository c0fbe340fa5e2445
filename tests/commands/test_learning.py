"""Weights of a log for commands that learn: where they come from, and what they leave of the rows."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from openloop.commands.learning import LearnRequest, Weighing, read_log, weighing, weights_line
from openloop.errors import InputError
from tests.facts import facts


@pytest.fixture
def log(tmp_path):
    rows = {"user": [0, 0, 1, 1], "item": [0, 1, 0, 1], "rating": [1, 2, 3, 4], "p": [0.5, 0.25, 0.5, 1.0]}
    pl.DataFrame(rows | {"w": [1.0, 2.0, 3.0, 4.0]}).write_csv(tmp_path / "log.csv")
    return tmp_path / "log.csv"


def request(log, **options):
    return LearnRequest(log=log, out="m.safetensors", **options)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"propensity": "p"}, [2, 4, 2, 1]),
        ({"propensity": "p", "floor": 0.5}, [2, 2, 2, 1]),
        ({"weight": "w"}, [1, 2, 3, 4]),
    ],
    ids=["1/p", "floor", "weights"],
)
def test_weights_are_those_of_the_column(log, options, expected):
    wanted = request(log, **options)
    found, w = weighing(wanted, read_log(wanted)), np.array(expected)
    assert wanted.weighted
    assert found.effective_size == pytest.approx(w.sum() ** 2 / np.square(w).sum())
    assert found.largest_share == pytest.approx(w.max() / w.sum())
    assert found.raised == (0.25 if "floor" in options else 0.0)


def test_without_a_column_there_are_none(log):
    wanted = request(log)
    rows = read_log(wanted)
    assert not wanted.weighted
    assert wanted.propensities(rows) is None
    assert weighing(wanted, rows) is None
    assert weights_line(None, rows) == "weights: none"
    assert request(log, duplicates="count").weighted


def test_the_effective_size_is_the_squared_sum_over_the_sum_of_squares():
    w = np.array([1.0, 2.0, 5.0])
    found = Weighing.of(w, column="w", inverse=False)
    assert found.effective_size == pytest.approx(64 / 30)
    assert found.largest_share == pytest.approx(5 / 8)
    equal = Weighing.of(np.full(7, 1e200), column="p", inverse=True)
    assert equal.effective_size == pytest.approx(7)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"propensity": "p", "weight": "w"}, facts("--propensity", "--weight")),
        ({"floor": 0.1}, facts("--floor", "--propensity")),
        ({"floor": 1.5, "propensity": "p"}, facts("--floor", "[0, 1]", 1.5)),
    ],
    ids=["twice", "floor of nothing", "floor above 1"],
)
def test_weights_that_cannot_be_are_refused(options, told):
    with pytest.raises(InputError, match=told):
        request("no-such-log.csv", **options)
