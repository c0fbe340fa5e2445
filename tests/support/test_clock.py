"""The clock of results goes, or stands still at $SOURCE_DATE_EPOCH."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from openloop.errors import InputError
from openloop.support.clock import VARIABLE, fixed, seconds_since, start, today
from tests.facts import facts


def test_a_clock_that_goes(monkeypatch):
    monkeypatch.setenv(VARIABLE, "")
    assert fixed() is None
    assert abs((datetime.fromisoformat(today()) - datetime.now(UTC)).total_seconds()) < 3600
    assert seconds_since(start()) >= 0


def test_a_clock_that_stands_still(monkeypatch):
    monkeypatch.setenv(VARIABLE, "1700000000")
    assert fixed() == 1_700_000_000
    assert today() == "2023-11-14T22:13:20+00:00"
    assert seconds_since(start() - 5) == 0.0


@pytest.mark.parametrize("given", ["soon", "-1", "1.5", "１７", "9" * 20, "9" * 5000])
def test_what_is_no_time_is_refused(monkeypatch, given):
    monkeypatch.setenv(VARIABLE, given)
    with pytest.raises(InputError, match=facts("SOURCE_DATE_EPOCH", "seconds", "1970", "unset")) as caught:
        today()
    assert len(str(caught.value)) < 400
