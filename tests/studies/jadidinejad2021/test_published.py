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
def test_ratings_and_items_of_the_strata_add_up(item):
    """Which also says that Table 2's 3,449 items are right, and the text's 3,499 are not."""
    lines = PUBLISHED[item]["lines"]
    for at in (3, 4):
        assert lines["Q1"][at] + lines["Q2"][at] == lines["Holdout"][at] == lines["IPS"][at] == lines["Stratified"][at]


@pytest.mark.parametrize(
    ("item", "values", "starred"),
    [
        ("table2", ".373 .369 .207 .204 .344 .351 .339 .350 .695 .418", "aabba"),
        ("table3", ".269 .263 .246 .245 .239 .241 .236 .242 .271 .229", "a bba"),
        ("table4", ".270 .266 .238 .239 .249 .256 .218 .250 .622 .330 .169 .172", "a bbab"),
        ("table5", ".245 .244 .235 .237 .227 .230 .199 .215 .612 .434 .248 .264", "   bab"),
    ],
)
def test_tables_2_to_5_are_transcribed_line_by_line(item, values, starred):
    """Read from the paper a second time."""
    lines = list(PUBLISHED[item]["lines"].values())
    assert [x for line in lines for x in line[:2]] == [float(x) for x in values.split()]
    assert [line[2] for line in lines] == [mark.strip() for mark in starred]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        (
            "yahoo-r3",
            """
            .599 .641 .700 .407 .414
            .693 .704 .697 .559 .501
            .729 .721 .716 .636 .523
            .652 .653 .713 .673 .450
            .701 .724 .774 .773 .348
            .622 .644 .710 .722 .336
            """,
        ),
        (
            "coat",
            """
            -.040 .051 .116 .362 -.288
            .121 .165 .219 .418 -.240
            .126 .118 .172 .450 -.195
            .165 .159 .213 .467 -.207
            .327 .360 .393 .547 -.186
            .202 .225 .283 .509 -.208
            """,
        ),
    ],
    ids=["yahoo-r3", "coat"],
)
def test_table_6_is_transcribed_line_by_line(name, values):
    """Read from the paper a second time."""
    tau = PUBLISHED["table6"]["tau"][name]
    assert [x for cut in CUTS for x in tau[cut]] == [float(x) for x in values.split()]


@pytest.mark.parametrize("item", ["table2", "table3", "table4", "table5"])
def test_percentages_are_those_of_the_numbers_of_ratings(item):
    lines = PUBLISHED[item]["lines"]
    for name, percent in PUBLISHED[item]["percent"].items():
        assert 100 * lines[name][3] / lines["Holdout"][3] == pytest.approx(percent, abs=0.51)
