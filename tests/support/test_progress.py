"""A bar on a terminal, and not a byte where there is none."""

from __future__ import annotations

import subprocess
import sys
import types

import pytest

from openloop.support import progress as progressing
from openloop.support.progress import progress


@pytest.mark.parametrize("show", [True, False])
def test_nothing_is_written_where_stderr_is_no_terminal(capfd, show):
    with progress("fitting", 3, show=show) as advance:
        for done in range(4):
            advance(done, f"objective {done}")
    assert capfd.readouterr() == ("", "")


def test_hidden_it_loads_no_drawing_library():
    program = (
        "import sys; from openloop.support.progress import progress\n"
        "with progress('fitting', 3, show=False) as advance: advance(1, '')\n"
        "assert 'rich' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


class Handle:
    """What IPython gives to change an output: it keeps what was shown."""

    def __init__(self, shown):
        self.shown = shown

    def update(self, content, *, raw=False):
        self.shown.append(content if raw else (repr(content), content._repr_html_()))


@pytest.fixture
def kernel(monkeypatch):
    """A Jupyter kernel, as far as a bar needs it; what was shown."""
    shown = []

    def display(content, *, display_id):
        assert display_id is True
        handle = Handle(shown)
        handle.update(content)
        return handle

    python, displays = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    python.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    displays.display = display
    monkeypatch.setitem(sys.modules, "IPython", python)
    monkeypatch.setitem(sys.modules, "IPython.display", displays)
    monkeypatch.setattr(progressing, "EVERY", 0.0)
    return shown


def test_in_a_notebook_a_bar_is_shown_and_taken_away(kernel, capfd):
    with progress("fitting", 4, show=True) as advance:
        advance(1, "a < b")
    first, then, last = kernel
    assert first[0] == "  0% fitting"
    assert then[0] == " 25% fitting a < b"
    assert "a &lt; b" in then[1]
    assert 'value="0.250"' in then[1]
    assert last == {"text/plain": ""}
    assert capfd.readouterr() == ("", "")
