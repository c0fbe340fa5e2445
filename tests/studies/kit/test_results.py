"""Values beside published ones, and what counts as come out."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.errors import InputError
from openloop.studies.kit.results import Claim, Result, Table, Value


@pytest.mark.parametrize(
    ("value", "published", "digits", "tolerance", "came_out"),
    [
        (0.1024, 0.102, 3, None, True),
        (0.1026, 0.102, 3, None, False),
        (0.1025, 0.102, 3, None, True),  # on the edge of rounding
        (30.8, 30.76, 2, None, False),
        (30.8, 30.76, 2, 0.05, True),
        (None, 1.0, 3, None, None),
        (1.0, None, 3, None, None),
    ],
)
def test_a_number_came_out_if_it_is_within_rounding_or_the_tolerance(value, published, digits, tolerance, came_out):
    found = Value(value=value, published=published, digits=digits, tolerance=tolerance)
    assert found.came_out is came_out


def test_a_number_prints_as_many_digits_as_the_paper_does():
    value = Value(value=0.10249, error=0.00712, published=0.102, published_error=0.007, mark="*")
    assert str(value) == "0.102 ± 0.007*"
    assert value.as_published() == "0.102 ± 0.007"
    assert str(Value(value=None, published=2)) == "–"
    assert Value(value=2, digits=1).as_published() == "–"


@pytest.mark.parametrize("bad", [{"value": None}, {"value": np.nan}, {"value": 1, "error": np.inf}])
def test_a_value_is_finite_and_there(bad):
    with pytest.raises(InputError, match="Value"):
        Value(**bad)


def test_what_did_not_come_out_is_found_with_its_place():
    good, bad, alone = Value(value=1, published=1), Value(value=1, published=2), Value(value=1)
    table = Table(name="t", caption="c", columns=("row", "x", "y"), rows=(("r", good, bad), ("s", alone, "text")))
    result = Result(item="i", title="t", tables=(table,))
    assert list(result.astray()) == [("t", "r, y", bad)]
    assert result.compared() == 2


def test_claims_that_do_not_count_are_in_no_tally():
    claims = [
        Claim(text="t", holds=holds, found="1", counted=c) for holds, c in ((True, True), (False, True), (True, False))
    ]
    assert Result(item="i", claims=tuple(claims)).held() == (1, 2)
    ours = [Claim(text="d", holds=True, found="", ours=True), Claim(text="e", holds=True, found="", ours=True)]
    both = Result(item="i", claims=(*claims, *ours))
    assert (both.held(), both.held(ours=True)) == ((1, 2), (2, 2))


def test_what_is_not_decided_neither_holds_nor_fails():
    claim = Claim(text="t", holds=True, found="1", undecided="too few fits")
    assert not claim.holds
    assert Result(item="i", claims=(claim,)).held() == (0, 0)
