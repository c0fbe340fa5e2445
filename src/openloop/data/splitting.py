"""`split` and `folds`: a log into parts that know the probability with which a row landed in each.

A cell that the log observes with probability p is observed by a part with p · share. A share is the realised
probability (m of n), not the one asked for. Parts keep the vocabularies, so the population stays the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from datetime import date
from typing import Any, Literal

import numpy as np

from openloop.core.feedback import Feedback, Floats, fingerprint_of
from openloop.data.cutting import Test, count_of, cut, cut_note
from openloop.data.events import Events, Mask
from openloop.data.reading import ReadRequest
from openloop.data.scan_splitting import split_scan
from openloop.data.scanning import Log
from openloop.errors import ColumnError, EmptyError, InputError, did_you_mean, listing, quoted
from openloop.support.arguments import generator, is_whole

By = Literal["row", "user", "leave-k-out", "time"]
Repeats = Literal["drop", "keep"]
Parts = tuple[Feedback, Feedback]


def split(
    log: Any,
    test: Test = 0.2,
    *,
    by: By | None = None,
    k: int | None = None,
    rng: int | np.random.Generator | None = None,
    repeats: Repeats = "drop",
    **columns: Any,
) -> Any:
    """Split a log into train and test.

    `by` says how:

    - `"row"`: `test` of the rows, at random. Shares are m/n and 1 - m/n.
    - `"user"`: all rows of `test` of the users that have rows. Shares are m/n and 1 - m/n of users.
    - `"leave-k-out"`: `k` random rows of each user that has more than k. Shares are k/n_u and 1 - k/n_u, and 1 for
      users that stay in train whole.
    - `"time"`: the latest `test` of the rows, or those from a date on. Rows as late as the latest train row stay in
      train, so no time is on both sides and test may be smaller than asked for. No chance is involved, so shares are
      None.

    A path or dataframe is split by time row by row, and a pair that a part has more than once is merged there by
    `duplicates`.

    Args:
        log: A Feedback, a scanned log, or a path or dataframe, which is read with `columns`. Parts of a scanned log are
            logs that are scanned, too.
        test: A fraction below 1, a whole number or, by time, a date such as "2024-03-01". Ignored by "leave-k-out".
        by: The way to split; "time" where `time=` is among the columns, else "row".
        k: The number of rows to hold out of each user, for "leave-k-out".
        rng: A seed or a Generator.
        repeats: What happens, by time, to pairs of test that train has, too: "drop" them, since test should score new
            pairs, or "keep" them.
        **columns: Keywords of `ol.read`, where `log` is a path or dataframe.

    Returns:
        Train and test. Both keep the vocabularies, so the population stays the same; `.share` is the probability with
            which a row landed in its part, and `.notes` have the cut and the counts.

    Raises:
        EmptyError: A part would have no row.
        InputError: An option is unknown or does not fit the others.

    Examples:
        >>> log = ol.simulate.movie_lovers().observe(0)
        >>> train, test = ol.split(log, test=0.2, rng=0)
        >>> len(train), len(test)
        (1749, 437)
        >>> round(float(test.share[0]), 3)
        0.2
    """
    by = by or ("time" if "time" in columns else "row")
    _refuse_options(by, k, repeats)
    if isinstance(log, Log):
        _refuse_reading(columns)
        return split_scan(log, test, by, rng)
    if isinstance(log, Feedback):
        _refuse_reading(columns)
    elif by == "time":
        return _split_events(log, test, repeats, _request(columns))
    else:
        request = _request(columns)
        log = request.events(log).merged(request.duplicates)
    if by == "time":
        return _parts(log, _latest(log, test), None, by)
    if isinstance(test, str | date):
        raise InputError(f"test={quoted(str(test))}: a date divides a log by time; pass by='time', or a fraction.")
    held, chance = _SPLITS[by](log, test if k is None else k, generator("split", rng))
    return _parts(log, held, chance, by)


def folds(feedback: Feedback, k: int, rng: int | np.random.Generator | None = None) -> Iterator[Parts]:
    """Split a log into k pairs of train and validation, so that each row is in one validation part.

    Args:
        feedback: The log.
        k: The number of folds, at least 2.
        rng: A seed or a Generator.

    Returns:
        An iterator over the pairs. Their shares are the realised ones, near (k-1)/k and 1/k.

    Raises:
        InputError: k is not a whole number between 2 and the number of rows.

    Examples:
        >>> log = ol.simulate.movie_lovers().observe(0)
        >>> [len(validation) for train, validation in ol.folds(log, 4, rng=0)]
        [547, 547, 546, 546]
    """
    n = len(feedback)
    if not (is_whole(k) and 2 <= k <= n):
        raise InputError(f"k={k}: the number of folds must be a whole number in 2 … {n:,}, the rows of the log.")
    fold = generator("folds", rng).permutation(np.arange(n) % k)
    return (_parts(feedback, fold == f, np.mean(fold == f), "row") for f in range(k))


# Each way returns the held-out rows, and each row's probability of being one.


def _by_row(feedback: Feedback, test: float, rng: np.random.Generator) -> tuple[Mask, Any]:
    n = len(feedback)
    m = count_of(test, n, "rows")
    held = np.zeros(n, bool)
    held[rng.choice(n, m, replace=False, shuffle=False)] = True
    return held, m / n


def _by_user(feedback: Feedback, test: float, rng: np.random.Generator) -> tuple[Mask, Any]:
    present = np.unique(feedback.user)
    m = count_of(test, len(present), "users")
    chosen = np.zeros(feedback.n_users, bool)
    chosen[rng.choice(present, m, replace=False, shuffle=False)] = True
    return chosen[feedback.user], m / len(present)


def _leave_k_out(feedback: Feedback, k: float, rng: np.random.Generator) -> tuple[Mask, Any]:
    if not (is_whole(k) and k >= 1):
        raise InputError(f"k={k}: the rows to hold out of each user must be a whole number from 1.")
    ptr = feedback.user_ptr
    rows = np.diff(ptr)[feedback.user]  # n_u of each row's user
    shuffled = np.lexsort((rng.random(len(feedback)), feedback.user))
    rank = np.empty(len(feedback), np.int64)
    rank[shuffled] = np.arange(len(feedback)) - ptr[feedback.user]
    chance = np.where(rows > k, k / rows, 0.0)
    return (rank < k) & (rows > k), chance


_SPLITS = {"row": _by_row, "user": _by_user, "leave-k-out": _leave_k_out}


def _latest(feedback: Feedback, test: Test) -> Mask:
    if feedback.time is None:
        raise ColumnError("split: by='time' needs the time column; read the log with time= and its name.")
    return cut(feedback.time, test)


def _parts(feedback: Feedback, held: Mask, chance: Any, by: By) -> Parts:
    origin = feedback.origin or feedback.fingerprint
    parts: list[Feedback] = []
    notes = feedback.notes
    if by == "time" and feedback.time is not None:
        notes = (*notes, cut_note(feedback.time, held))
    for name, keep, share in (("train", ~held, None if chance is None else 1 - chance), ("test", held, chance)):
        if not keep.any():
            raise EmptyError(f"split: no row is left for {name}; change test= or k=, or split by something else.")
        known = {"origin": origin, "split": (*feedback.split, by), "item_rows": feedback.rows_of_items,
                 "notes": notes}  # fmt: skip
        parts.append(feedback.take(keep, share=_share(feedback, keep, share), **known))
    return parts[0], parts[1]


def _share(feedback: Feedback, keep: Mask, chance: Any) -> Floats | None:
    if chance is None or feedback.share is None:
        return None
    return (feedback.share * chance)[keep]


# -- rows, before repeats are merged -------------------------------------------------------------------------


def _split_events(source: Any, test: Test, repeats: Repeats, request: ReadRequest) -> Parts:
    """Rows before and from a cut, each part merged by itself; test without what train has, or with it."""
    rows = request.events(source)
    time = rows.columns.get("time")
    if time is None:
        raise ColumnError(f"{rows.name}: by='time' needs the column of times; name it with time=.")
    counting = rows.counting
    late = np.zeros(len(rows), bool)
    late[counting] = cut(time[counting], test)
    note = cut_note(time[counting], late[counting])
    train, held = (_part(rows, name, among, request) for name, among in (("train", counting & ~late), ("test", late)))
    new = ~_in(held, train)
    known = _of_one_log(train, held.take(new) if new.any() else None)
    train, held = (replace(part, notes=(*part.notes, note), **known) for part in (train, held))
    return train, _without_repeats(held, new, repeats)


def _part(rows: Events, name: str, among: Mask, request: ReadRequest) -> Feedback:
    if not among.any():
        raise EmptyError(f"split: no row is left for {name}; change test=, or split by something else.")
    part = rows.merged(request.duplicates, among)
    shared = len(rows.notes)
    return replace(part, notes=(*rows.notes, *(f"{name}: {note}" for note in part.notes[shared:])))


def _in(part: Feedback, other: Feedback) -> Mask:
    """Which pairs of a part the other one has."""
    from openloop.kernels.merging import positions  # numba is slow to import

    theirs = other.cell
    return theirs[np.minimum(positions(theirs, part.cell), len(theirs) - 1)] == part.cell


def _of_one_log(train: Feedback, new: Feedback | None) -> dict[str, Any]:
    """What both parts know of the log that they were split from: its distinct pairs are those of train and the new."""
    cell, item_rows = train.cell, train.rows_of_items
    if new is not None:
        cell, item_rows = np.sort(np.concatenate([cell, new.cell])), item_rows + new.rows_of_items
    user, item = np.divmod(cell, train.n_items)
    origin = fingerprint_of((train.n_users, train.n_items), user.astype(np.int32), item.astype(np.int32))
    return {"origin": origin, "item_rows": item_rows, "share": None, "split": ("time",)}


def _without_repeats(held: Feedback, new: Mask, repeats: Repeats) -> Feedback:
    again = int(np.sum(~new))
    if not again:
        return held
    of = f"{again:,} of {len(held):,} pairs of the test part are in train, too"
    if repeats == "keep":
        return replace(held, notes=(*held.notes, f"{of}, and are scored all the same (repeats='keep')"))
    if again == len(held):
        raise EmptyError(f"split: all {of}, so none is new; pass repeats='keep' to score them, or change test=.")
    return held.take(new, notes=(*held.notes, f"{of}, and are left out (repeats='drop'): it scores new pairs"))


def _request(columns: dict[str, Any]) -> ReadRequest:
    _refuse_unknown_keywords(columns)
    return ReadRequest(**columns)


# -- refusals ------------------------------------------------------------------------------------------------


def _refuse_unknown_keywords(columns: dict[str, Any]) -> None:
    known = [field.name for field in fields(ReadRequest)]
    for name in columns:
        if name not in known:
            raise InputError(f"split: {name}= is not a keyword of split or read.{did_you_mean(name, known)}")


def _refuse_reading(columns: dict[str, Any]) -> None:
    if columns:
        raise InputError(
            f"split: {listing([f'{name}=' for name in columns])} is for a path or a dataframe, and the log was read "
            "already; pass it to ol.read, or give split the path."
        )


def _refuse_options(by: str, k: int | None, repeats: str) -> None:
    if repeats not in ("drop", "keep"):
        raise InputError(f"repeats={quoted(repeats)} is not an option.{did_you_mean(str(repeats), ['drop', 'keep'])}")
    if by not in _SPLITS and by != "time":
        raise InputError(f"by={quoted(by)} is not a way to split.{did_you_mean(str(by), [*_SPLITS, 'time'])}")
    if k is None and by == "leave-k-out":
        raise InputError("by='leave-k-out' needs k, the number of rows to hold out of each user; pass k=1.")
    if k is not None and by != "leave-k-out":
        raise InputError(f"k={k} is for by='leave-k-out', and by={quoted(by)} was asked for; pass test= instead.")
