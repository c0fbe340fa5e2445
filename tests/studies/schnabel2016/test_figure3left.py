"""Figure 3, left: weights are found better where people choose, and claims follow their numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openloop.studies.schnabel2016 import factorisation, figure3left
from openloop.studies.schnabel2016.factorisation import Errors


@pytest.fixture
def run(small_run, monkeypatch):
    # The small world wants larger λ than ML100K; a quick run tries the fifth and sixth.
    for loss, search in factorisation.SEARCH.items():
        monkeypatch.setitem(factorisation.SEARCH, loss, replace(search, regs=(3e-5, 6e-5, 1e-4, 1.3e-4, 2.5e-4, 5e-4)))
    return small_run


def test_figure_3_left_has_both_metrics_and_finds_weights_better(run):
    result = figure3left.figure3left(run)
    assert [table.name for table in result.tables] == ["figure3left-mse", "figure3left-mae"]
    assert [claim.text for claim in result.claims if not claim.holds] == []
    assert all("2 trials" in claim.text for claim in result.claims)  # as many as a quick run has
    (figure,) = result.figures
    assert {(row["metric"], row["at"], row["method"]) for row in figure.rows} == {
        (metric, at, method)
        for metric, at in (("MSE", 0.25), ("MSE", 1.0), ("MAE", 0.25))
        for method in ("MF-Naive", "MF-IPS")
    }
    uniform = {row["method"]: row["error"] for row in figure.rows if row["at"] == 1}
    assert uniform["MF-IPS"] == uniform["MF-Naive"]
    for row in figure.rows:
        assert row["low"] <= row["error"] <= row["high"]


def errors(values, method):
    return Errors(method=method, at=0.25, metric="mse", values=np.array(values), regs=np.ones(1))


WORSE, BETTER = errors([2.0, 2.1, 2.2], "MF-IPS"), errors([1.0, 1.2, 1.1], "MF-Naive")


def test_claims_fail_when_their_numbers_do():
    for pair, holds in (((BETTER, WORSE), False), ((WORSE, BETTER), True)):
        assert figure3left._claim({("mse", 0.25): pair}, "mse").holds is holds
