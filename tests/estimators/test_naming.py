"""Names of estimators carry their parameters and parse back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openloop.errors import NameFormatError
from openloop.estimators.naming import PLAIN, method
from tests.facts import facts


@pytest.mark.parametrize(
    "name",
    [*PLAIN, "clipped@20", "clipped@1.5", "stratified@3", "stratified@10:mass", "stratified@3:width",
     "stratified@3:count:catalogue", "stratified@4:observed", "stratified@2:width:observed"],
)  # fmt: skip
def test_a_canonical_name_parses_back(name):
    assert method(name).name == name


@given(st.floats(1, 1e300))
def test_every_cap_parses_back_exactly(cap):
    found = method(f"clipped@{cap!r}")
    assert found.cap == cap
    assert method(found.name).cap == cap


@given(st.integers(1, 10**6), st.sampled_from(["mass", "count", "width"]), st.sampled_from(["catalogue", "observed"]))
def test_every_stratification_parses_back(n, bins, share):
    found = method(f"stratified@{n}:{share}:{bins}")  # in any order
    again = method(found.name)
    assert (again.strata, again.bins, again.share) == (n, bins, share) == (found.strata, found.bins, found.share)
    assert found.stratification == (n, bins)


def test_a_name_has_what_was_named_in_one_order():
    assert method("stratified@3:observed:width").name == "stratified@3:width:observed"
    assert method("CLIPPED@20.0").name == "clipped@20"


def test_stratified_is_stratified_10_mass():
    for name in ("stratified", "stratified@10", "stratified@10:mass"):
        found = method(name)
        assert (found.name, found.strata, found.bins, found.share) == (name, 10, "mass", None)
    assert method("stratified@10:mass:catalogue").share == "catalogue"  # by name, not by default


def test_a_method_is_returned_as_it_is():
    snips = method("snips")
    assert method(snips) is snips


@pytest.mark.parametrize("name", ["clipped@0.5", "clipped@-3", "clipped@", "clipped@x", "clipped@nan", "clipped@inf"])
def test_a_cap_is_at_least_the_smallest_weight(name):
    with pytest.raises(NameFormatError, match=facts(f"'{name}'", "cap")):
        method(name)


@pytest.mark.parametrize(
    "name",
    ["stratified@0", "stratified@", "stratified@2.5", "stratified@3:deep", "stratified@²", "stratified@3:",
     "stratified@3:mass:width", "stratified@3:observed:observed"],
)  # fmt: skip
def test_a_stratification_is_a_whole_number_and_known_words(name):
    with pytest.raises(NameFormatError, match=facts(f"'{name}'", "stratified@n")):
        method(name)


@pytest.mark.parametrize(("name", "neighbour"), [("snip", "snips"), ("isp", "ips"), ("stratifed", "stratified")])
def test_an_unknown_name_gets_its_neighbour(name, neighbour):
    with pytest.raises(NameFormatError, match=facts(f"'{name}'", f"'{neighbour}'")):
        method(name)


def test_only_naive_needs_no_weights_and_scale_is_asked_for_where_it_matters():
    assert [name for name, m in PLAIN.items() if not m.weighted] == ["naive"]
    assert {name: m.scale for name, m in PLAIN.items() if m.scale != "never"} == {
        "ips": "always", "ips_eq3": "always", "clipped": "cell", "dr": "always",
    }  # fmt: skip


def test_what_pools_relevant_cells_says_so():
    assert [name for name, m in PLAIN.items() if m.pools] == ["snips", "clipped", "stratified"]
    assert method("clipped@20").pools
    assert not method("stratified@2:width:observed").pools
