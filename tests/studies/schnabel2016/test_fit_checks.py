"""Checks of fits: the same trial in three ways, and a note that tells their differences."""

from __future__ import annotations

import re

from openloop.studies.schnabel2016 import fit_checks
from openloop.studies.schnabel2016.factorisation import SEARCH
from openloop.studies.schnabel2016.fit_checks import Checked
from tests.facts import facts


def one(errors, regs):
    return Checked(loss="squared", alpha=0.25, by="known", errors=errors, regs=regs)


def test_a_note_tells_how_often_the_choice_is_the_same_and_how_far_the_error_moves():
    found = [one((1.0, 1.0, 1.01), (2.0, 2.0, 2.0)), one((1.0, 0.95, 1.0), (2.0, 4.0, 4.0))]
    assert re.search(facts("2 trials", "1 of 2", "5.0%", "1 of 2", "1.0%"), fit_checks.check_note(found))


def test_fits_go_further_and_over_the_whole_grid():
    usual, whole, further = fit_checks._ways(SEARCH["absolute"])
    assert usual == SEARCH["absolute"]
    assert (whole.whole, whole.tol) == (True, usual.tol)
    assert further.tol < usual.tol
    assert further.sweeps > usual.sweeps
    assert not further.whole


def test_a_check_goes_through_and_has_its_row(small_run):
    from openloop.studies.schnabel2016 import figure3left

    found = fit_checks.checked(small_run, figure3left.complete(small_run).given)
    (row,) = fit_checks.check_table(found, small_run).rows
    assert row[0] == "MSE, α = 0.25, MF-Naive"
    assert row[1].value == row[3].value  # a quick run tries its whole grid anyhow
    assert row[1].value != row[5].value
