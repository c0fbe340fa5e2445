"""Figure 3, right: its references are those of the left, and claims follow their numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openloop.studies.schnabel2016 import factorisation, figure3left, figure3right
from openloop.studies.schnabel2016.factorisation import Errors


@pytest.fixture
def run(small_run, monkeypatch):
    # The small world wants larger λ than ML100K; a quick run tries the fifth and sixth.
    for loss, search in factorisation.SEARCH.items():
        monkeypatch.setitem(factorisation.SEARCH, loss, replace(search, regs=(3e-5, 6e-5, 1e-4, 1.3e-4, 2.5e-4, 5e-4)))
    return small_run


def test_figure_3_right_takes_its_references_from_the_left(run):
    left, right = figure3left.figure3left(run), figure3right.figure3right(run)
    naive, ips = left.tables[0].rows[0][1:3]
    *bayes, known, unweighted = right.tables[0].rows
    assert (known[1].value, unweighted[1].value) == (ips.value, naive.value)
    assert [row[0] for row in bayes] == ["MF-IPS-NB, 1 rating", "MF-IPS-NB, 1,000 ratings"]
    assert all(row[2].value < 0 for row in bayes)


def errors(values, method, at=0.25):
    return Errors(method=method, at=at, metric="mse", values=np.array(values), regs=np.ones(1))


WORSE, BETTER = errors([2.0, 2.1, 2.2], "MF-IPS"), errors([1.0, 1.2, 1.1], "MF-Naive")


def test_claims_fail_when_their_numbers_do():
    assert not figure3right._claim([WORSE], BETTER).holds
    assert not figure3right._claim([BETTER, WORSE], WORSE).holds  # one size without a gain
    assert figure3right._claim([BETTER], WORSE).holds
