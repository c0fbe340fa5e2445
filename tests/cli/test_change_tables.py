"""Two audits on a terminal: all that changed, within its width."""

from __future__ import annotations

import io

from rich.console import Console

from openloop.cli.change_tables import changed
from tests.change_cases import changes


def shown(found, width=80) -> str:
    stream = io.StringIO()
    terminal = Console(file=stream, width=width, highlight=False, markup=False)
    for part in changed(found):
        terminal.print(part)
    return stream.getvalue()


def test_all_that_changed_is_printed():
    text = shown(changes())
    assert text.startswith("The older audit chooses a, the newer one cannot tell")
    for part in ("old: a wins.", "new: Nobody wins.", "- threshold: 4 → 3", "places by snips of mae",
                 "- a was ahead of <b>; now neither is ahead", "0.80 … 1.20", "+1.00"):  # fmt: skip
        assert part in text
    assert "\x1b" not in text


def test_of_one_log_no_interval_is_shown():
    from dataclasses import replace

    from tests.change_cases import VALUE

    text = shown(changes(one_log=True, values=(replace(VALUE, low=None, high=None),), settings=()))
    assert "if independent" not in text
    assert "settings that differ" not in text
