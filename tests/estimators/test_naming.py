"""Names of estimators carry their parameters and parse back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openloop.errors import NameFormatError
from openloop.estimators.estimands import estimand
from openloop.estimators.naming import PLAIN, method
from openloop.metrics.naming import metric
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


def test_stratified_is_stratified_10_mass():
    for name in ("stratified", "stratified@10", "stratified@10:mass"):
        found = method(name)
        assert (found.name, found.strata, found.bins, found.share) == (name, 10, "mass", None)
    assert method("stratified@10:mass:catalogue").share == "catalogue"  # by name, not by default


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


@pytest.mark.parametrize(
    ("name", "estimator", "share", "words"),
    [
        ("mae", "snips", "catalogue", "per cell"),
        ("dcg@10", "clipped@20", "catalogue", "per cell"),
        ("precision@5", "ips", "catalogue", "per cell"),
        ("recall@10", "snips", "catalogue", "per relevant item"),
        ("adg", "stratified@10", "catalogue", "per relevant item"),
        ("atop", "snips_user", "catalogue", "per user"),
        ("mae", "naive", "catalogue", "on what was seen"),
        ("recall@10", "stratified@2:width:observed", "observed", "on what was seen"),
        ("ndcg@10", "snips", "catalogue", "on what was seen"),
        ("auc", "stratified", "catalogue", "on what was seen"),
        ("adg", "ips_eq3", "catalogue", "on what was seen"),
    ],
)
def test_what_each_estimate_is_of(name, estimator, share, words):
    assert estimand(metric(name), estimator, share) == words
