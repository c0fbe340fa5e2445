"""Imputed losses of a block: the guess of each row's loss, and their sum over every candidate of each user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from openloop.blocks.block import Block
from openloop.core.feedback import Array, Floats
from openloop.core.metric import Metric, reaches
from openloop.core.vocabulary import Int64s
from openloop.moments.models import Asked, dense_outcome
from openloop.moments.rows import ArrayColumns, Rows
from openloop.moments.setting import Setting

CELLS = 2**21  # at a time

Imputed = tuple[Floats, Floats]  # δ̂ of each row, and Σ_{C_u} δ̂ of each user


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Imputation:
    """Imputed ratings of all items for some users, (B,) → (B, I); and the models that are no tables.

    `made` is what was imputed before, by metric and model.
    """

    ratings: Callable[[Array], Array]
    models: Mapping[str, Asked] = field(default_factory=dict[str, Any])
    made: Mapping[tuple[str, str], Imputed] = field(default_factory=dict[tuple[str, str], Imputed])

    def of_draw(self, users: Int64s, rows: Int64s) -> Imputation:
        """What was made for some users and their rows, as if these were all."""
        made = {key: (hat[rows], total[users]) for key, (hat, total) in self.made.items()}
        return replace(self, made=made)


def imputed(block: Block, setting: Setting, rows: Rows, metric: Metric, model: str, how: Imputation) -> Imputed:
    """δ̂ of each row, and Σ_{C_u} δ̂ of each user, a slice of users at a time."""
    if (metric.name, model) in how.made:
        return how.made[metric.name, model]
    n_items = setting.n_items
    hat, total = np.zeros(len(rows)), np.zeros(block.n_users)
    step = max(1, CELLS // n_items)
    for start in range(0, block.n_users, step):
        users = np.arange(start, min(start + step, block.n_users))
        ratings = np.asarray(how.ratings(block.users[users]), np.float64)  # (B, I)
        part = slice(*block.user_ptr[[users[0], users[-1] + 1]])
        own = _rated(rows, setting, rows.user[part], ratings[rows.user[part] - start, block.item[part]])
        hat[part] = metric.gain(ArrayColumns(own, block.outcomes[model].take(part)))
        outcome, flat = dense_outcome(how.models, model, block, n_items, users, metric.on)
        every = _rated(rows, setting, (start + flat // n_items).astype(np.int32), ratings.ravel()[flat])
        total += np.bincount(every.user, metric.gain(ArrayColumns(every, outcome)), minlength=block.n_users)
    return hat, total


def _rated(like: Rows, setting: Setting, user: Array, rating: Floats) -> Rows:
    """Rows of these users with other ratings, without weights."""
    relevant = reaches(rating, setting.threshold).astype(np.float64)
    return replace(like, user=user, rating=rating, relevant=relevant, probability=None, certain=None)
