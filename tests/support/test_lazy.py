"""Names that are imported by their first use."""

from __future__ import annotations

import pytest

from openloop import errors
from openloop.support.lazy import lazily
from tests.facts import facts


def test_a_name_is_loaded_once_and_kept():
    found = {}
    load, names = lazily("openloop", {"errors": "EmptyError errors", "core.feedback": "frozen"}, found)
    assert found == {}
    assert load("EmptyError") is errors.EmptyError
    assert load("errors") is errors
    assert found == {"EmptyError": errors.EmptyError, "errors": errors}
    assert names() == ["EmptyError", "errors", "frozen"]


def test_an_unknown_name_is_an_error_that_may_list_the_known():
    with pytest.raises(AttributeError, match=facts("'openloop'", "'MG'")) as refused:
        lazily("openloop", {"mf": "MF"}, {})[0]("MG")
    assert "MF" not in str(refused.value)
    with pytest.raises(AttributeError, match=facts("'openloop'", "'MG'", "learners", "MF", "WMF")):
        lazily("openloop", {"mf": "MF", "implicit": "WMF"}, {}, "learners")[0]("MG")
