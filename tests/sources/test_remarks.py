"""What is said of splits names the split, the number and the remedy."""

from __future__ import annotations

import re

import pytest

from openloop.estimators.naming import method
from openloop.metrics.naming import metric
from openloop.moments import remarks
from tests.facts import facts


@pytest.mark.parametrize(
    ("of", "by", "needed"),
    [("mae", "ips", True), ("mae", "snips", False), ("mae", "clipped", True), ("recall@5", "clipped", False)],
)
def test_some_estimates_need_the_scale_of_p(of, by, needed):
    assert remarks.needs_scale(metric(of), method(by)) is needed


def test_an_unknown_share_names_the_split_and_what_to_use():
    lost = remarks.unknown_share("ips of mae", remarks.BY_TIME)
    assert re.search(facts("ips of mae", "split by time", "factor", "snips", "stratified"), lost)
    counted = remarks.unknown_share("ips of mae", remarks.BY_COUNT, lost=False)
    assert "factor" not in counted
    assert "number of rows per user" in counted


@pytest.mark.parametrize("excluded", [True, False])
def test_weights_without_a_scale_depend_on_p_only_where_something_is_excluded(excluded):
    assert ("exclude=" in remarks.up_to_factor(remarks.BY_TIME, excluded=excluded)) is excluded


def test_numbers_are_told():
    assert "1,234 scored pairs" in remarks.still_candidates(1234)
    assert "1,234 scored rows" in remarks.undefined_candidates("snips of dcg", 1234)
    assert "threshold 4;" in remarks.not_reached("naive of adg", 4.0)
