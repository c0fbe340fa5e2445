"""The words that a tired engineer reads once."""

from __future__ import annotations

import math
from dataclasses import replace

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


def test_the_last_bits_of_a_sum_change_no_digit():
    """A difference of rounded scores may lie halfway, and rows on disk are summed in another order."""
    found = evidence(comparison({"a": USERS + 0.2375, "b": USERS}))
    (known,) = found.own
    texts = {size(found, replace(known, value=x)) for x in (0.2375, 0.2375 - 1e-16, 0.2375 + 1e-16)}
    assert len({f"{x:.3g}" for x in (0.2375 - 1e-16, 0.2375 + 1e-16)}) == 2
    assert len(texts) == 1
