"""Values of options, and what reaches the terminal."""

from __future__ import annotations

import io
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import typer

from openloop.cli.options import (
    console,
    files,
    listed,
    mark,
    name_or_number,
    number,
    picture,
    progress,
    request,
    several,
    whole,
    writable,
)
from tests.facts import facts


def test_a_column_is_a_name_or_a_position():
    assert [name_or_number(text) for text in ("uid", "3", None, "-1", "2.0")] == ["uid", 3, None, "-1", "2.0"]


def test_numbers_are_written_in_digits():
    assert whole("-3") == -3
    assert number("1e-3") == 0.001
    with pytest.raises(typer.BadParameter, match=facts("whole number", "'2.5'")):
        whole("2.5")
    with pytest.raises(typer.BadParameter, match=facts("number", "'many'")):
        number("many")


def test_lists_have_commas_between_their_values():
    assert listed(whole)("10, 20,-3") == (10, 20, -3)
    assert listed(number)("1") == (1.0,)
    assert listed(number)(None) == ()
    with pytest.raises(typer.BadParameter, match=facts("number", "''")):
        listed(number)("1,,2")


def test_outputs_are_checked_before_the_work(tmp_path):
    assert [writable(given) for given in (None, "-", str(tmp_path / "x"))] == [None, "-", str(tmp_path / "x")]
    with pytest.raises(typer.BadParameter, match=facts(tmp_path / "none", "exist")):
        writable(str(tmp_path / "none" / "x"))
    with pytest.raises(typer.BadParameter, match=facts("file")):
        writable(str(tmp_path))
    with pytest.raises(typer.BadParameter, match=facts(".html", ".svg", ".png")):
        picture(str(tmp_path / "x.pdf"))


def test_files_are_neither_nothing_nor_stdout():
    assert files(None, "-", "a.json", "b.svg") == ["a.json", "b.svg"]


def test_prose_is_at_most_a_hundred_wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    assert console().width == 100


def test_there_is_no_bar_without_a_terminal(capsys):
    with progress() as step:
        step("reading", 0.5)
    assert capsys.readouterr().err == ""


def test_a_bar_says_what_is_done(monkeypatch):
    stream = io.StringIO()
    stream.isatty = lambda: True
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", stream)
    with progress() as step:
        step("reading the log", 0.5)
    assert "reading the log" in stream.getvalue()


def test_marks_stand_between_words():
    assert mark(good=True, before="1 ", after=" right").plain == "1 ✓ right"
    assert mark(good=False).plain == "✗"


@dataclass
class Asked:
    log: str
    seed: int = 0
    parameters: tuple = ()


def test_a_request_takes_the_parameters_that_it_has():
    context = SimpleNamespace(params={"log": "log.csv", "seed": 3, "json": "-"})
    assert request(Asked, context, parameters=(1,)) == Asked("log.csv", 3, (1,))


def test_a_repeatable_option_has_all_its_values_or_none():
    assert several(["mae", "mse"]) == ("mae", "mse")
    assert several(None) == several([]) == ()
