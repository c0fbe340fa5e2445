"""Numbers of fields in delimited text: the first record that has too few or too many, byte by byte.

This module knows nothing about files: text comes in blocks of whole lines, and a `Place` links one to the next.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from openloop.kernels.compiling import njit

Bytes = npt.NDArray[np.uint8]

NEWLINE, RETURN, QUOTE = (ord(c) for c in '\n\r"')
NO_QUOTE = -1


class Place(NamedTuple):
    """Where a block ends: its line, the first line and the fields of the record there, and whether a quote is open."""

    line: int = 1
    first: int = 1
    fields: int = 1
    quoted: bool = False


@njit(cache=True, nogil=True)
def find_ragged(block: Bytes, separator: int, quote: int, fields: int, place: Place) -> tuple[bool, Place]:
    """Whether a record has another number of fields, and its place; else the place at the end of the block.

    A field that begins with a quote ends at the first separator after an even number of quotes, as RFC 4180 has it.
    Blank lines are no records.
    """
    line, first, found, inside = place
    quotes = inside  # of this field
    field = record = -1 if inside else 0  # where this field and this record begin, -1 in an earlier block
    for at in range(len(block)):
        byte = block[at]
        if inside:
            line += byte == NEWLINE
            inside = byte != quote
        elif byte == separator:
            found += 1
            field, quotes = at + 1, False
        elif byte == NEWLINE:
            blank = at == record or (at == record + 1 and block[record] == RETURN)
            if found != fields and not blank:
                return True, Place(line, first, found, inside)
            line += 1
            first, found = line, 1
            field, record, quotes = at + 1, at + 1, False
        elif byte == quote and (quotes or at == field):
            inside = quotes = True
    return False, Place(line, first, found, inside)
