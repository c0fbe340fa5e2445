"""Table 6: claims that can fail, and notes made of numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kendalltau

from openloop.studies.jadidinejad2021 import table6_claims
from openloop.studies.jadidinejad2021.agreement import Agreement, Weightings
from openloop.studies.jadidinejad2021.published import CUTS, METHODS, PUBLISHED
from tests.studies.jadidinejad2021 import many


def test_claims_are_judged_by_their_numbers(table6_result):
    near, _, published, candidates = table6_result.claims
    assert not near.holds  # made-up models are not the paper's
    for claim in (published, candidates):
        assert "chosen after looking" in claim.text
        blind = float(claim.found.rpartition(" by ")[2].split()[0])
        assert claim.holds == ("ahead of 10 of 10 published methods" in claim.found and blind > 0)


def agreed(means, noise, blind=0.0):
    """An Agreement of one of ours with two published methods; `noise` over users, and how ours does on halves."""
    names, halves, draws = ("ours: a", table6_claims.RIVAL, "as printed: q1"), 4, 50
    values = np.empty((3, 4, 2, 1 + draws + 2 * halves))
    values[:] = np.array(means)[:, None, None, None]
    wave = np.where(np.arange(draws) % 2, 1.0, -1.0)
    values[..., 1 : 1 + draws] += np.array(noise)[:, None, None, None] * wave
    values[0, ..., 1 + draws :] += blind
    weighted = Weightings(values=np.ones((values.shape[-1], 1)), draws=draws)
    return Agreement(methods=names, values=values, weighted=weighted, halves=np.ones(4))


@pytest.mark.parametrize(
    ("noise", "blind", "holds", "ahead"),
    [
        ((0, 0.01, 0.01), 0.0, True, "2 of 2"),
        ((0, 0.01, 0.2), 0.0, False, "1 of 2"),  # clearly ahead of the best, not clearly of the other
        ((0, 0.2, 0.01), 0.0, False, "1 of 2"),
        ((0, 0.01, 0.01), -0.2, False, "2 of 2"),  # and of no use to those who did not choose it
    ],
)
def test_one_of_ours_must_be_clearly_ahead_of_each_published_method_and_blind(noise, blind, holds, ahead):
    claim = table6_claims.ahead_of_all("coat", agreed((0.5, 0.4, 0.3), noise, blind), "published", "here")
    assert claim.holds is holds
    assert f"ahead of {ahead} published methods" in claim.found


def test_notes_of_a_data_set_are_made_of_its_numbers(table6_result):
    targets = many.some_experiment(3).splits[0].targets
    _, log, drawn = many.logs()
    cells = [set(zip(x.user.tolist(), x.item.tolist(), strict=True)) for x in (log, drawn)]
    both = len(cells[0] & cells[1])
    (note,) = [n for n in table6_result.notes if "in the log too" in n]
    assert f"coat: {both} of the open loop's {len(drawn):,} ratings are in the log too, {both} of them" in note
    agree = kendalltau(targets["published"](None).value, targets["unseen"](None).value).statistic
    assert f"rank alike with τ {agree:.3f}" in note
    (gain,) = [n for n in table6_result.notes if "the abstract's gain" in n]
    stratified, holdout = (
        table6_result.tables[0].rows[-1][1 + METHODS.index(m)].value for m in ("stratified", "holdout")
    )
    assert "gain of 40 % is τ 0.283" in gain
    assert f"{stratified:.3f} and {holdout:.3f}" in gain


def test_marks_are_compared_pair_by_pair(table6_result):
    assert "of 60 pairs" in table6_result.notes[-4]
    published = PUBLISHED["table6"]["differs"]["coat"]
    marks = {cut: dict(zip(METHODS, published[cut], strict=True)) for cut in CUTS}
    (note,) = table6_claims.same_marks("coat", marks)
    assert "60 of 60 pairs" in note
    assert list(table6_claims.same_marks("another", marks)) == []


def test_the_best_in_each_sense_is_named(table6_result):
    every = {row[0]: row for row in table6_result.tables[2].rows}
    ours = max((row for name, row in every.items() if name.startswith("ours")), key=lambda row: row[2].value)
    assert f"unseen: {ours[0]} ({ours[2].value:.3f}), against as " in table6_result.notes[-2]


def test_the_recommended_method_is_named_with_its_margins(table6_result):
    note = table6_result.notes[-1]
    ahead, blind = (
        float(note.partition(words)[2].partition(after)[2].split()[0])
        for words, after in (("best published method", ", by "), ("Chosen blind", ": "))
    )
    assert ("recommended on this evidence" in note) is (ahead > 0 and blind > 0)
    assert ("none recommended" in note) is (ahead <= 0 or blind <= 0)
