"""Balanced weights of a scored part: levels and means balanced once more, to those of the candidates.

A part holds each level by its chance, and under `exclude` the candidates are no longer the population that weights were
balanced to. What balancing did to the items is kept: a part has too few rows of an item to do it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from openloop.core.feedback import Feedback, Floats
from openloop.core.levels import LevelSample, spread
from openloop.propensity.cell_means import CellMeans
from openloop.propensity.targets import Target, level_shares, moved, refuse_unreached
from openloop.sources.outcomes import Exclusion


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


def candidate_levels(sample: LevelSample, log: Feedback, exclude: Feedback | None, exclusion: Exclusion) -> Floats:
    """U·I·π̂_r − excluded_r: the candidates of each level, of which each scored row is one.

    A level of which the part has no row leaves its cells to its neighbours.
    """
    scored = np.bincount(sample.codes(log.rating), minlength=len(sample))
    cells = log.n_users * log.n_items * sample.shares
    if exclude is not None:
        rating = exclude.rating[np.searchsorted(exclude.cell, exclusion.cells)]
        cells -= np.bincount(sample.codes(rating), minlength=len(sample))
    return spread(np.maximum(cells, scored), scored > 0)


def with_leverage(sample: LevelSample, whole: Floats, left: Floats) -> LevelSample:
    """The sample if `left` (L,) of the `whole` (L,) cells that it predicts per level remain: d log left_r/d log π_r.

    left_r = U·I·π_r − excluded_r, so the derivative is whole_r/left_r. (With 1 in its place, the sample's error was a
    third too small in rankings of a log that held 30 % of all cells.)
    """
    known = left > 0
    return replace(sample, leverage=np.where(known, np.maximum(1.0, whole / np.where(known, left, 1.0)), 1.0))
