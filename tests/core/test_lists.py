"""Metrics of lists: what they may be."""

from __future__ import annotations

import pytest

from openloop.core.lists import ListMetric
from openloop.errors import InputError
from tests.facts import facts


def test_a_list_has_at_least_one_item():
    with pytest.raises(InputError, match=facts("'none@0'", "k", 1, 0)):
        ListMetric(name="none@0", k=0)


def test_it_is_shown_by_its_name():
    assert repr(ListMetric(name="mine@3", k=3)) == "ListMetric('mine@3')"
