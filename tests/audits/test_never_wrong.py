"""Audits are not sure and wrong: worlds with a known truth, in which they once were, by a fixed-seed extract.

`python -m bench.trust` measures the same worlds with many more logs, and writes docs/trust.md.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest
from scipy.stats import binom

from bench.trust.cases import CASES, FALSE_ALARM

pytestmark = pytest.mark.slow

LOGS = 20  # of each case
LOGS_OF_EQUALS = 50  # where 7 % may be wrong, fewer logs could not tell that from twice as many
CHANCE = 0.005  # with which a case at its limit fails here


@cache
def answer(case, seed):
    return case.run(seed)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_no_case_is_sure_and_wrong(case):
    n = LOGS_OF_EQUALS if case.limit == FALSE_ALARM else LOGS
    found = Counter(answer(case, seed) for seed in range(n))
    assert found["wrong"] <= binom.ppf(1 - CHANCE, n, case.limit), found
    assert found["right"] >= binom.ppf(CHANCE, n, case.least), found


@pytest.mark.parametrize("name", ["positives", "blind"])
def test_an_assumption_that_carries_the_order_is_named(name):
    case = next(case for case in CASES if case.name == name)
    assert Counter(answer(case, seed) for seed in range(5))["conditional"] >= 4
