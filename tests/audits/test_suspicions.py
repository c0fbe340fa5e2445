"""What looks wrong about predictions: the rules by hand; tests/audits/test_auditing.py has them in an audit."""

from __future__ import annotations

import pytest

from openloop.audits.suspicions import COPIED, off_scale
from openloop.sources.plan import Answers, LogFacts

ABOUT = LogFacts(rows=9, users=3, items=3, scored_users=3, ratings=(), span=(1.0, 5.0), threshold=4.0)


@pytest.mark.parametrize(("low", "high", "off"), [(1, 5, False), (-7, 13, False), (-7.1, 5, True), (1, 13.1, True)])
def test_predictions_more_than_twice_the_scale_beyond_it_are_on_another(low, high, off):
    assert off_scale(Answers(low=low, high=high, copied=0.0), ABOUT) is off


def test_nearly_all_rows_must_be_copied_for_a_leak():
    assert COPIED == pytest.approx(0.99)
