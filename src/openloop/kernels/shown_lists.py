"""Lists of items beside lists of items: ranks, common prefixes, orders, and sums by cluster and position.

Rows are sorted by request and position. A rank is from 1, and 0 where a list does not have the item. Each function has
a plain twin, which is its definition.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.kernels.compiling import fixed, njit

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]


def ranks_in_lists(lists: Ints, key: Array, request: Ints, item: Ints) -> Ints:
    """The place of each row's item in the list lists[key[request]] (L,), from 1; 0 where it is not in it."""
    found = np.zeros(len(item), np.int32)
    lists, key, request, item = fixed(lists, key, request, item)
    _find(lists, key, request, item, found)
    return found


@njit(cache=True, nogil=True)
def _find(lists: Ints, key: Array, request: Ints, item: Ints, found: Ints) -> None:
    for row in range(len(item)):
        own = lists[key[request[row]]]
        for j in range(len(own)):
            if own[j] == item[row]:
                found[row] = j + 1
                break


def ranks_in_lists_plain(lists: Ints, key: Array, request: Ints, item: Ints) -> Ints:
    """As `ranks_in_lists`."""
    equal = lists[key[request]] == item[:, None]  # (n, L)
    return np.where(equal.any(axis=1), equal.argmax(axis=1) + 1, 0).astype(np.int32)


def prefix_hits(hit: Array, request: Ints) -> Array:
    """Whether a row and all rows above it in its request hit."""
    found = np.empty(len(hit), np.bool_)
    hit, request = fixed(hit, request)
    _walk_down(hit, request, found)
    return found


@njit(cache=True, nogil=True)
def _walk_down(hit: Array, request: Ints, found: Array) -> None:
    for row in range(len(hit)):
        above = row == 0 or request[row] != request[row - 1] or found[row - 1]
        found[row] = above and hit[row]


def prefix_hits_plain(hit: Array, request: Ints) -> Array:
    """As `prefix_hits`."""
    misses = np.cumsum(~hit)
    first = np.flatnonzero(np.diff(request, prepend=-1))
    before = np.where(first > 0, misses[first - 1], 0)  # misses in earlier requests
    return misses == np.repeat(before, np.diff(np.append(first, len(hit))))


def reordered(keys: Floats, request: Ints, position: Ints) -> Ints:
    """The position that each row takes when the rows of each request are ordered by rising key, equal ones as shown."""
    found = np.empty(len(keys), np.int32)
    keys, request, position = fixed(keys, request, position)
    _place(keys, request, position, found, np.empty(int(np.bincount(request).max(initial=0)), np.int64))
    return found


@njit(cache=True, nogil=True)
def _place(keys: Floats, request: Ints, position: Ints, found: Ints, order: Array) -> None:
    start = 0
    while start < len(keys):
        size = 0
        while start + size < len(keys) and request[start + size] == request[start]:
            at = size
            while at > 0 and keys[order[at - 1]] > keys[start + size]:
                order[at] = order[at - 1]
                at -= 1
            order[at] = start + size
            size += 1
        for j in range(size):
            found[order[j]] = position[start + j]
        start += size


def reordered_plain(keys: Floats, request: Ints, position: Ints) -> Ints:
    """As `reordered`: sorted by request, both orders meet place by place."""
    found = np.empty(len(keys), np.int32)
    found[np.lexsort((keys, request))] = position
    return found


def weighted_sums(
    w: Floats, gain: Floats, group: Ints, request: Ints, position: Ints, shape: tuple[int, int]
) -> tuple[Floats, Floats]:
    """Σw and Σw·gain by cluster and position, each (U, K); `group` is the cluster of each request."""
    weight, wgain = np.zeros(shape), np.zeros(shape)
    w, gain, group, request, position = fixed(w, gain, group, request, position)
    _add(w, gain, group, request, position, weight, wgain)
    return weight, wgain


@njit(cache=True, nogil=True)
def _add(w: Floats, gain: Floats, group: Ints, request: Ints, position: Ints, weight: Floats, wgain: Floats) -> None:
    for row in range(len(w)):
        if w[row] != 0:
            u, k = group[request[row]], position[row] - 1
            weight[u, k] += w[row]
            wgain[u, k] += w[row] * gain[row]


def weighted_sums_plain(
    w: Floats, gain: Floats, group: Ints, request: Ints, position: Ints, shape: tuple[int, int]
) -> tuple[Floats, Floats]:
    """As `weighted_sums`."""
    place = group[request].astype(np.int64) * shape[1] + position - 1
    size = shape[0] * shape[1]
    return totals(place, w, size).reshape(shape), totals(place, w * gain, size).reshape(shape)


def totals(place: Array, values: Array, size: int) -> Floats:
    """Σ of the values at each place 0 … size − 1."""
    return np.asarray(np.bincount(place, values, minlength=size), np.float64)


def place_facts(w: Floats, reward: Floats, place: Ints, size: int) -> tuple[Floats, Floats, Floats, Floats]:
    """At each place 0 … size − 1: rows with a weight, Σw², Σw·reward and Σ(w·reward)²; (size,) each."""
    matches, squares, clicks, click_squares = (np.zeros(size) for _ in range(4))
    w, reward, place = fixed(w, reward, place)
    _count(w, reward, place, matches, squares, clicks, click_squares)
    return matches, squares, clicks, click_squares


@njit(cache=True, nogil=True)
def _count(
    w: Floats, reward: Floats, place: Ints, matches: Floats, squares: Floats, clicks: Floats, click_squares: Floats
) -> None:
    for row in range(len(w)):
        if w[row] != 0:
            gain = w[row] * reward[row]
            matches[place[row]] += 1
            squares[place[row]] += w[row] * w[row]
            clicks[place[row]] += gain
            click_squares[place[row]] += gain * gain


def place_facts_plain(w: Floats, reward: Floats, place: Ints, size: int) -> tuple[Floats, Floats, Floats, Floats]:
    """As `place_facts`."""
    gain = w * reward
    matches, squares, clicks, click_squares = (totals(place, x, size) for x in (w != 0, w * w, gain, gain * gain))
    return matches, squares, clicks, click_squares
