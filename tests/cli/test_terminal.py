"""What a terminal is sent: layout and colours are ours, and nothing from data acts on it."""

from __future__ import annotations

import io

import pytest
from rich.panel import Panel
from rich.table import Table

from openloop.cli import audit_tables
from openloop.cli.terminal import Terminal
from tests.audit_cases import small_audit
from tests.cli.running import run

NAME = "a\x1b]0;owned\x07\x1b[2J\r\u202e\x9b[red]b[/red]\x08\n# x"
SHOWN = r"a\x1b]0;owned\x07\x1b[2J\r\u202e\x9b[red]b[/red]\x08"


def drawn(*parts, colour=False):
    stream = io.StringIO()
    terminal = Terminal(
        file=stream,
        width=200,
        highlight=False,
        markup=False,
        emoji=False,
        force_terminal=colour,
        color_system="standard" if colour else None,
    )
    for part in parts:
        terminal.print(part)
    return stream.getvalue()


def table(cell):
    found = Table(box=None)
    found.add_column(cell)
    found.add_row(cell)
    return found


@pytest.mark.parametrize("part", [NAME, table(NAME), Panel(NAME)], ids=["text", "table", "panel"])
def test_text_is_shown_whatever_holds_it(part):
    assert SHOWN in drawn(part)


def test_an_audit_of_models_with_such_names_is_shown():
    names = tuple(f"{NAME} {n}" for n in range(3))
    text = drawn(*audit_tables.printed(small_audit(names), None))
    assert SHOWN + r"\n# x 0" in text
    assert not set(text) & set("\x1b\x07\r\u202e\x9b\x08")
    assert "\n# x" not in text  # no name begins a line of its own


def test_a_file_s_name_does_not_act_on_the_terminal(tmp_path):
    log = tmp_path / "log\x1b[2J\u202e.csv"
    log.write_text("user,item,rating\x1b]0;owned\x07\n1,2,3\n")
    result = run("train", log, "--model", "mf", "--out", tmp_path / "m.safetensors", "--rating", "stars")
    assert result.exit_code == 2
    assert not set(result.output) & set("\x1b\x07\u202e")
    assert r"log\x1b[2J\u202e.csv" in result.output
