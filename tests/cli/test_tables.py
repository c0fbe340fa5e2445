"""Tables on a terminal keep every name and number whole, whatever the width."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from openloop.cli.tables import titled

COLUMNS = ["model", "snips", "ips", "stratified", "clipped@20", "naive"]
LONG = "two_towers_2026-11-18_candidate"
LINES = [[LONG, *["0.846 ±0.092!"] * 5], [f"{LONG}2", *["0.506 ±0.066!"] * 5]]


def shown(lines, width) -> str:
    stream = io.StringIO()
    terminal = Console(file=stream, width=width, highlight=False, markup=False)
    for part in titled("a title", COLUMNS, lines):
        terminal.print(part)
    return stream.getvalue()


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_nothing_is_cut_short(width):
    text = shown(LINES, width)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    assert text.count("±0.092!") == text.count("±0.066!") == 5
    assert all(column in text for column in COLUMNS)
    names = re.sub(r"\s+", "", re.sub(r"\d\.\d+ ±\d\.\d+!", "", text))
    assert names.count(LONG) == 2 * text.count("model")


def test_what_a_terminal_would_obey_is_shown():
    assert "\x1b" not in shown([["\x1b[2J", *["1"] * 5]], 80)
