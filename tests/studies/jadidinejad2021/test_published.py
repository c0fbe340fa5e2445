"""The published numbers: complete, and at one with each other."""

from __future__ import annotations

import pytest

from openloop.studies.jadidinejad2021.published import CUTS, METHODS, PUBLISHED


@pytest.mark.parametrize("name", ["coat", "yahoo-r3"])
def test_table_6_is_complete_and_its_marks_are_mutual(name):
    tau, differs = (PUBLISHED["table6"][part][name] for part in ("tau", "differs"))
    assert tuple(tau) == tuple(differs) == tuple(CUTS)
    for cut in CUTS:
        assert len(tau[cut]) == len(differs[cut]) == len(METHODS)
        told = {(a, int(b)) for a, marks in enumerate(differs[cut], 1) for b in marks.split("/")}
        assert {(b, a) for a, b in told} == told


@pytest.mark.parametrize("name", ["coat", "yahoo-r3"])
def test_text_and_tables_have_the_same_numbers(name):
    tau = PUBLISHED["table6"]["tau"][name]["ndcg"]
    figure3, figure4 = (PUBLISHED[item][name] for item in ("figure3", "figure4"))
    assert figure3["holdout"] == pytest.approx(tau[0], abs=0.005)
    assert figure3["q1"] == pytest.approx(tau[3], abs=0.005)
    assert (figure3["q2"], figure4["one"]) == (tau[4], tau[0])


@pytest.mark.parametrize("name", ["coat", "yahoo-r3"])
def test_the_abstracts_gain_is_stratified_over_holdout(name):
    holdout, _, stratified, *_ = PUBLISHED["table6"]["tau"][name]["ndcg"]
    assert round(100 * (stratified / holdout - 1)) == PUBLISHED["table6"]["gain"][name]


@pytest.mark.parametrize("item", ["table2", "table3", "table4", "table5"])
def test_percentages_are_those_of_the_numbers_of_ratings(item):
    lines = PUBLISHED[item]["lines"]
    for name, percent in PUBLISHED[item]["percent"].items():
        assert 100 * lines[name][3] / lines["Holdout"][3] == pytest.approx(percent, abs=0.51)
