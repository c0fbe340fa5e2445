"""Blocks of a page: charts whose words stand beside them, and colours that are the style sheet's."""

from __future__ import annotations

from openloop.reporting.blocks import Cell, TableBlock, figures, themed
from openloop.reporting.figures import margins_plot
from openloop.reporting.style import BLUE
from openloop.reporting.weight_figures import weights_chart
from tests.audit_cases import checked, small_audit

TABLE = TableBlock(caption="numbers", columns=("of", "n"), rows=((Cell(text="a"), Cell(text="1", value=1.0)),))


def test_the_words_of_a_chart_leave_it_for_the_page():
    (figure,) = figures(weights_chart(small_audit().weights), ["in words"], [TABLE])
    assert figure.title == "Chances of the scored rows"
    assert "smallest" in figure.words[0]
    assert (figure.alt, figure.tables) == ("in words", (TABLE,))
    assert not {"title", "config", "width"} & set(figure.spec)


def test_a_chart_of_two_panels_becomes_two_figures_with_one_table():
    found = figures(margins_plot(checked()), ["users", "items"], [TABLE])
    assert [figure.title for figure in found] == ["Counts of users", "Counts of items"]
    assert [len(figure.tables) for figure in found] == [0, 1]


def test_each_panel_has_its_data():
    for figure in figures(margins_plot(checked()), ["users", "items"]):
        text = str(figure.spec)
        assert "'values'" in text or "'datasets'" in text


def test_colours_become_variables_and_other_values_stay():
    spec = {"range": [BLUE, "#123456"], "n": 1, "title": None, "of": {"color": BLUE}}
    assert themed(spec) == {
        "range": ["var(--blue)", "#123456"], "n": 1, "title": None, "of": {"color": "var(--blue)"}
    }  # fmt: skip


def test_a_line_separator_in_a_name_cannot_break_an_expression():
    assert themed(["a\u2028b\u2029"]) == ["a␤b␤"]


def test_a_table_knows_its_columns_of_numbers_and_a_cell_what_it_is_sorted_by():
    assert TABLE.numeric == (False, True)
    assert TableBlock(caption="", columns=("a", "b"), rows=()).numeric == (False, False)
    assert (Cell(text="x").key, Cell(text="1 %", value=0.01).key) == ("x", "0.01")
