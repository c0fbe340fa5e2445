"""Columns of impressions: their types and lengths, rows in order, and one value for each request."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.core.vocabulary import Array, Int64s, Vocabulary
from openloop.errors import AlignmentError, EmptyError, InputError
from openloop.support.wording import rows_at

PER_ROW = ("request", "position", "item", "reward", "propensity", "exposure", "prefix", "arms", "time", "row")
PER_REQUEST = ("user", "slate", "shuffled", "pool")
INTEGERS = ("request", "position", "item", "user", "pool", "arms")
TYPES: Mapping[str, Any] = {
    **dict.fromkeys(INTEGERS, np.int32),
    **dict.fromkeys(("reward", "propensity", "exposure", "prefix", "slate"), np.float64),
    "shuffled": np.bool_,
}


def rows_in_order(request: Array, position: Array) -> Int64s | None:
    """The rows sorted by (request, position), None where they are; rows at one place stay in their order."""
    key = request.astype(np.int64) * (int(position.max()) + 1) + position
    if bool(np.all(key[:-1] <= key[1:])):
        return None
    bits = len(key).bit_length()
    if int(key.min()) < 0 or int(key.max()).bit_length() + bits > 63:
        return np.lexsort((position, request))
    # Place and row in one integer: sorting values is several times as fast as sorting positions.
    key <<= bits
    key |= np.arange(len(key))
    key.sort()
    key &= (1 << bits) - 1
    return key


def typed(name: str, values: npt.ArrayLike, size: int) -> Array:
    """The column as an array of its type, with so many values; codes and ranks must be integers."""
    array = np.asarray(values)
    if len(array) != size:
        msg = f"Impressions: {name} has {len(array):,} values where there must be {size:,}."
        raise AlignmentError(msg)
    if name in INTEGERS and array.dtype.kind not in "iu":
        msg = f"Impressions: {name} must be whole numbers, got {array.dtype}; ol.read makes codes of ids."
        raise InputError(msg)
    if name in INTEGERS and array.dtype.itemsize > 4 and array.size and int(array.max()) >= 2**31:
        msg = f"Impressions: {name} must be below {2**31:,}, got {array.max()}; ol.read makes codes of ids."
        raise InputError(msg)
    return array.astype(TYPES.get(name, array.dtype), copy=False)


def columns_of(values: Mapping[str, Any], rows: int) -> dict[str, Array]:
    """The columns that have a value per row, as arrays of their types."""
    if rows == 0:
        raise EmptyError("Impressions: no rows; a value needs at least one item that was shown.")
    present = (name for name in (*PER_ROW, *PER_REQUEST) if values.get(name) is not None)
    return {name: typed(name, values[name], rows) for name in present}


def by_request(fields: Mapping[str, Array]) -> dict[str, Array]:
    """The value of each request, (N,), which its rows must share."""
    request = fields["request"]
    first = np.flatnonzero(np.diff(request, prepend=-1))
    if (int(request[0]), int(request[-1])) != (0, len(first) - 1):
        raise InputError(
            f"Impressions: request codes must be 0 … N-1, each with rows; {len(first):,} of them lie in "
            f"{request[0]} … {request[-1]}; ol.read makes codes of ids."
        )
    present = [name for name in PER_REQUEST if name in fields]
    for name in present:
        values = fields[name]
        differing = np.flatnonzero((values[1:] != values[:-1]) & (request[1:] == request[:-1]))
        if len(differing):
            pair = [int(differing[0]), int(differing[0]) + 1]
            rows = fields["row"][pair] if "row" in fields else pair
            raise InputError(
                f"Impressions: {len(differing):,} times two rows of one request differ in {name}, first "
                f"{rows_at(list(rows))}: {values[pair[0]]} and {values[pair[1]]}; a request has one {name}."
            )
    return {name: fields[name][first] for name in present}


def vocabulary_of(ids: Vocabulary | int | None, codes: Array) -> Vocabulary:
    """A vocabulary as it is, or one of integers: of that number, or of as many as the codes need."""
    if isinstance(ids, Vocabulary):
        return ids
    return Vocabulary.range(int(codes.max()) + 1 if ids is None else int(ids))


def fingerprint_of(requests: int, clusters: int, items: int, digest: int) -> str:
    """The fingerprint of a log with these numbers and this digest of its rows."""
    text = f"{requests},{clusters},{items},{digest}"
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def rows_digest(*columns: Array) -> int:
    """A number that depends on the rows and not on their order: those of parts add up to that of all, modulo 2⁶⁴."""
    digest = np.zeros(len(columns[0]), np.uint64)
    for values in columns:
        bits = values.view(np.uint64) if values.dtype == np.float64 else values.astype(np.uint64)
        digest = _mixed(digest ^ bits)
    return int(digest.sum())


def _mixed(bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """splitmix64: a step, and its finaliser."""
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
