"""A thousand changed files and more with fixed seeds: read rightly or refused, never a traceback."""

from __future__ import annotations

import pytest

from tests.fuzz.cases import Counts, tried

TIMES = {
    "read": 690, "model": 105, "archive": 80, "cache": 50, "command": 30, "select": 8, "reproduce": 5,
    "impressions": 6, "covariates": 6, "report": 20,
}  # fmt: skip
assert sum(TIMES.values()) == 1000


@pytest.mark.parametrize("kind", TIMES)
def test_changed_files_are_read_rightly_or_refused(kind):
    counts = Counts()
    for seed in range(TIMES[kind]):
        tried(kind, seed, counts)
    assert not counts.failures, "\n".join(counts.failures)
    assert counts.tried == TIMES[kind]
    assert counts.refused > 0  # else nothing was changed
    assert counts.accepted > 0
