"""`split` and `folds`: a log into parts that remember with which probability a row landed in each.

A cell that the log observes with probability p is observed by a part with p · share. A share is the realised
probability (m of n), not the one asked for. Parts keep the vocabularies, so the population stays the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Feedback, Floats, check_feedback
from openloop.errors import ColumnError, EmptyError, InputError, did_you_mean
from openloop.support.arguments import generator, is_whole

By = Literal["row", "user", "leave-k-out", "time"]
Mask = npt.NDArray[np.bool_]
Parts = tuple[Feedback, Feedback]


def split(
    feedback: Feedback,
    test: float = 0.2,
    *,
    by: By = "row",
    k: int | None = None,
    rng: int | np.random.Generator | None = None,
) -> Parts:
    """Train and test. `test` is a fraction below 1, or a whole number; `rng` a seed or a Generator.

    - `by="row"`: `test` of the rows, at random; shares m/n and 1 - m/n.
    - `by="user"`: all rows of `test` of the users that have rows; shares m/n and 1 - m/n of users.
    - `by="leave-k-out"`: `k` random rows of each user that has more than k (`test` does not matter); shares
      k/n_u and 1 - k/n_u, and 1 for users that stay in train whole.
    - `by="time"`: the latest `test` of the rows. Rows as late as the latest train row stay in train, so no
      time is on both sides and test may be smaller than asked. No chance is involved: shares are None.
    """
    check_feedback("split", feedback)
    _refuse_options(by, k)
    if by == "time":
        return _parts(feedback, _latest(feedback, test), None, by)
    held, chance = _SPLITS[by](feedback, test if k is None else k, generator("split", rng))
    return _parts(feedback, held, chance, by)


def folds(feedback: Feedback, k: int, rng: int | np.random.Generator | None = None) -> Iterator[Parts]:
    """k pairs of train and validation, each row in one validation part; shares (k-1)/k and 1/k, realised."""
    n = len(feedback)
    if not (is_whole(k) and 2 <= k <= n):
        raise InputError(f"k={k}: the number of folds must be a whole number in 2 … {n:,}, the rows of the log.")
    fold = generator("folds", rng).permutation(np.arange(n) % k)
    return (_parts(feedback, fold == f, np.mean(fold == f), "row") for f in range(k))


# Each way returns the held-out rows, and each row's probability of being one.


def _by_row(feedback: Feedback, test: float, rng: np.random.Generator) -> tuple[Mask, Any]:
    n = len(feedback)
    m = _count(test, n, "rows")
    held = np.zeros(n, bool)
    held[rng.choice(n, m, replace=False, shuffle=False)] = True
    return held, m / n


def _by_user(feedback: Feedback, test: float, rng: np.random.Generator) -> tuple[Mask, Any]:
    present = np.unique(feedback.user)
    m = _count(test, len(present), "users")
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


def _latest(feedback: Feedback, test: float) -> Mask:
    if feedback.time is None:
        raise ColumnError("split: by='time' needs the time column; read the log with time= and its name.")
    n = len(feedback)
    m = _count(test, n, "rows")
    latest_train = np.partition(feedback.time, n - m - 1)[n - m - 1]
    return feedback.time > latest_train


def _count(test: float, n: int, noun: str) -> int:
    """How many of n are held out: `test` itself, or that fraction of n."""
    whole = is_whole(test)
    if isinstance(test, bool) or not (test > 0 and (whole or test < 1)):
        raise InputError(f"test={test}: give a fraction between 0 and 1, or a whole number of {noun}.")
    m = int(test) if whole else round(test * n)
    if not 0 < m < n:
        empty = "test" if m == 0 else "train"
        msg = f"split: test={test} of {n:,} {noun} leaves none for {empty}; each part needs one: change test."
        raise EmptyError(msg)
    return m


def _parts(feedback: Feedback, held: Mask, chance: Any, by: By) -> Parts:
    origin = feedback.origin or feedback.fingerprint
    parts: list[Feedback] = []
    for name, keep, share in (("train", ~held, None if chance is None else 1 - chance), ("test", held, chance)):
        if not keep.any():
            raise EmptyError(f"split: no row is left for {name}; change test= or k=, or split by something else.")
        known = {"origin": origin, "split": (*feedback.split, by), "item_rows": feedback.rows_of_items}
        parts.append(feedback.take(keep, share=_share(feedback, keep, share), **known))
    return parts[0], parts[1]


def _share(feedback: Feedback, keep: Mask, chance: Any) -> Floats | None:
    if chance is None or feedback.share is None:
        return None
    return (feedback.share * chance)[keep]


def _refuse_options(by: str, k: int | None) -> None:
    if by not in _SPLITS and by != "time":
        raise InputError(f"by={by!r} is no way to split.{did_you_mean(str(by), [*_SPLITS, 'time'])}")
    if k is None and by == "leave-k-out":
        raise InputError("by='leave-k-out' needs k, the number of rows to hold out of each user; pass k=1.")
    if k is not None and by != "leave-k-out":
        raise InputError(f"k={k} is for by='leave-k-out', and by={by!r} was asked for; pass test= instead.")
