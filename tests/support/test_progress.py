"""A bar on a terminal, and not a byte where there is none."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import types

import pytest

import openloop as ol
from openloop.errors import InputError
from openloop.support import progress as progressing
from openloop.support.progress import progress
from tests.facts import facts


def test_whether_to_show_a_bar_is_yes_or_no():
    with pytest.raises(InputError, match=facts("Some", "progress", "'yes'")), progress("Some", 1, show="yes"):
        pass


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


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_on_a_terminal_a_bar_says_what_is_done():
    shown = on_a_terminal("with progress('fitting', 2, show=True) as advance: advance(1, 'objective 0.5')")
    assert "fitting objective 0.5" in shown


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_an_error_passes_through_the_bar():
    shown = on_a_terminal(
        "try:\n with progress('fitting', 2, show=True) as advance: raise KeyError('x')\n"
        "except KeyError: print('passed', file=sys.stderr)"
    )
    assert "passed" in shown


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


def test_a_bar_in_a_notebook_is_taken_away_after_an_error(kernel):
    with pytest.raises(KeyError), progress("fitting", 4, show=True):
        raise KeyError("x")
    assert kernel[-1] == {"text/plain": ""}


def test_a_notebook_shows_nothing_that_was_not_asked_for(kernel):
    with progress("fitting", 4, show=False) as advance:
        advance(1, "")
    assert kernel == []


def test_an_audit_shows_its_steps_and_tells_them(kernel):
    world = ol.simulate.schnabel_world(users=60, items=40, rank=3, rng=0)
    models, told = {"a": world.ratings, "b": world.ratings + 0.5}, []
    log = world.observe(rng=1)
    ol.audit(models, log, metrics=["mae"], progress=True, step=lambda what, _done: told.append(what))
    assert any("audit estimating" in text for text, _ in kernel[:-1])
    assert "estimating" in told
    kernel.clear()
    ol.audit(models, log, metrics=["mae"])
    assert kernel == []
    with pytest.raises(InputError, match=facts("audit", "progress", "'yes'")):
        ol.audit(models, log, metrics=["mae"], progress="yes")


def on_a_terminal(body: str) -> str:
    """What the program writes to stderr, which is a terminal."""
    import pty

    program = f"import sys\nfrom openloop.support.progress import progress\n{body}\n"
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "80"}
    run = subprocess.Popen([sys.executable, "-c", program], stderr=theirs, env=environment)
    os.close(theirs)
    seen = bytearray()
    with contextlib.suppress(OSError):  # a terminal that was left gives an error
        while data := os.read(ours, 1024):
            seen.extend(data)
    os.close(ours)
    assert run.wait() == 0, seen.decode()
    return seen.decode()
