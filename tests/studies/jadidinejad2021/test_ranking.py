"""Table 6: what stands in its tables, and claims that can fail."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import kendalltau

from openloop.studies.jadidinejad2021 import ranking
from openloop.studies.jadidinejad2021.agreement import Agreement, Weightings
from openloop.studies.jadidinejad2021.published import CUTS, METHODS, PUBLISHED
from openloop.studies.kit.results import Value
from tests.studies.jadidinejad2021 import many


@pytest.fixture(scope="module")
def result():
    patch = pytest.MonkeyPatch()
    patch.setattr(ranking, "evidence", lambda *_: many.some_evidence(3))
    yield ranking.table6(many.Plain("coat"))
    patch.undo()


def test_it_has_a_table_for_each_column_and_one_of_all_methods(result):
    assert [table.name.removeprefix("table6_coat_") for table in result.tables] == [
        "as_coded", "as_printed", "methods", "cuts", "tests"
    ]  # fmt: skip
    assert result.data == ("coat",)


def test_as_coded_stands_beside_the_published(result):
    table = result.tables[0]
    assert [row[0] for row in table.rows] == list(CUTS)
    published = PUBLISHED["table6"]["tau"]["coat"]
    for cut, *values in table.rows:
        assert [v.published for v in values] == list(published[cut])
        assert all(v.tolerance == pytest.approx(2 * v.error * np.sqrt(4 / 3)) for v in values)


def test_the_numbers_are_those_of_the_table_of_all_methods(result):
    every = {row[0]: row for row in result.tables[2].rows}
    last = result.tables[0].rows[-1]
    assert last[0] == "ndcg"
    for name, value in zip(METHODS, last[1:], strict=True):
        assert value.value == pytest.approx(every[f"as coded: {name}"][1].value)
    printed = result.tables[1].rows[-1]
    for name, value in zip(METHODS, printed[1:], strict=True):
        assert value.value == pytest.approx(every[f"as printed: {name}"][3].value)


def test_all_methods_are_shown_whatever_came_out(result):
    assert [row[0] for row in result.tables[2].rows] == list(many.some_evidence(3).rounds[0].methods)
    assert all(isinstance(cell, Value) for row in result.tables[2].rows for cell in row[1:5])


def test_every_pair_of_published_methods_is_tested(result):
    assert len(result.tables[4].rows) == 10
    assert result.tables[4].rows[0][0] == "holdout − ips"


def test_claims_are_judged_by_their_numbers(result):
    near, _, published, candidates = result.claims
    assert not near.holds  # made-up models are not the paper's
    for claim in (published, candidates):
        assert "chosen after looking" in claim.text
        blind = float(claim.found.rpartition(" by ")[2].split()[0])
        assert claim.holds == ("ahead of 10 of 10 published methods" in claim.found and blind > 0)


def agreed(means, noise, blind=0.0):
    """An Agreement of one of ours with two published methods; `noise` over users, and how ours does on halves."""
    names, halves, draws = ("ours: a", ranking.RIVAL, "as printed: q1"), 4, 50
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
    ev = SimpleNamespace(name="coat")
    claim = ranking._above(ev, agreed((0.5, 0.4, 0.3), noise, blind), "published", "here")
    assert claim.holds is holds
    assert f"ahead of {ahead} published methods" in claim.found


def test_notes_of_a_data_set_are_made_of_its_numbers(result):
    ev = many.some_evidence(3)
    _, log, drawn = many.logs()
    cells = [set(zip(x.user.tolist(), x.item.tolist(), strict=True)) for x in (log, drawn)]
    both = len(cells[0] & cells[1])
    (note,) = [n for n in result.notes if "in the log too" in n]
    assert f"coat: {both} of the open loop's {len(drawn):,} ratings are in the log too, {both} of them" in note
    goals = ev.targets(ev.rounds[0], None)
    agree = kendalltau(goals["published"].value(), goals["unseen"].value()).statistic
    assert f"rank alike with τ {agree:.3f}" in note
    (gain,) = [n for n in result.notes if "the abstract's gain" in n]
    stratified, holdout = (result.tables[0].rows[-1][1 + METHODS.index(m)].value for m in ("stratified", "holdout"))
    assert "gain of 40 % is τ 0.283" in gain
    assert f"{stratified:.3f} and {holdout:.3f}" in gain


def test_verdicts_are_compared_pair_by_pair(result, monkeypatch):
    assert "of 60 pairs" in result.notes[-4]
    published = PUBLISHED["table6"]["differs"]["coat"]
    drawn = iter(published.values())
    monkeypatch.setattr(ranking, "marks", lambda *_: dict(zip(METHODS, next(drawn), strict=True)))
    (note,) = ranking._same_verdicts(many.some_evidence(3))
    assert "60 of 60 pairs" in note


def test_the_best_in_each_sense_is_named(result):
    every = {row[0]: row for row in result.tables[2].rows}
    ours = max((row for name, row in every.items() if name.startswith("ours")), key=lambda row: row[2].value)
    assert f"unseen: {ours[0]} ({ours[2].value:.3f}), against as " in result.notes[-2]


def test_the_recommended_method_is_named_with_its_margins(result):
    note = result.notes[-1]
    ahead, blind = (
        float(note.partition(words)[2].partition(after)[2].split()[0])
        for words, after in (("best published method", ", by "), ("Chosen blind", ": "))
    )
    assert ("recommended on this evidence" in note) is (ahead > 0 and blind > 0)
    assert ("none recommended" in note) is (ahead <= 0 or blind <= 0)
