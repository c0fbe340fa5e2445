"""The rows of Tables 2 to 5: paired t-tests over users, and which ratings each row looks at."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import sem, ttest_rel

from openloop.studies.jadidinejad2021.fits import ModelFits
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
from openloop.studies.jadidinejad2021.models import WHOLE, Split, given_of, split_of
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


def test_a_row_of_some_models_keeps_their_tests():
    row = row_of("x", worlds.means_of(some_users()), 9, 4)
    fewer = row.among(np.array([True, False, True]))
    assert fewer.value.tolist() == row.value[[0, 2]].tolist()
    assert fewer.pvalue[0, 1] == row.pvalue[0, 2]
    assert fewer.rows == 9


def test_a_row_of_means_is_the_paired_t_test():
    values = some_users()
    row, known = row_of("x", worlds.means_of(values), 9, 4), values[:, 8:]
    assert row.value == pytest.approx(known.mean(axis=1))
    assert row.error == pytest.approx(sem(known, axis=1))
    for a, b in ((0, 1), (0, 2), (2, 1)):
        assert row.pvalue[a, b] == pytest.approx(ttest_rel(known[a], known[b]).pvalue)
    assert (row.rows, row.items) == (9, 4)


def test_equal_models_have_no_difference():
    row = row_of("x", worlds.means_of(np.repeat(some_users(1), 2, axis=0)), 1, 1)
    assert (row.pvalue == 1).all()


# --------------------------------------------------------------------------------------------- the strata


def tiny():
    """Item 0 is rated ten times, item 1 three times, items 2 and 3 once each; item 3 only in the test part."""
    user = np.array([*range(10), 0, 1, 2, 3, 4])
    item = np.array([0] * 10 + [1] * 3 + [2, 3])
    order = np.lexsort((item, user))
    given = {"user": user[order], "item": item[order], "rating": np.full(15, 5.0), "shape": np.array([10, 4])}
    test = np.flatnonzero((given["user"] >= 8) | (given["item"] == 3))
    train = np.setdiff1d(np.arange(15), test)
    return HeldOutRows(given=given, split=Split(train=train, test=test, order=np.array([0, 1, 2])))


def test_items_and_users_that_training_does_not_show_are_left_out():
    held = tiny()
    # Users 8 and 9 have their only row in the test part, and item 3 does: nothing is left.
    assert sizes(held)[HOLDOUT] == (0, 0)
    part = held.split
    known = replace(part, train=np.append(part.train, part.test[:-1]), order=np.array([0, 1, 2, 3]))
    held = replace(held, split=known)  # now only user 9 is unknown
    assert sizes(held) == {HOLDOUT: (2, 2), "Q1": (1, 1), "Q2": (1, 1)}
    user, item = (codes[held.shown] for codes in held.rows)
    stratum = held.coded_strata(2)
    assert (user[stratum == 1].tolist(), item[stratum == 0].tolist()) == ([8], [3])
    assert strata_with_users(held) == set()  # a single user in each


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


def test_the_open_loop_leaves_out_what_was_trained_on_but_the_code_does_not():
    liked, log, drawn = worlds.logs()
    given = given_of(log, drawn)
    part = split_of(given, 0, 0)
    trained = set(zip(given["user"][part.train].tolist(), given["item"][part.train].tolist(), strict=True))
    outside = [cell for cell in zip(drawn.user.tolist(), drawn.item.tolist(), strict=True) if cell not in trained]
    outcomes = {split: [worlds.outcome(given, np.where(liked, 1.0, 0.0), split, 0)] for split in (0, WHOLE)}
    fits = ModelFits(given=given, models=("liked",), outcomes=outcomes, splits=1, seed=0)
    ours, coded = (method_rows(fits, 0, among)[OPEN_LOOP] for among in ("outside", "coded"))
    assert (ours.rows, coded.rows) == (len(outside), len(drawn))
    assert ours.rows < coded.rows
