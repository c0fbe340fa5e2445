"""The words that a tired engineer reads once."""

from __future__ import annotations

import math

import numpy as np
import pytest

from openloop.audits.answers import Assumption
from openloop.audits.sentences import condition, size
from tests.verdicts import comparison, evidence

STAR = "if each extra star makes being observed at most 1.30 times likelier than the propensities say"
USERS = np.random.default_rng(1).normal(size=50)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            Assumption(name="kappa", holds_to=0.5, flips_at=0.67, required=1.0),
            "if at most 50 % of popularity is exposure; the order reverses near 67 %",
        ),
        (
            Assumption(name="kappa", holds_to=0.5, flips_at=math.inf, required=1.0),
            "if at most 50 % of popularity is exposure; beyond that the order is uncertain, but never reverses",
        ),
        (
            Assumption(name="rho", holds_to=1.3, flips_at=1.74, required=1.5),
            f"{STAR}; the order reverses near 1.74 times",
        ),
        (
            Assumption(name="rho", holds_to=1.3, flips_at=math.inf, required=1.5),
            f"{STAR}; beyond that the order is uncertain, but did not reverse in the tested range",
        ),
    ],
    ids=["kappa", "kappa that never turns", "rho", "rho that does not turn"],
)
def test_a_condition_says_up_to_where_an_order_holds_and_where_it_turns(given, words):
    assert condition(given) == words


def test_a_difference_has_the_sign_of_the_words():
    found = evidence(comparison({"a": USERS + 2, "b": USERS}))
    one, two = (size(found, found.between(a, b)) for a, b in (("a", "b"), ("b", "a")))
    assert one == two
    assert one.startswith("2 (95 % 2 to 2, Holm p < 0.001)")
