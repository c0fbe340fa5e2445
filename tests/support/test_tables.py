"""Tables of text: what a cell holds stays in its cell."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openloop.support.tables import latex_table, markdown_table

HEADER, ROW = ("model", "value"), ("a", "0.5")


def test_a_table_in_markdown():
    assert markdown_table(HEADER, [ROW]) == "| model | value |\n| --- | --- |\n| a | 0.5 |\n"


def test_a_table_in_latex():
    rules = ["\\toprule", "model & value \\\\", "\\midrule", "a & 0.5 \\\\", "\\bottomrule"]
    assert latex_table(HEADER, [ROW]) == "\n".join(["\\begin{tabular}{ll}", *rules, "\\end{tabular}", ""])


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=4))
def test_any_text_stays_in_its_cell(rows):
    lines = markdown_table(HEADER, rows).split("\n")
    assert len(lines) == len(rows) + 3
    assert {len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in lines[:-1]} == {3}
    lines = latex_table(HEADER, rows).split("\n")
    assert len(lines) == len(rows) + 7
    assert {len(re.findall(r"(?<!\\)&", line)) for line in lines[2:-3] if line != "\\midrule"} == {1}


@pytest.mark.parametrize(
    ("cell", "markdown", "latex"),
    [
        ("a|b", r"a\|b", r"a\textbar{}b"),
        ("<b>x</b>", r"\<b\>x\</b\>", r"\textless{}b\textgreater{}x\textless{}/b\textgreater{}"),
        (r"\input{x}", r"\\input{x}", r"\textbackslash{}input\{x\}"),
        ("recall_50%\n", r"recall\_50% ", r"recall\_50\% "),
        ("$x$ &lt;", r"\$x\$ \&lt;", r"\$x\$ \&lt;"),
        ("[2em]*", r"\[2em\]\*", "{[}2em{]}{*}"),  # would belong to the \\\\ before it
        ("`'\"a", "\\`'\"a", "{`}{'}\\char34{}a"),
        ("a\x1b[2J\u202e", r"a\\x1b\[2J\\u202e", r"a\textbackslash{}x1b{[}2J\textbackslash{}u202e"),
    ],
)
def test_what_a_format_would_read_is_escaped(cell, markdown, latex):
    assert markdown_table(("x",), [(cell,)]).split("\n")[2] == f"| {markdown} |"
    assert latex_table(("x",), [(cell,)]).split("\n")[4] == f"{latex} \\\\"
