"""Values of single models beside the notebook's."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from openloop.studies.jadidinejad2021 import model_values, models_table
from openloop.studies.jadidinejad2021.published import PUBLISHED
from openloop.studies.kit.results import Value
from tests.studies.jadidinejad2021 import many


class MadeUpCoat(many.Plain):
    """A run that finds a made-up log and open loop under the name of Coat."""

    def load(self, name):
        log, drawn = many.wide()
        return SimpleNamespace(log=log, open_loop=drawn)


@pytest.fixture(scope="session")
def result(cornac, torch):
    return models_table.models(MadeUpCoat("coat"))


class TestTheItem:
    def test_each_model_has_six_values_beside_the_notebooks(self, result):
        table = result.tables[0]
        assert [row[0] for row in table.rows] == ["GA", "MostPop", "BO", "MF10"]  # those of a quick run
        for name, *cells in table.rows:
            assert [cell.published for cell in cells] == list(PUBLISHED["models"]["rows"][name])

    def test_only_rounding_is_allowed_where_nothing_is_left_to_chance(self, result):
        opened = {row[0]: row[1] for row in result.tables[0].rows}
        assert [opened[name].allowed for name in model_values.EXACT] == pytest.approx([0.0005] * 3)

    def test_what_is_judged_over_many_splits_is_not_judged_over_few(self, result):
        few, many_splits = ({row[0]: row[-5:] for row in result.tables[at].rows} for at in (0, 2))
        for name, cells in few.items():
            assert {cell.judged for cell in cells} == {name not in many_splits}
        assert all(cell.judged for cells in many_splits.values() for cell in cells)

    def test_by_number_of_threads_nothing_is_judged(self, result):
        opened = {row[0]: row[1] for row in result.tables[0].rows}
        assert (opened["BO"].came_out, opened["BO"].error) == (None, None)
        (threads,) = [row for row in result.tables[3].rows if row[0] == "BO"]
        least, largest = map(float, threads[-1].split(" to "))
        assert 0 < least <= largest < 1

    def test_values_of_another_world_do_not_come_out(self, result):
        holds = [claim.holds for claim in result.claims]
        assert holds == [False, False, False]  # two splits are too few for a claim about splits left out
        assert all("notebook: 0." in claim.found for claim in result.claims[:2])

    def test_the_causes_differ_from_what_is_done_here(self, result):
        for row in result.tables[3].rows:
            if row[0] != "BO":
                here, otherwise = (cell.value for cell in row if isinstance(cell, Value))
                assert here != otherwise

    def test_a_point_for_each_value(self, result):
        (figure,) = result.figures
        assert len(figure.rows) == 4 * 6
        assert {row["family"] for row in figure.rows} == {"GA", "MostPop", "BO", "MF"}


def test_without_data_the_notebooks_rows_are_shown():
    (table,) = models_table.published()
    values = dict(table.values())
    assert len(values) == 10 * 6
    assert values["MostPop, Q2"].published == 0.666
    assert {value.value for value in values.values()} == {None}


def closed(away, splits=10):
    """Values of two models in splits that scatter around the notebook's values, those of GA this far away."""
    rng = np.random.default_rng(0)
    rows = {name: np.array(PUBLISHED["models"]["rows"][name][1:]) for name in ("GA", "MF10")}
    drawn = {name: row + 0.01 * rng.normal(size=(splits, 5)) for name, row in rows.items()}
    drawn["GA"] += away
    return model_values.ModelValues(models=("GA", "MF10"), opened={}, closed=drawn, many={}, wmf={}, otherwise={})


@pytest.mark.parametrize(("away", "holds"), [(0.0, True), (0.1, False)])
def test_as_many_closed_values_must_be_within_limits_as_of_a_split_left_out(away, holds):
    claim = models_table.closed_claim(closed(away))
    assert claim.holds is holds
    assert claim.found.startswith("10 are;" if holds else "5 are;")


def test_a_split_that_moves_as_a_whole_is_allowed_as_often_as_ours_do():
    """All values of a split move together, one of ours far away: the notebook's may too, and 95 % of them need not."""
    found = closed(0.0)
    for name in found.closed:
        found.closed[name] += np.append(np.linspace(-0.03, 0.03, 9), 0.18)[:, None]
    ours = np.stack(list(found.closed.values()), axis=1)
    assert models_table.within(ours[:9], ours[9].round(3)) == 0
    assert "of our splits left out 0 or more" in models_table.closed_claim(found).found


def test_a_split_like_ours_fails_with_a_chance_of_1_in_11():
    rng = np.random.default_rng(0)
    failed = 0
    for _ in range(200):
        drawn = rng.normal(size=(11, 1, 1)) + 0.5 * rng.normal(size=(11, 3, 5))
        inside = models_table.within(drawn[1:], drawn[0])
        failed += inside < min(models_table.within(np.delete(drawn[1:], r, axis=0), drawn[1 + r]) for r in range(10))
    assert failed <= 200 / 11 + 3.3 * np.sqrt(200 * 10 / 121)
