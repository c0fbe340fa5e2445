"""Instances: lines are paired t-tests, the detector is asked about every pair, and sides are counted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import sem, ttest_rel

from openloop.studies.jadidinejad2021.instances import (
    HOLDOUT,
    OPEN_LOOP,
    STRATIFIED,
    Sides,
    clearest,
    line_of,
    lines_of,
    marginal_line,
    mean_line,
    mirrored,
    search,
    sides,
    sizes,
    strata_of,
)
from openloop.studies.jadidinejad2021.models import WHOLE, Split, given_of, split_of
from tests.studies.jadidinejad2021 import worlds

# ------------------------------------------------------------------------------------------------- a line


def some_users(models=3, users=50, missing=8, rng=0):
    values = np.random.default_rng(rng).random((models, users)) + 0.1 * np.arange(models)[:, None]
    values[:, :missing] = np.nan
    return values


def test_a_line_of_means_is_the_paired_t_test():
    values = some_users()
    line, known = mean_line("x", values, 9, 4), values[:, 8:]
    assert line.value == pytest.approx(known.mean(axis=1))
    assert line.error == pytest.approx(sem(known, axis=1))
    for a, b in ((0, 1), (0, 2), (2, 1)):
        assert line.pvalue[a, b] == pytest.approx(ttest_rel(known[a], known[b]).pvalue)
    assert (line.users, line.rows, line.items) == (42, 9, 4)


def test_equal_models_have_no_difference():
    line = mean_line("x", np.repeat(some_users(1), 2, axis=0), 1, 1)
    assert (line.pvalue == 1).all()


def test_a_single_stratum_is_the_plain_mean():
    values = some_users()
    whole, plain = marginal_line([values], [7], 3), mean_line(STRATIFIED, values, 7, 3)
    for name in ("value", "error", "pvalue"):
        assert getattr(whole, name) == pytest.approx(getattr(plain, name))


def test_strata_count_by_their_shares_of_the_rows():
    values = np.array([[0.2, 0.4, np.nan], [0.1, 0.1, np.nan]]), np.array([[np.nan, 1.0, 0.5], [np.nan, 0.0, 0.5]])
    line = marginal_line(values, [30, 10], 5)
    # By hand: 0.75 · 0.3 + 0.25 · 0.75, and 0.75 · 0.1 + 0.25 · 0.25
    assert line.value == pytest.approx([0.4125, 0.1375])
    assert (line.users, line.rows) == (3, 40)


def test_the_error_of_strata_without_common_users_is_that_of_a_sum():
    first, second = some_users(users=400, missing=200), some_users(users=400, missing=200, rng=1)[:, ::-1]
    line = marginal_line([first, second], [3, 1], 5)
    by_hand = np.sqrt((0.75 * sem(first[:, 200:], axis=1)) ** 2 + (0.25 * sem(second[:, :200], axis=1)) ** 2)
    assert line.error == pytest.approx(by_hand, rel=0.01)  # up to n/(n − 1)


# --------------------------------------------------------------------------------------------- the strata


def tiny():
    """Item 0 is rated ten times, item 1 three times, items 2 and 3 once each; item 3 only in the test part."""
    user = np.array([*range(10), 0, 1, 2, 3, 4])
    item = np.array([0] * 10 + [1] * 3 + [2, 3])
    order = np.lexsort((item, user))
    given = {"user": user[order], "item": item[order], "rating": np.full(15, 5.0), "shape": np.array([10, 4])}
    test = np.flatnonzero((given["user"] >= 8) | (given["item"] == 3))
    train = np.setdiff1d(np.arange(15), test)
    return given, Split(train=train, test=test, order=np.array([0, 1, 2]))


def test_items_and_users_that_training_does_not_show_are_left_out():
    given, part = tiny()
    # Users 8 and 9 have their only row in the test part, and item 3 does: nothing is left.
    rows, _ = strata_of(given, part)
    assert len(rows) == 0
    shown = replace(part, train=np.append(part.train, part.test[:-1]), order=np.array([0, 1, 2, 3]))
    rows, masks = strata_of(given, shown)  # now only user 9 is unknown
    assert sizes(given, shown) == {HOLDOUT: (2, 2), "Q1": (1, 1), "Q2": (1, 1)}
    assert given["user"][rows[masks["Q2"]]].tolist() == [8]
    assert given["item"][rows[masks["Q1"]]].tolist() == [3]


def test_the_strata_share_out_all_rows_and_the_head_is_q2():
    given = worlds.fits().given
    part = split_of(given, 0, 0)
    rows, masks = strata_of(given, part)
    assert (masks["Q1"] ^ masks["Q2"]).all()
    assert set(given["item"][rows[masks["Q2"]]]) == set(range(worlds.HEAD))


# ---------------------------------------------------------------------------------------------- the lines


@pytest.mark.parametrize("among", ["coded", "outside"])
def test_lines_show_which_model_is_good_where(among):
    fits = worlds.fits(splits=1)
    lines = fits.lines(0, among)
    head, tail, oracle, _ = range(4)
    assert list(lines) == [HOLDOUT, *(["IPS"] if among == "coded" else []), STRATIFIED, "Q1", "Q2", OPEN_LOOP]
    assert lines["Q2"].value[head] > 0.8 > lines["Q2"].value[tail]
    assert lines["Q1"].value[tail] > lines["Q1"].value[head]
    assert lines[HOLDOUT].value.argmax() == head  # what most of the ratings do not bear out, nor the open loop
    assert lines[OPEN_LOOP].value.argmax() == oracle
    q1, q2 = (lines[q] for q in ("Q1", "Q2"))
    by_hand = (q1.rows * q1.value + q2.rows * q2.value) / (q1.rows + q2.rows)
    assert lines[STRATIFIED].value == pytest.approx(by_hand)


def test_the_open_loop_leaves_out_what_was_trained_on_but_the_code_does_not():
    liked, log, drawn = worlds.logs()
    given = given_of(log, drawn)
    part = split_of(given, 0, 0)
    trained = set(zip(given["user"][part.train].tolist(), given["item"][part.train].tolist(), strict=True))
    outside = [cell for cell in zip(drawn.user.tolist(), drawn.item.tolist(), strict=True) if cell not in trained]
    same, whole = ([worlds.outcome(given, np.where(liked, 1.0, 0.0), split, 0)] for split in (0, WHOLE))
    ours = lines_of(given, same, same, split=0, seed=0, among="outside")[OPEN_LOOP]
    coded = lines_of(given, same, whole, split=0, seed=0, among="coded")[OPEN_LOOP]
    assert (ours.rows, coded.rows) == (len(outside), len(drawn))
    assert ours.rows < coded.rows


# -------------------------------------------------------------------------------------------- the detector


def lines_with(holdout, q1, users=200, rng=0):
    """Lines of models whose values are these, with noise of 0.1 over users."""
    noise = 0.1 * np.random.default_rng(rng).standard_normal((3, len(holdout), users))
    made = {}
    for at, (name, mean, rows) in enumerate(((HOLDOUT, holdout, 100), ("Q1", q1, 90), ("Q2", holdout, 10))):
        centred = noise[at] - noise[at].mean(axis=1, keepdims=True)
        made[name] = mean_line(name, np.asarray(mean)[:, None] + centred, rows, 5)
    return made


def test_reversals_and_maskings_are_found_among_all_pairs():
    models = ["a", "b", "c"]
    lines = lines_with([0.50, 0.40, 0.399], [0.40, 0.50, 0.60])
    found = search(models, lines, holm=False)
    assert {(p.kind, p.preferred, p.other) for p in found} == {
        ("reversal", "b", "a"), ("reversal", "c", "a"), ("masking", "c", "b"),
    }  # fmt: skip
    best = clearest(found, models, lines)
    assert best is not None
    assert (best.kind, best.preferred) == ("reversal", "c")
    assert clearest((), models, lines) is None


def test_holm_takes_the_number_of_pairs_into_account():
    lines = lines_with([0.5, 0.48], [0.48, 0.5])
    borderline = {name: replace(line, pvalue=np.full((2, 2), 0.03)) for name, line in lines.items()}
    assert len(search(["a", "b"], borderline, holm=True)) == 1
    more = {
        name: replace(line, value=np.append(line.value, line.value + 0.001), pvalue=np.full((4, 4), 0.03))
        for name, line in borderline.items()
    }
    assert search(list("abcd"), more, holm=True) == ()
    assert len(search(list("abcd"), more, holm=False)) == 4


def test_sides_count_who_is_ahead_and_how_clearly():
    models = ["a", "b", "c"]
    found = search(models, lines_with([0.50, 0.40, 0.399], [0.40, 0.50, 0.60]), holm=False)
    told = line_of(OPEN_LOOP, np.array([0.3, 0.2, 0.4]), np.zeros((3, 4)), 4, 1, 1)
    told = replace(told, pvalue=np.array([[1, 0.01, 0.5], [0.01, 1, 0.04], [0.5, 0.04, 1]]))
    # b over a: the open loop says a, clearly; c over a: it says c, unclearly; c over b: it says c, clearly.
    assert sides(found, models, told) == Sides(majority=2, aggregate=1, clear_majority=1, clear_aggregate=1)
    assert sides((), models, told).total == 0


def test_mirror_images_are_chosen_by_the_aggregate_and_told_by_the_open_loop():
    lines = lines_with([0.50, 0.40, 0.60], [0.45, 0.451, 0.70])
    told = line_of(OPEN_LOOP, np.array([0.3, 0.4, 0.5]), np.zeros((3, 4)), 4, 1, 1)
    # a over b by all ratings, b over a by Q1, hardly; c is ahead everywhere. The open loop has b ahead of a.
    assert mirrored(lines, told) == Sides(majority=1, aggregate=0, clear_majority=0, clear_aggregate=0)
    turned = replace(told, value=-told.value, pvalue=np.full((3, 3), 0.01))
    assert mirrored(lines, turned) == Sides(majority=0, aggregate=1, clear_majority=0, clear_aggregate=1)
    assert search(["a", "b", "c"], lines, holm=False) == ()
