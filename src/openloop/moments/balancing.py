"""Balanced weights of a scored part: levels and means balanced once more, to those of the candidates.

A part holds each level by its chance, and under `exclude` the candidates are no longer the population that weights were
balanced to. What balancing did to the items is kept: a part has too few rows of an item to do it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from openloop.core.feedback import Array, Feedback, Floats
from openloop.core.levels import LevelSample, spread
from openloop.core.propensities import Propensities, part_probability
from openloop.core.vocabulary import Int64s
from openloop.moments.parts import excluded_share
from openloop.propensity.cell_means import CellMeans
from openloop.propensity.targets import Target, level_shares, moved, refuse_unreached


def balanced_probability(w: Floats, cells: float, log: Feedback, targets: Sequence[Target]) -> Floats:
    """1/w′ of each scored row: w′ ∝ w, balanced to the candidates' targets, and Σw′ = |C|.

    `w` are the weights of the part, as balanced in the whole log; `cells` is |C|. Without targets they stay unchanged.
    Balanced shares do not determine the number of cells, but |C| is known. Σ1/π in its place falls short of |C| if
    items have no rows, and intervals of ips then covered .80.
    """
    if targets:
        found = moved(targets, log, w)
        refuse_unreached(targets, found, len(w))
        w = w * found.factor
    return w.sum() / (cells * w)


def part_targets(sample: LevelSample | None, levels: Floats | None, means: CellMeans | None) -> Iterator[Target]:
    """What a scored part is balanced to: the candidates of each level (L,), and means of functions of predictions.

    Functions must be balanced in the scored rows themselves: a model trained on the other rows of the log predicts
    those unlike all other cells. (With factors from the whole log the RMSE of mae was 1.8 times that of snips, balanced
    in the scored part .78 times.)
    """
    if sample is not None and levels is not None:
        yield replace(level_shares(sample, levels > 0), means=levels / levels.sum())
    if means is not None:
        yield means


def candidate_levels(sample: LevelSample, log: Feedback, excluded: Array) -> Floats:
    """U·I·π̂_r − excluded_r: the candidates of each level, of which each scored row is one.

    `excluded` are the ratings of the cells that are no candidates. A level of which the part has no row leaves its
    cells to its neighbours.
    """
    scored = np.bincount(sample.codes(log.rating), minlength=len(sample))
    cells = log.n_users * log.n_items * sample.shares - np.bincount(sample.codes(excluded), minlength=len(sample))
    return spread(np.maximum(cells, scored), scored > 0)


def with_leverage(sample: LevelSample, whole: Floats, left: Floats) -> LevelSample:
    """The sample if `left` (L,) of the `whole` (L,) cells that it predicts per level remain: d log left_r/d log π_r.

    left_r = U·I·π_r − excluded_r, so the derivative is whole_r/left_r. (With 1 in its place, the sample's error was a
    third too small in rankings of a log that held 30 % of all cells.)
    """
    known = left > 0
    return replace(sample, leverage=np.where(known, np.maximum(1.0, whole / np.where(known, left, 1.0)), 1.0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BalancedParts:
    """π of each scored row as weights balanced once more have it, by kind of metric, and Σw/|C| before that."""

    probability: Mapping[str, Floats]
    unbalanced: Mapping[str, float]
    rank_sample: LevelSample | None  # the sample, as rankings depend on it


def balanced_parts(
    log: Feedback, exclude: Feedback | None, p: Propensities, sample: LevelSample | None
) -> BalancedParts:
    """The weights of a scored part, balanced to its candidates; only rankings lose what is excluded."""
    tilt = np.asarray(p.base) / p.used  # w′/w of the whole log
    none = np.zeros(0, np.int64)
    left = none if exclude is None else np.flatnonzero(~np.isin(exclude.cell, log.cell, assume_unique=True))
    rated = log.rating[:0] if exclude is None else exclude.rating[left]
    means = _part_means(p.means, exclude, left)
    s = 1.0 if log.share is None else log.share
    probability: dict[str, Floats] = {}
    unbalanced: dict[str, float] = {}
    t_of_users = excluded_share(log, exclude, len(left))
    for on, t, gone in (("prediction", 0.0, log.rating[:0]), ("rank", t_of_users, rated)):
        pi = part_probability(np.asarray(p.base), s, t[log.user] if isinstance(t, np.ndarray) else t)
        cells = float(log.n_users * log.n_items - len(gone))
        levels = None if sample is None else candidate_levels(sample, log, gone)
        targets = tuple(part_targets(sample, levels, means))
        probability[on] = balanced_probability(tilt / pi, cells, log, targets)
        unbalanced[on] = float((1.0 / pi).sum()) / cells
    rank_sample = sample
    if sample is not None and exclude is not None:
        before = log.n_users * log.n_items * sample.shares
        rank_sample = with_leverage(sample, before, candidate_levels(sample, log, rated))
    return BalancedParts(probability=probability, unbalanced=unbalanced, rank_sample=rank_sample)


def _part_means(means: CellMeans | None, exclude: Feedback | None, left: Int64s) -> CellMeans | None:
    """The means of functions of predictions, for metrics of both kinds over what is not excluded.

    A model predicts the cells that it was trained on unlike all others, and no scored row is like them.
    """
    if means is None or exclude is None:
        return means
    return means.without(exclude.user[left], exclude.item[left])
