"""The program around the commands: its help, and how commands fail."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from typer.main import get_command

import openloop as ol
from openloop.cli import app
from tests.cli.running import run
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


def test_a_time_that_is_none_is_one_line():
    result = run("doctor", SOURCE_DATE_EPOCH="soon")
    assert result.exit_code == 2
    assert re.fullmatch(facts("openloop", "SOURCE_DATE_EPOCH", "'soon'", "1970") + r"[^\n]+\n", result.stderr)


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
