"""The rows of Tables 2 to 5: paired t-tests over users, and which ratings each row looks at."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import sem, ttest_rel

from openloop.studies.jadidinejad2021.method_rows import (
    HOLDOUT,
    OPEN_LOOP,
    STRATIFIED,
    method_rows,
    pair_pvalues,
    row_of,
    sizes,
    strata_with_users,
)
from openloop.studies.jadidinejad2021.methods import HeldOutRows, coded
from openloop.studies.jadidinejad2021.models import split_of
from tests.studies.jadidinejad2021 import worlds

# -------------------------------------------------------------------------------------------------- a row


def some_users(models=3, users=50, missing=8, rng=0):
    values = np.random.default_rng(rng).random((models, users)) + 0.1 * np.arange(models)[:, None]
    values[:, :missing] = np.nan
    return values


def test_all_pairs_at_once_are_tested_as_estimates_are():
    """Of a ratio of sums too, whose deviations are not its influence; models that are alike have p = 1."""
    fits = worlds.fits()
    scores = coded(fits.held_out(0))["stratified"](None)
    parts = [estimate.linear() for estimate in (*scores.estimates, scores.estimates[0])]
    value, J, psi = (np.array([getattr(part, name) for part in parts]) for name in ("value", "deviations", "influence"))
    found = pair_pvalues(value, J, psi, parts[0].units)
    for a, b in combinations(range(len(parts)), 2):
        assert found[a, b] == found[b, a] == pytest.approx((parts[a] - parts[b]).pvalue)
    assert found[0, -1] == 1


def test_a_row_of_means_is_the_paired_t_test():
    values = some_users()
    row, known = row_of("x", worlds.means_of(values), 9, 4), values[:, 8:]
    assert row.value == pytest.approx(known.mean(axis=1))
    assert row.error == pytest.approx(sem(known, axis=1))
    for a, b in ((0, 1), (0, 2), (2, 1)):
        assert row.pvalue[a, b] == pytest.approx(ttest_rel(known[a], known[b]).pvalue)
    assert (row.rows, row.items) == (9, 4)


# --------------------------------------------------------------------------------------------- the strata


def test_the_strata_share_out_all_rows_and_the_head_is_q2():
    given = worlds.fits().given
    held = HeldOutRows(given=given, split=split_of(given, 0, 0))
    found = sizes(held)
    assert found["Q1"][0] + found["Q2"][0] == found[HOLDOUT][0]
    assert set(held.rows[1][held.shown][held.coded_strata(2) == 1]) == set(range(worlds.HEAD))
    assert strata_with_users(held) == {"Q1", "Q2"}


# ----------------------------------------------------------------------------------------------- the rows


@pytest.mark.parametrize("among", ["coded", "outside"])
def test_rows_show_which_model_is_good_where(among):
    fits = worlds.fits(splits=1)
    rows = method_rows(fits, 0, among)
    head, tail, oracle, _ = range(4)
    assert list(rows) == [HOLDOUT, *(["IPS"] if among == "coded" else []), STRATIFIED, "Q1", "Q2", OPEN_LOOP]
    assert rows["Q2"].value[head] > 0.8 > rows["Q2"].value[tail]
    assert rows["Q1"].value[tail] > rows["Q1"].value[head]
    assert rows[HOLDOUT].value.argmax() == head  # what most of the ratings do not bear out, nor the open loop
    assert rows[OPEN_LOOP].value.argmax() == oracle
    q1, q2 = (rows[q] for q in ("Q1", "Q2"))
    by_hand = (q1.rows * q1.value + q2.rows * q2.value) / (q1.rows + q2.rows)
    assert rows[STRATIFIED].value == pytest.approx(by_hand)
