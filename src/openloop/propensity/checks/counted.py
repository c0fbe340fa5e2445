"""The check of a model of counts from what the rows of a log add up to: the rows may be anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from openloop.core.feedback import Floats, Vocabulary
from openloop.core.vocabulary import Int64s
from openloop.core.weights import WeightSummary, repeated_quantile
from openloop.propensity.checks.balance import differences, margin, named, plain
from openloop.propensity.checks.by_item import CountModel, calibrated, overlap
from openloop.propensity.checks.checking import Check, check_folds, exposure_flags, flags_of, unless
from openloop.propensity.checks.held_out import Calibration
from openloop.propensity.checks.overlap import QUANTILES, Heavy, described

BINS = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountedLog:
    """A whole log by its users and its items: how many rows each has, and each user's Σ1/p.

    `heaviest` are the codes (user, item) of the rows with the largest weights, the first of equal ones.
    """

    users: Vocabulary
    items: Vocabulary
    by_user: Int64s  # (U,)
    by_item: Int64s  # (I,)
    mass: Floats  # (U,)
    heaviest: Sequence[tuple[int, int]]
    positives: bool


def check_counts(model: CountModel, log: CountedLog, *, folds: int, rng: Any, notes: Sequence[str] = ()) -> Check:
    """As `check` has it of the same rows in memory."""
    p, U, missing = model.fitted, len(log.users), dict[str, str]()
    judged = unless("calibration", missing, lambda: _calibration(model, log, folds, rng))
    sums = (
        margin("user", log.users, np.full(U, p.sum()), log.by_user.astype(np.float64), 1.0),
        margin("item", log.items, U * p, log.by_item.astype(np.float64), 1.0),
    )
    found = named([
        *differences("user", log.by_user, log.mass), *differences("item", log.by_item, log.by_item / p)
    ])  # fmt: skip
    spread = overlap(model, log.by_item, U)
    clipped = float(log.by_item[model.model.item_propensities_ < model.floor].sum() / log.by_item.sum())
    weights = described(
        WeightSummary.of(1.0 / p, log.by_item),
        {q: repeated_quantile(1.0 / p, log.by_item, q) for q in QUANTILES},
        int((log.by_user > 0).sum()), U * len(p), clipped if model.floor else None, scaled=True,
    )  # fmt: skip
    flags = (
        *weights.flags, *flags_of(judged, sums, found, spread), *exposure_flags(positives=log.positives, blind=True)
    )  # fmt: skip
    return Check(
        model=model.name, rows=int(log.by_item.sum()), users=U, items=len(p), calibration=judged, margins=sums,
        balance=found, weights=weights, heaviest=tuple(_heavy(log, p)), overlap=spread, not_computed=missing,
        notes=tuple(notes), flags=flags,
    )  # fmt: skip


def _calibration(model: CountModel, log: CountedLog, folds: int, rng: Any) -> Calibration:
    rows = int(log.by_item.sum())
    check_folds(folds, rows)
    return calibrated(model, log.by_item, len(log.users), share=1.0, whole=float(rows), folds=folds, bins=BINS, rng=rng)


def _heavy(log: CountedLog, p: Floats) -> list[Heavy]:
    total = float(log.by_item @ (1.0 / p))
    return [
        Heavy(
            user=plain(log.users.ids[user]), item=plain(log.items.ids[item]), p=float(p[item]),
            weight=float(1.0 / p[item]), share=float(1.0 / p[item]) / total,
        )
        for user, item in log.heaviest
    ]  # fmt: skip
