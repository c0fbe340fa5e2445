"""Names parse back; what does not parse is answered with what would."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openloop.errors import NameFormatError
from openloop.metrics.naming import AT_K, PLAIN, metric
from tests.facts import facts


@pytest.mark.parametrize("name", [*PLAIN, *(f"{stem}@7" for stem in AT_K)])
def test_a_canonical_name_parses_back(name):
    found = metric(name)
    assert found.name == name
    assert found.k == (7 if "@" in name else None)


@given(st.sampled_from(sorted(AT_K)), st.integers(1, 10**9))
def test_every_k_parses_back(stem, k):
    assert (metric(f"{stem}@{k}").name, metric(f"{stem}@{k}").k) == (f"{stem}@{k}", k)


@given(st.floats(0, 1, exclude_min=True, exclude_max=True))
def test_every_persistence_parses_back(p):
    found = metric(f"rbp:{p!r}")
    assert metric(found.name).name == found.name
    assert found.name == ("rbp" if p == 0.8 else f"rbp:{p!r}")


@pytest.mark.parametrize("given", ["0", "1", "1.5", "-0.2", "nan", "", "much", "0.9@10"])
def test_a_persistence_lies_between_0_and_1(given):
    with pytest.raises(NameFormatError, match=facts(f"'rbp:{given}'", "persistence")):
        metric(f"rbp:{given}")


def test_case_spaces_and_leading_zeros_do_not_matter():
    assert metric(" NDCG@010 ").name == "ndcg@10"


@pytest.mark.parametrize("name", ["ndcg@0", "ndcg@-1", "ndcg@2.5", "ndcg@", "ndcg@k", "ndcg@²", "ndcg@٣"])
def test_what_follows_at_is_a_whole_number(name):
    with pytest.raises(NameFormatError, match=facts(f"'{name}'", "whole number")):
        metric(name)


@pytest.mark.parametrize(
    ("name", "neighbour"), [("ndgc@10", "ndcg@k"), ("maee", "mae"), ("recall", "recall@k"), ("mae@5", "mae")]
)
def test_an_unknown_name_gets_its_neighbour(name, neighbour):
    with pytest.raises(NameFormatError, match=facts(f"'{name}'", f"'{neighbour}'")):
        metric(name)
