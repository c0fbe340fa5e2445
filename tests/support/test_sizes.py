"""Sizes of memory: given, and written."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from openloop.errors import InputError
from openloop.support.sizes import bytes_of, driver_limit, written
from tests.facts import facts


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (5, 5),
        ("5", 5),
        ("1g", 2**30),
        ("4 GiB", 4 * 2**30),
        ("512MB", 512 * 2**20),
        ("1.5 k", 1536),
        ("2T", 2**41),
        ("1p", 2**50),
    ],
)
def test_sizes_as_they_are_given(text, size):
    assert bytes_of("memory", text) == size


@pytest.mark.parametrize("given", [0, -1, True, 1.5, None, "", "much", "4 GiB more", "0g"])
def test_sizes_that_are_none(given):
    with pytest.raises(InputError, match=facts("memory", repr(given))):
        bytes_of("memory", given)


def test_sizes_as_they_are_shown():
    assert (written(1.5 * 2**30), written(3 * 2**20), written(1024)) == ("1.5 GiB", "3 MiB", "1 KiB")


@pytest.mark.parametrize(
    ("given", "limit"), [("1g", 2**30), ("0", None), ("0b", None), ("0g", None), ("20g", 20 * 2**30)]
)
def test_a_limit_of_0_is_none(given, limit):
    assert driver_limit(SimpleNamespace(conf={"spark.driver.maxResultSize": given})) == limit
