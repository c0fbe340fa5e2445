"""Buckets of ids by a hash of their values, and rows sorted by bucket: the same on every machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.kernels.bootstrap import mix
from openloop.kernels.compiling import njit

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]

FNV_START, FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
TOP_BYTE = np.uint64(56)
MINUS, ZERO, NINE = np.uint8(ord("-")), np.uint8(ord("0")), np.uint8(ord("9"))
LONGEST_INTEGER = 20  # bytes of -9223372036854775808
TENTH, LAST_DIGIT = np.uint64(2**63 // 10), np.uint64(2**63 % 10)

compiled = njit(nogil=True, cache=True)
_mix = compiled(mix)


@compiled
def buckets_of_integers(ids: Int64s) -> Bytes:
    """One of 256 buckets for each integer: the top byte of its mixed bits."""
    buckets = np.empty(len(ids), np.uint8)
    for row in range(len(ids)):
        buckets[row] = _mix(np.uint64(ids[row])) >> TOP_BYTE
    return buckets


@compiled
def buckets_of_text(data: Bytes, offsets: Int64s) -> Bytes:
    """The same for the texts data[offsets[row] : offsets[row + 1]]; what Python writes for an integer is that integer.

    Other text is hashed by FNV-1a: h ← (h xor byte) · prime.
    """
    buckets = np.empty(len(offsets) - 1, np.uint8)
    for row in range(len(buckets)):
        first, last = offsets[row], offsets[row + 1]
        is_integer, value = _integer(data, first, last)
        if not is_integer:
            value = FNV_START
            for place in range(first, last):
                value = (value ^ np.uint64(data[place])) * FNV_PRIME
        buckets[row] = _mix(value) >> TOP_BYTE
    return buckets


@compiled
def _integer(data: Bytes, first: int, last: int) -> tuple[Any, np.uint64]:
    """Whether a text is an integer of 64 bits as Python writes it, and its bits in two's complement."""
    value = np.uint64(0)
    if first == last or last - first > LONGEST_INTEGER:
        return False, value
    is_negative = data[first] == MINUS
    digits = first + 1 if is_negative else first
    if digits == last or (data[digits] == ZERO and (is_negative or last - digits > 1)):
        return False, value
    for place in range(digits, last):
        if data[place] < ZERO or data[place] > NINE:
            return False, value
        digit = np.uint64(data[place] - ZERO)
        if value > TENTH or (value == TENTH and digit > LAST_DIGIT):
            return False, value
        value = value * np.uint64(10) + digit
    if is_negative:
        return True, ~value + np.uint64(1)
    return value < np.uint64(2**63), value


@compiled
def sort_by_bucket(buckets: Bytes, n_buckets: int) -> tuple[npt.NDArray[np.uint32], Int64s]:
    """Rows sorted by bucket, those of one in their order, and where each bucket begins: starts[n_buckets] = n."""
    starts = np.zeros(n_buckets + 1, np.int64)
    for bucket in buckets:
        starts[np.int64(bucket) + 1] += 1
    starts = np.cumsum(starts)
    order, place = np.empty(len(buckets), np.uint32), starts.copy()
    for row in range(len(buckets)):
        order[place[buckets[row]]] = row
        place[buckets[row]] += 1
    return order, starts
