"""The program around the commands: its help, and how commands fail."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from typer.main import get_command

import openloop as ol
from openloop.cli import app
from openloop.commands.demo import estimates as demonstration
from openloop.support.clock import VARIABLE
from tests.cli.running import interrupted, run
from tests.facts import facts


def test_version_and_help():
    assert run("--version").stdout == f"openloop {ol.__version__}\n"
    assert [
        word
        for word in ("demo", "propensity", "train", "select", "predict", "datasets", "doctor", "--version")
        if word not in run("--help").stdout
    ] == []


def test_help_loads_nothing_heavy():
    program = "import sys, openloop.cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    heavy = {"numpy", "scipy", "polars", "narwhals", "numba", "sklearn", "altair", "rich"}
    assert heavy & set(done.stdout.split()) == set()


@pytest.mark.parametrize("more", [(), ("--position", "pos")])
def test_an_audit_says_that_it_begins_before_anything_heavy_is_loaded(tmp_path, more):
    """What `openloop audit` has imported when its first line is written; the files need not be there by then."""
    program = """if True:
        import io, os, sys
        class Stderr(io.StringIO):
            def write(self, text):
                if not text:  # whoever asks whether it takes bytes
                    return super().write(text)
                print(text.strip(), *sys.modules, sep="\\n", flush=True)
                os._exit(0)
        sys.stderr = Stderr()
        from openloop.cli import main
        main()
    """
    words = ("audit", tmp_path / "log.csv", f"a={tmp_path / 'a.csv'}", f"b={tmp_path / 'b.csv'}", *more)
    command = [sys.executable, "-c", program, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    line, *modules = done.stdout.splitlines()
    assert re.search(facts("reading", "log.csv", "a and b"), line)
    assert {"sklearn", "scipy.stats", "scipy.optimize", "pandas", "altair", "torch", "rich"} & set(modules) == set()


def test_openloops_errors_are_one_line_with_exit_code_2():
    result = run("demo", "--users", "3")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert re.fullmatch(facts("openloop", "demonstrate", "users", 10, 3) + r"[^\n]+\n", result.stderr)


WRONG = {
    ("demo", "--users", "many"): ("--users", "whole number", "'many'"),
    ("demo", "--sed", "1"): ("--sed", "--seed"),
    ("dmeo",): ("dmeo", "demo"),
    ("demo", "--json", "no-such-folder/x.json"): ("--json", "no-such-folder", "exist"),
    ("demo", "--json", "."): ("--json", "file"),
}


@pytest.mark.parametrize(("words", "told"), WRONG.items(), ids=map(" ".join, WRONG))
def test_bad_options_say_what_and_how(words, told):
    result = run(*words, COLUMNS="200")
    assert result.exit_code == 2
    assert re.search(facts(*told), result.stderr)
    assert "Traceback" not in result.stderr


def test_interruption_exits_with_130_and_no_traceback(monkeypatch):
    monkeypatch.setattr(demonstration, "demonstrate", interrupted)
    result = run("demo")
    assert result.exit_code == 130
    assert "Traceback" not in result.output


def test_a_time_that_is_none_is_one_line():
    result = run("doctor", SOURCE_DATE_EPOCH="soon")
    assert result.exit_code == 2
    assert re.fullmatch(facts("openloop", "SOURCE_DATE_EPOCH", "'soon'", "1970") + r"[^\n]+\n", result.stderr)


@pytest.mark.parametrize(("given", "found"), [("", None), ("1700000000", "1700000000"), (None, None)])
def test_an_empty_date_is_none_for_every_package(monkeypatch, given, found):
    seen = []
    monkeypatch.setattr(demonstration, "demonstrate", lambda *_args, **_more: seen.append(os.environ.get(VARIABLE)))
    run("demo", **{VARIABLE: given})
    assert seen == [found]


@pytest.mark.parametrize("columns", ["9" * 30, "99999999", "x" * 99, "", "0", "-5", "1"])
def test_any_width_of_a_terminal_is_taken(columns):
    for words in (["--help"], ["datasets", "list"]):
        found = run(*words, COLUMNS=columns)
        assert found.exit_code == 0, found.output[-500:]
        assert len(found.stdout) < 10**6


@pytest.mark.parametrize("command", sorted(get_command(app).commands))
def test_help_is_whole_on_80_columns(command):
    lines = run(command, "--help").stdout.splitlines()
    assert len(lines) > 10
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if re.search(r"\w…", line)] == []  # a word that was cut
