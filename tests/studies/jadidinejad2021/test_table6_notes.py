"""Table 6: notes are made of numbers, and a method is recommended only on evidence blind to the choice."""

from __future__ import annotations

from scipy.stats import kendalltau

from openloop.studies.jadidinejad2021 import table6_notes
from openloop.studies.jadidinejad2021.published import CUTS, METHODS, PUBLISHED
from openloop.studies.jadidinejad2021.table6_claims import RIVAL
from tests.studies.jadidinejad2021 import many


def test_notes_of_a_data_set_are_made_of_its_numbers(table6_result):
    targets = many.some_experiment(3).splits[0].targets
    _, log, drawn = many.logs()
    cells = [set(zip(x.user.tolist(), x.item.tolist(), strict=True)) for x in (log, drawn)]
    both = len(cells[0] & cells[1])
    (note,) = [n for n in table6_result.notes if "in the log too" in n]
    assert f"coat: {both} of the open loop's {len(drawn):,} ratings are in the log too, {both} of them" in note
    agree = kendalltau(targets["published"](None).value, targets["unseen"](None).value).statistic
    assert f"agree with τ {agree:.3f}" in note
    (gain,) = [n for n in table6_result.notes if "the abstract's gain" in n]
    assert "gain of 40 % is the relative one, τ 0.283 of stratified over 0.202 of holdout" in gain


def test_marks_are_compared_pair_by_pair(table6_result):
    assert "of 60 pairs" in table6_result.notes[-4]
    published = PUBLISHED["table6"]["differs"]["coat"]
    marks = {cut: dict(zip(METHODS, published[cut], strict=True)) for cut in CUTS}
    (note,) = table6_notes.same_marks("coat", marks)
    assert "60 of 60 pairs" in note
    assert list(table6_notes.same_marks("another", marks)) == []


def test_the_best_in_each_sense_is_named(table6_result):
    every = {row[0]: row for row in table6_result.tables[3].rows}
    ours = max((row for name, row in every.items() if name.startswith("ours")), key=lambda row: row[2].value)
    assert f"unseen: {ours[0]} ({ours[2].value:.3f}), against as " in table6_result.notes[-2]


MEANS = {"ours: a": 0.5, RIVAL: 0.4, "as printed: ips": 0.6}


def said(blind=0.0, noise=0.0):
    """What is said where ours is ahead of Q1 by 0.1, and on halves of the users by this much more, one way or other."""
    agreed = many.agreed(MEANS, halves={"ours: a": blind})
    for half, sign in zip(agreed.weighted.halves, (1, -1), strict=True):
        agreed.values[0, ..., half] += sign * noise
    return table6_notes.against_q1("coat", agreed)


def test_a_method_is_recommended_where_the_lower_limit_blind_to_the_choice_is_above_0():
    note = said()
    assert "picking the best of ours is better than Q1; a (ours), most often picked, is recommended." in note
    assert "a lead of +0.100 (+0.100 … +0.100, from half-samples)" in note


def test_else_none_is_distinguishable_from_q1():
    for note in (said(blind=-0.1), said(noise=0.2), said(blind=-0.2, noise=0.2)):
        assert "none is distinguishable from Q1 on Coat." in note
        assert "recommended" not in note
        assert "it has a lead over Q1 of +0.100" in note  # the numbers are told all the same


def test_or_q1_is_better():
    note = said(blind=-0.2)
    assert "Q1 is better than ours." in note
    assert "a lead of -0.100 (-0.100 … -0.100, from half-samples)" in note
    assert "recommended" not in note
    assert "distinguishable" not in note


def test_the_method_named_is_the_one_that_halves_pick_and_not_the_best_after_looking():
    means = {"ours: a": 0.5, "ours: b": 0.6, RIVAL: 0.4}
    note = table6_notes.against_q1("coat", many.agreed(means, halves={"ours: b": -0.15}))
    assert "Most often picked, by 8 of 8 halves, is a (ours)." in note
    assert "b (ours)" not in note


def test_the_verdict_of_the_made_up_experiment_follows_its_numbers(table6_result):
    note = table6_result.notes[-1]
    low = float(note.partition("has a lead of ")[2].partition("(")[2].split()[0])
    assert ("is recommended. " in note) is (low > 0)
