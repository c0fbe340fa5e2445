"""Models that are fitted to the items' counts alone: their held-out cells and overlap, from these counts.

Of such a model all cells of an item have one p. What is judged cell by cell for others is judged here by item, so the
rows may be anywhere, and no cell is left out of a large grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from openloop.core.feedback import Feedback, Floats, frozen
from openloop.core.vocabulary import Int64s
from openloop.errors import UndefinedError
from openloop.propensity.base import row_counts
from openloop.propensity.calibrated import Calibrated
from openloop.propensity.checks.held_out import Calibration, HeldOut, judged, one_share, to_pi
from openloop.propensity.checks.overlap import Overlap, spread
from openloop.propensity.popularity import Popularity
from openloop.propensity.uniform import Uniform

MOST = 10**9  # rows that NumPy deals to folds by their counts


@dataclass(frozen=True, slots=True, kw_only=True)
class CountModel:
    """A model of counts, fitted or not, and the floor under its p."""

    model: Any
    floor: float = 0.0

    @classmethod
    def of(cls, model: Any) -> CountModel | None:
        """That of a fitted model; None of a model that needs more than counts."""
        if type(model) is Calibrated and model.method is None and model.quantile is None:
            return cls(model=model.inner_, floor=model.floor_) if _counts(model.inner_) else None
        return cls(model=model) if _counts(model) else None

    @property
    def name(self) -> str:
        """What a check calls it."""
        own = type(self.model).__name__
        return f"Calibrated({own})" if self.floor else own

    def p(self, counts: Floats, n_users: int) -> Floats:
        """The p of each item as used in weights (I,), fitted to these counts."""
        fresh: Any = clone(self.model)
        fresh.fit_counts(counts, n_users)
        return np.maximum(fresh.item_propensities_, self.floor)

    @property
    def fitted(self) -> Floats:
        """The p of each item as it was fitted."""
        return np.maximum(self.model.item_propensities_, self.floor)


def _counts(model: Any) -> bool:
    """Whether a model is one of these and none derived from them, which may predict in another way."""
    return type(model) in (Popularity, Uniform)


def calibration(model: CountModel, feedback: Feedback, *, folds: int, bins: int, rng: Any) -> Calibration:
    """How well a model refitted without a fold predicts it."""
    counts = np.bincount(feedback.item, minlength=feedback.n_items)
    return calibrated(
        model, counts, feedback.n_users, share=one_share(model.model, feedback),
        whole=float(row_counts(model.model, feedback).sum()), folds=folds, bins=bins, rng=rng,
    )  # fmt: skip


def calibrated(
    model: CountModel, counts: Int64s, n_users: int, *, share: float, whole: float, folds: int, bins: int, rng: Any
) -> Calibration:
    """The same from the items' counts (I,) in a part with that share of a log of `whole` rows."""
    found = held_out(model, counts, n_users, share=share, folds=folds, rng=np.random.default_rng(rng))
    return judged(found, min(whole / (n_users * len(counts)), 1.0), folds=folds, bins=bins)


def held_out(
    model: CountModel, counts: Int64s, n_users: int, *, share: float, folds: int, rng: np.random.Generator
) -> HeldOut:
    """All cells outside each train part, by item and whether they are in the fold."""
    total, left, parts = int(counts.sum()), counts.copy(), list[dict[str, Floats]]()
    if total >= MOST:
        raise UndefinedError(f"{model.name}: {total:,} rows are more than can be dealt to folds; pass folds=None.")
    for f in range(folds):
        size = total // folds + (f < total % folds)
        # Rows dealt at random: how many of each item are in the fold is multivariate hypergeometric.
        fold = rng.multivariate_hypergeometric(left, size, method="marginals")
        left = left - fold
        parts.append(_part(model, counts - fold, fold, n_users, share * size / total, share))
    return HeldOut(**{name: frozen(np.concatenate([part[name] for part in parts])) for name in parts[0]})


def _part(model: CountModel, train: Int64s, fold: Int64s, n_users: int, t: float, share: float) -> dict[str, Floats]:
    s = share - t
    p = np.tile(model.p(train / s, n_users), 2)
    times = np.concatenate([fold, n_users - train - fold]).astype(np.float64)
    observed, shares = np.repeat([1.0, 0.0], len(fold)), {"s": np.full(len(p), s), "t": np.full(len(p), t)}
    columns = {"p": p, "pi": to_pi(p, s, t), "observed": observed, "weight": times, "cells": times, **shares}
    return {name: column[times > 0] for name, column in columns.items()}


def overlap(model: CountModel, counts: Int64s, n_users: int) -> Overlap:
    """The p of the rows beside those of the grid."""
    p = model.fitted
    return spread(p[counts > 0], counts[counts > 0], p, n_users * len(p))
