"""Parts of one log: whether two are, what share the excluded one has, and why a share is unknown."""

from __future__ import annotations

import numpy as np

from openloop.core.feedback import Feedback, Floats
from openloop.moments import remarks


def unscaled(log: Feedback) -> str:
    """Why p of a part without a share is known up to a factor only."""
    return "has lost its cold rows" if log.split[-1:] == ("cold",) else remarks.BY_TIME


def one_log(log: Feedback, exclude: Feedback) -> bool:
    """Whether both are parts of one log, or one is the whole of which the other is a part."""
    if log.origin is None and exclude.origin is None and len(log) != len(exclude):
        return False  # two whole logs; no need to fingerprint them
    return (log.origin or log.fingerprint) == (exclude.origin or exclude.fingerprint)


def other_users(log: Feedback, exclude: Feedback) -> bool:
    """Whether two parts of one log share no user."""
    if not one_log(log, exclude):
        return False
    scored, excluded = (np.bincount(part.user, minlength=log.n_users) > 0 for part in (log, exclude))
    return not bool(np.any(scored & excluded))


def excluded_share(log: Feedback, exclude: Feedback | None, left: int) -> float | Floats:
    """t: the probability that the excluded part holds an observed row, (U,) where it differs by user.

    It is 0 for a part of another log. Scored rows stay candidates: of an excluded part that holds some of them, only
    the rest leaves the ranking, `left` of all.
    """
    if exclude is None or exclude.share is None or not one_log(log, exclude):
        return 0.0
    if np.ptp(exclude.share) == 0 and (log.share is None or np.ptp(log.share) == 0):
        return float(exclude.share[0]) * left / len(exclude)
    rows = np.bincount(exclude.user, minlength=log.n_users)
    left_of_users = rows - np.bincount(exclude.user[np.isin(exclude.cell, log.cell)], minlength=log.n_users)
    share = np.zeros(log.n_users)
    share[exclude.user] = exclude.share  # one share for all rows of a user
    return share * left_of_users / np.maximum(rows, 1)
