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
def result():
    pytest.importorskip("cornac")
    pytest.importorskip("torch")
    return models_table.models(MadeUpCoat("coat"))


@pytest.mark.usefixtures("cornac", "torch")
class TestTheItem:
    def test_each_model_has_six_values_beside_the_notebooks(self, result):
        table = result.tables[0]
        assert [row[0] for row in table.rows] == ["GA", "MostPop", "BO", "MF10"]  # those of a quick run
        for name, *cells in table.rows:
            assert [cell.published for cell in cells] == list(PUBLISHED["models"]["rows"][name])

    def test_only_rounding_is_allowed_where_nothing_is_left_to_chance(self, result):
        opened = {row[0]: row[1] for row in result.tables[0].rows}
        assert [opened[name].allowed for name in model_values.EXACT] == pytest.approx([0.0005] * 3)
        assert opened["BO"].allowed == pytest.approx(0.0005 + 2 * opened["BO"].error * np.sqrt(1 + 1 / 3))

    def test_values_of_another_world_do_not_come_out(self, result):
        holds = [claim.holds for claim in result.claims]
        assert holds == [False, False, False, False]
        assert all("notebook: 0." in claim.found for claim in result.claims[:3])

    def test_the_causes_differ_from_what_is_done_here(self, result):
        for row in result.tables[3].rows:
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
