"""Every error is drawn in the tree, and messages help."""

from __future__ import annotations

import inspect
from pathlib import PurePosixPath

import pytest

from openloop import errors
from openloop.errors import did_you_mean, listing, quoted

CLASSES = {name: kind for name, kind in vars(errors).items() if inspect.isclass(kind) and issubclass(kind, Exception)}


def test_whatever_is_handed_in_wrongly_is_both_an_openloop_error_and_a_value_error():
    for kind in CLASSES.values():
        if issubclass(kind, errors.InputError | errors.UndefinedError):
            assert issubclass(kind, errors.OpenloopError)
            assert issubclass(kind, ValueError)
    assert issubclass(errors.MissingPackageError, ImportError)
    assert not issubclass(errors.UndefinedError, errors.InputError)


def test_a_misspelt_name_gets_its_neighbour_in_its_own_case():
    assert did_you_mean("RATNG", ["Rating", "user"]) == " Did you mean 'Rating'?"


@pytest.mark.parametrize(
    ("values", "text"), [([1, 2], "1, 2"), (["a"], "'a'"), ([1, 2, 3, 4, 5, 6], "1, 2, 3, 4, 5, … (6 in all)")]
)
def test_long_lists_are_cut_and_counted(values, text):
    assert listing(values) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", "'a'"),
        (4.5, "4.5"),
        (None, "None"),
        ("x\x1b[2Jy\r\n\0", r"'x\x1b[2Jy\r\n\x00'"),
        ("\ud800", r"'\ud800'"),  # half of a pair, which no terminal can be sent
        (PurePosixPath("a\nb"), r"a\nb"),
        ("é" * 200, "'" + "é" * 200 + "'"),
        ("é" * 201, "'" + "é" * 200 + "'…"),
        (10**300, "1" + "0" * 199 + "…"),
    ],
)
def test_a_value_is_shown_without_what_a_terminal_would_obey_and_cut(value, text):
    assert quoted(value) == text
