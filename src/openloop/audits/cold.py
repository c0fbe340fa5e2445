"""Cold rows: those of users or items without training rows, left out of the verdict, and reported apart.

Candidates stay as they are: a model that can be asked about new items has to rank them among the others. The estimand
changes with the rows, so it is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.audits.question import COLD, AuditQuestion
from openloop.core.comparison import Comparison
from openloop.core.feedback import Feedback, check_feedback
from openloop.core.propensities import Propensities
from openloop.errors import EmptyError, InputError, OpenloopError, did_you_mean
from openloop.evaluation import prepared
from openloop.support.wording import counted

Mask = npt.NDArray[np.bool_]

WARM = "among users and items with training rows"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ColdPart:
    """The rows that a verdict leaves out: how many, of how many new users and items, and what models make of them.

    `result` is None where they were dropped, or give no estimate; then `reason` says why.
    """

    rows: int
    warm: int  # the rows that are left
    users: int  # without training rows
    items: int
    result: Comparison | None = None
    reason: str = ""

    def __str__(self) -> str:
        who = f"{counted(self.users, 'user')} and {counted(self.items, 'item')} without training rows"
        return f"{self.rows:,} of {self.rows + self.warm:,} rows are of {who}; the verdict is about the others"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parted:
    """What is audited, and the part that is not; None: there is none."""

    log: Feedback
    propensities: Any
    asked: AuditQuestion
    cold: ColdPart | None


def parted(models: Mapping[str, Any], log: Any, propensities: Any, asked: AuditQuestion) -> Parted:
    """The rows of users and items that have training rows, and what models make of the others."""
    train = asked.trained
    _check(log, train, asked)
    known_user, known_item = (
        np.bincount(codes, minlength=size) > 0 for codes, size in ((train.user, log.n_users), (train.item, log.n_items))
    )
    warm = known_user[log.user] & known_item[log.item]
    if warm.all():
        return Parted(log=log, propensities=propensities, asked=asked, cold=None)
    if not warm.any():
        raise EmptyError(
            f"audit: all {len(log):,} rows are of users or items without training rows, so cold={asked.cold!r} leaves "
            "none; pass cold='keep', or a training part of the same users and items."
        )
    kept, left = (_part(log, propensities, asked, rows) for rows in (warm, ~warm))
    cold = ColdPart(
        rows=int(np.sum(~warm)), warm=int(warm.sum()),
        users=int(np.sum(~known_user[np.unique(log.user)])), items=int(np.sum(~known_item[np.unique(log.item)])),
    )  # fmt: skip
    return replace(kept, cold=_reported(cold, models, left) if asked.cold == "report" else cold)


def _part(log: Feedback, propensities: Any, asked: AuditQuestion, rows: Mask) -> Parted:
    """Some rows with all that goes with them; they are chosen by the training part, so p has no scale any more."""
    part = log.take(
        rows, share=None, split=(*log.split, "cold"), item_rows=log.rows_of_items, origin=log.origin or log.fingerprint
    )
    groups = {name: np.asarray(labels)[rows] for name, labels in asked.groups.items()}
    return Parted(
        log=part, propensities=_propensities(propensities, log, part, rows), cold=None,
        asked=replace(asked, groups=groups, cold="keep"),
    )  # fmt: skip


def _propensities(given: Any, log: Feedback, part: Feedback, rows: Mask) -> Any:
    """p of some rows; a model, and p of all cells, serve any."""
    if isinstance(given, Propensities):
        found = given.check(log)
        base = None if found.base is None else found.base[rows]
        return replace(found, values=found.values[rows], base=base, fingerprint=part.fingerprint)
    return given[rows] if isinstance(given, np.ndarray) and given.shape == (len(log),) else given


def _reported(cold: ColdPart, models: Mapping[str, Any], left: Parted) -> ColdPart:
    """The part with what the models make of it, or why that is not known."""
    try:
        with prepared(models, left.log, left.propensities, left.asked) as ready:
            return replace(cold, result=ready.compare())
    except OpenloopError as error:  # too few rows for some estimate are no reason to give up the verdict
        return replace(cold, reason=str(error))


def _check(log: Any, train: Any, asked: AuditQuestion) -> None:
    if asked.cold not in COLD:
        raise InputError(f"audit: cold={asked.cold!r} is not an option.{did_you_mean(str(asked.cold), COLD)}")
    check_feedback(f"audit with cold={asked.cold!r}", log)
    if train is None:
        raise InputError(
            f"audit: cold={asked.cold!r} needs what models were trained on; pass it as exclude=, or as trained_on= "
            "if nothing is to leave the rankings."
        )
    check_feedback("trained_on", train)
    if train.users != log.users or train.items != log.items:
        raise InputError("trained_on: its users and items differ from the scored log's; read it with like=log.")
    if asked.cold == "report" and asked.min_item_rows:
        raise InputError(
            f"audit: min_item_rows={asked.min_item_rows} limits the verdict to some items, but cold='report' would "
            "show rows of all items; pass cold='drop'."
        )
