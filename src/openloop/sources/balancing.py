"""Balanced weights of a scored part: its rating levels raked once more, to the shares of candidates.

A part holds each level by its chance, and under `exclude` the candidates are no longer the population that weights were
balanced to. What balancing did to the items is kept: a part has too few rows of an item to do it again.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from openloop.core.feedback import Feedback, Floats
from openloop.core.levels import LevelSample, spread
from openloop.propensity.solvers.calibration import rake
from openloop.sources.outcomes import Exclusion


def balanced_probability(
    pi: Floats, tilt: Floats, log: Feedback, sample: LevelSample | None, candidates: Floats | None
) -> Floats:
    """1/w′ of each scored row, w′ ∝ (w′/w of the log)/π with each level's share of the candidates; Σw′ = Σ1/π.

    `pi` is of the p before balancing, `tilt` is w′/w of each row in the whole log, `candidates` how many cells each
    level has (L,). Without a uniform sample the tilt alone is left.
    """
    w = tilt / pi
    if sample is not None and candidates is not None:
        w = w * rake(w, sample.codes(log.rating), candidates).factor
    return w.sum() / ((1.0 / pi).sum() * w)


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
    """The sample where a level has `left` (L,) of the `whole` (L,) cells that it says: d log left_r/d log π_r.

    left_r = U·I·π_r − excluded_r, so that this is whole_r/left_r. (Taken for 1 the sample's error was a third too small
    in rankings of a log that held 30 % of all cells.)
    """
    known = left > 0
    return replace(sample, leverage=np.where(known, np.maximum(1.0, whole / np.where(known, left, 1.0)), 1.0))
