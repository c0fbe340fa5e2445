"""What is checked of the model that the propensities come from, beside the estimates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from openloop.blocks.block import Block
from openloop.core.feedback import Feedback, Floats
from openloop.moments.source import BlockSource
from openloop.propensity.checks.by_item import CountModel
from openloop.propensity.checks.overlap import HEAVIEST

if TYPE_CHECKING:
    from openloop.propensity.checks.checking import Check

MANY_ROWS = 5_000_000  # so many hold out enough cells in two folds: each is a refit


def check_of(propensities: Any, wanted: Any, rng: Any) -> Any:
    """The check of a propensity model on the log `wanted`, or `wanted` itself where it is a check; else None.

    Bare numbers cannot be refitted, and False says that no check is wanted.
    """
    from openloop.propensity.checks.checking import Check

    if isinstance(wanted, Check):
        return wanted
    if not hasattr(propensities, "fit") or not isinstance(wanted, Feedback):
        return None
    from openloop import propensity

    return propensity.check(propensities, wanted, folds=check_folds_of(len(wanted)), rng=rng)


def counted_check(source: BlockSource, model: CountModel, rng: Any) -> Check:
    """The check of a model of counts that was fitted to the blocks of a log."""
    from openloop.propensity.checks.counted import CountedLog, check_counts

    subject, p = source.subject, model.fitted

    def work(block: Block) -> tuple[Floats, Floats, list[tuple[float, int, int]]]:
        user = np.concatenate([block.user, block.excluded.user])
        item = np.concatenate([block.item, block.excluded.item])
        first = np.lexsort((item, block.users[user], p[item]))[:HEAVIEST]
        heavy = [(float(p[item[k]]), int(block.users[user[k]]), int(item[k])) for k in first]
        rows = np.bincount(user, minlength=block.n_users).astype(np.float64)
        mass: Any = np.bincount(user, 1.0 / p[item], minlength=block.n_users)
        return rows, mass, heavy

    parts = list(source.over(work))
    by_user, mass = source.by_code([rows for rows, _, _ in parts]), source.by_code([mass for _, mass, _ in parts])
    heaviest = sorted(row for part in parts for row in part[2])[:HEAVIEST]
    log = CountedLog(
        users=subject.population.users, items=subject.population.items, by_item=subject.rows_of_items,
        by_user=by_user.astype(np.int64), mass=mass, heaviest=[(user, item) for _, user, item in heaviest],
        positives=subject.positives,
    )  # fmt: skip
    return check_counts(model, log, folds=check_folds_of(int(log.by_item.sum())), rng=rng)


def check_folds_of(rows: int) -> int:
    """In how many folds a check holds out so many rows."""
    return 5 if rows < MANY_ROWS else 2


def benchmarks_of(propensities: Any, log: Any) -> tuple[str, ...]:
    """How far leaving out a part of the propensity model moves p, in words."""
    if not hasattr(propensities, "fit") or not isinstance(log, Feedback) or len(log) >= MANY_ROWS:
        return ()
    from openloop.propensity.checks.benchmarks import benchmarks

    return tuple(str(found) for found in benchmarks(propensities, log))
