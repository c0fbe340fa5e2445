"""What looks wrong about predictions: the rules by hand; tests/audits/test_auditing.py has them in an audit."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from openloop.audits.suspicions import copies, off_scale
from openloop.sources.plan import Answers, LogFacts

ABOUT = LogFacts(rows=9, users=3, items=3, scored_users=3, ratings=(), span=(1.0, 5.0), threshold=4.0)


@pytest.mark.parametrize(("low", "high", "off"), [(1, 5, False), (-7, 13, False), (-7.1, 5, True), (1, 13.1, True)])
def test_predictions_more_than_twice_the_scale_beyond_it_are_on_another(low, high, off):
    assert off_scale(Answers(low=low, high=high, copied=0.0), ABOUT) is off


@pytest.mark.parametrize(("copied", "leak"), [(0.5, False), (0.98, False), (0.99, True), (1.0, True)])
def test_nearly_all_rows_must_be_copied_for_a_leak(copied, leak):
    source = SimpleNamespace(answers=lambda _: Answers(low=1.0, high=5.0, copied=copied), about=lambda: ABOUT)
    assert copies(source, "m") is leak
