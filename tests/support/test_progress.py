"""A bar on a terminal, and not a byte where there is none."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

import pytest

from openloop.errors import InputError
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
