"""The table behind any chart: the rows that it draws, without colours, or the tables that it was given."""

from __future__ import annotations

import altair as alt
import polars as pl

from openloop.reporting.blocks import FigureBlock, TableBlock, figures, whole_chart
from openloop.reporting.chart_data import ROWS, numbers
from openloop.reporting.figures import check_figures
from tests.audit_cases import checked

ROW = {"n": 1.5, "model": "mf", "colour": "#0072B2", "parts": [1, 2], "known": True, "none": None}


def figure(**spec) -> FigureBlock:
    return FigureBlock(title="Title", words=(), alt="in words", spec=spec)


def test_a_chart_without_tables_has_one_of_its_rows_names_first():
    layer = {"layer": [{"data": {"values": [ROW, ROW | {"n": float("nan")}]}}, {"data": {"values": [{"zero": 0}]}}]}
    (table,) = numbers(figure(**layer))
    assert table.columns == ("model", "n", "known")
    assert [cell.text for cell in table.rows[0]] == ["mf", "1.5", "True"]
    assert (table.rows[0][0].name, table.rows[0][1].value) == (True, 1.5)
    assert table.rows[1][1].key == "inf"  # sorted last, as what is not known
    assert "Title" in table.caption


def test_data_that_several_layers_share_is_one_table():
    rows = [{"x": 1, "y": 2}, {"x": 2, "y": 3}]
    assert len(numbers(figure(layer=[{"data": {"values": rows}}, {"data": {"values": list(rows)}}]))) == 1
    assert len(numbers(figure(datasets={"a": rows, "b": rows[:1] * 2}))) == 2


def test_a_long_table_says_how_many_rows_it_lacks():
    chart = alt.Chart(pl.DataFrame({"x": range(ROWS + 1234)})).mark_point().encode(x="x:Q")
    (table,) = numbers(whole_chart(chart)[1])
    assert len(table.rows) == ROWS
    assert "1,234" in table.notes[0]


def test_tables_that_were_given_come_first_and_one_above_is_enough():
    own = TableBlock(caption="own", columns=("a",), rows=())
    chart = alt.Chart(alt.Data(values=({"x": 1}, {"x": 2}))).mark_point().encode(x="x:Q")
    (given,) = figures(chart, ["words"], [own])
    (above,) = figures(chart, ["words"], above=True)
    assert numbers(given) == (own,)
    assert numbers(above) == ()


def test_a_chart_without_rows_has_no_table():
    assert numbers(figure(data={"sequence": {"start": 0}}, mark="line")) == ()
    assert numbers(figure(data={"values": [{"colour": "#000000"}] * 2})) == ()


def test_the_chart_of_a_check_has_tables():
    tables = numbers(whole_chart(check_figures(checked()))[1])
    assert len(tables) > 3
    assert all(len(table.rows) > 1 and table.columns for table in tables)
