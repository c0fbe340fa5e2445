"""The item of the factorial experiment: its tables, marks and figure, and a quick run."""

from __future__ import annotations

import pytest

from openloop.studies.lim2015 import factorial
from openloop.studies.lim2015.designs import CELLS, HALF, OF_ADG, OF_AUC, positives_told
from openloop.studies.lim2015.effects import ALONE, MORE_STEPS, PARTS
from openloop.studies.lim2015.published import ADG, AUC, SHOWN
from tests.studies.lim2015.experiments import made_up


@pytest.fixture
def result(monkeypatch):
    data = [made_up((0, 0, 0.02)), made_up((0, 0, 0.02), name="ml-1m", cells=HALF)]
    monkeypatch.setattr(factorial, "experiments", lambda _run: data)
    return factorial.factorial(None)


def table(found, name):
    return next(t for t in found.tables if t.name == name)


def test_arms_are_named_by_what_they_do():
    assert factorial.named(OF_ADG) == f"{ADG}: I∖i⁺, C, until"
    assert factorial.named(OF_AUC) == f"{AUC}: O⁻, 1, once"
    assert len({factorial.named(cell) for cell in CELLS}) == 8
    assert [positives_told(n) for n in (12, 0)] == ["12 positives", "all positives"]


def test_the_decomposition_is_short_and_the_rest_is_in_the_appendix(result):
    gain = table(result, "factorial-gain")
    assert len(gain.rows) == 2 * 7  # three gains, three parts and the rest
    assert not gain.appendix
    assert all(table(result, name).appendix for name in ("factorial-effects", "factorial-fits"))
    assert len(table(result, "factorial-effects").rows) == 2 * (11 + 7)


def test_the_half_of_the_design_shows_parts_alone_and_no_main_effects(result):
    for name in ("factorial-gain", "factorial-effects"):
        effects = {row[0].split(", ")[-1] for row in table(result, name).rows if row[0].startswith("ml-1m")}
        assert effects >= set(ALONE)
        assert not effects & set(PARTS)


def test_each_data_set_has_a_sentence_on_what_carries_the_gain(result):
    first, second = result.notes[:2]
    assert first.startswith("ml-100k")
    assert second.startswith("ml-1m")
    assert (PARTS[2] in first, ALONE[2] in second) == (True, True)


def test_rows_are_by_data_set_then_by_positives(result):
    names = [row[0] for row in table(result, "factorial-effects").rows]
    heads = list(dict.fromkeys(tuple(name.split(", ")[:2]) for name in names))
    assert heads == [(d, n) for d in ("ml-100k", "ml-1m") for n in ("12 positives", "all positives")]


def test_a_fit_tells_its_updates_and_settings(result):
    rows = {row[0]: row for row in table(result, "factorial-fits").rows}
    adg = rows[f"ml-100k, all positives, {ADG}: I∖i⁺, C, until"]
    assert [cell.value for cell in adg[1:4]] == [pytest.approx(x) for x in (1.25, 80.0, 0.9)]
    assert adg[-1] == "0.1, 0.05; 0.1, 0.05"
    assert rows["ml-100k, 12 positives, SVD"][1:4] == (None, None, None)
    assert rows["ml-100k, 12 positives, SVD"][-1] == "4↓; 4↓"


def test_a_fit_that_ended_before_it_had_its_steps_is_marked():
    e = made_up((0, 0, 0))
    search = e.found[0, OF_AUC][0]
    assert not search.ended_short
    search.best.outcome["tally"][1] -= 1
    assert search.ended_short


def test_the_figure_has_four_effects_for_each_data_set_and_two_measures(result):
    (figure,) = result.figures
    for data, parts in (("ml-100k", PARTS), ("ml-1m", ALONE)):
        assert {row["effect"] for row in figure.rows if row["data"].startswith(data)} == {MORE_STEPS, *parts}
    assert {row["data"] for row in figure.rows} == {
        f"{d}, {SHOWN[m]}" for d in ("ml-100k", "ml-1m") for m in ("adg", "atop")
    }
    assert all(row["low"] < row["value"] < row["high"] for row in figure.rows)
    assert not any(row["short"] for row in figure.rows)
    # 20 positives leave 14 for training
    assert {row["positives"] for row in figure.rows} == {12.0, 14.0}


def test_points_of_fits_that_ended_short_are_marked_in_the_figure(monkeypatch):
    e = made_up((0, 0, 0.02))
    e.found[0, OF_AUC][0].best.outcome["tally"][1] -= 1
    monkeypatch.setattr(factorial, "experiments", lambda _run: [e])
    (figure,) = factorial.factorial(None).figures
    assert {(row["positives"], row["effect"]) for row in figure.rows if row["short"]} == {
        (14.0, effect) for effect in (MORE_STEPS, *PARTS)
    }
