"""Tables behind the figures of a check: one row for each thing drawn."""

from __future__ import annotations

from openloop.propensity.checks.checking import check
from openloop.propensity.known import Known
from openloop.reporting.check_tables import balance, calibration, margins, overlap
from tests.audit_cases import HOSTILE, checked, log


def test_every_bin_covariate_and_margin_has_a_row():
    assert [row[0].value for row in calibration(checked()).rows] == [b.predicted for b in checked().calibration.curve]
    assert {row[0].text for row in balance(checked()).rows} == {
        d.name for d in checked().balance if d.before is not None
    }
    assert HOSTILE[0] in {row[0].text for row in balance(checked()).rows}
    assert [row[1].value for row in overlap(checked()).rows] == list(checked().overlap.observed)
    assert [row[0].text for row in margins(checked()).rows] == ["users", "items"]


def test_what_was_not_computed_leaves_no_rows_or_dashes():
    bare = check(Known().fit(log()), log())  # neither held-out cells nor a grid
    assert calibration(bare).rows == margins(bare).rows == ()
    assert {row[2].text for row in overlap(bare).rows} == {"–"}
