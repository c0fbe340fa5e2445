from __future__ import annotations

import pytest

from openloop.errors import InputError
from openloop.learners.blocks.sizes import bytes_of, physical, piece_count, told
from tests.facts import facts


@pytest.mark.parametrize(
    ("written", "size"),
    [(5, 5), ("5", 5), ("1g", 2**30), ("4 GiB", 4 * 2**30), ("512MB", 512 * 2**20), ("1.5 k", 1536), ("2T", 2**41)],
)
def test_sizes_as_they_are_written(written, size):
    assert bytes_of("memory", written) == size


@pytest.mark.parametrize("written", [0, -1, True, 1.5, None, "", "much", "4 GiB more", "0g"])
def test_sizes_that_are_none(written):
    with pytest.raises(InputError, match=facts("memory", repr(written))):
        bytes_of("memory", written)


def test_sizes_as_they_are_told():
    assert (told(1.5 * 2**30), told(3 * 2**20)) == ("1.5 GiB", "3 MiB")
    assert physical() > 2**28


def test_sums_are_cut_into_pieces_where_they_are_too_large_for_the_driver():
    assert piece_count(items=1000, whole=512, on_driver=512, at_once=100) == 1
    assert piece_count(items=1000, whole=513, on_driver=512, at_once=100) == 6
    assert piece_count(items=3, whole=513, on_driver=512, at_once=100) == 3  # a piece has an item
