"""`NaiveBayes`: p depends on the rating alone; a small uniform sample tells how often each rating occurs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Feedback, Floats, check_fitted, distinct, frozen
from openloop.core.propensities import Propensities
from openloop.errors import InputError, LeakError, RatingError, UndefinedError, listing
from openloop.propensity.base import PropensityEstimator, check_grid, row_counts
from openloop.support.arguments import generator, is_whole

Ratings = npt.NDArray[np.float32]

MAX_LEVELS = 1000


class NaiveBayes(PropensityEstimator):
    """Schnabel et al. 2016, Eq. 18: P(O=1 | Y=r) = P(Y=r | O=1) · P(O=1) / P(Y=r), capped at 1.

    The log tells P(Y=r | O=1) and P(O=1); `fit(log, uniform=sample)` takes P(Y=r) from ratings of cells that were
    drawn at random, smoothed (Laplace): (n_r + smoothing) / (n + smoothing·K), K the levels of log and sample.
    The sample is a Feedback, on any grid, or a list of ratings; `sample_size` of them, drawn with `rng`, degrade
    it on purpose (Figure 4). Any scale with a few levels will do. Scoring a Feedback that served as sample is an
    error; a list of ratings does not tell where it comes from, and cannot be guarded.

    Learned: `propensity_by_rating_`, a dictionary of the ratings in the log; `levels_` (K,), and for each
    `observed_share_`, P(Y=r | O=1), and `population_share_`, P(Y=r); `observation_rate_`, P(O=1).
    """

    assumes = "being observed depends on the rating alone"

    def __init__(
        self, smoothing: float = 1.0, sample_size: int | None = None, rng: int | np.random.Generator | None = None
    ) -> None:
        self.smoothing = smoothing
        self.sample_size = sample_size
        self.rng = rng

    def fit(self, feedback: Feedback, uniform: Feedback | npt.ArrayLike | None = None) -> NaiveBayes:
        """Count the ratings of the log and of the uniform sample."""
        _check_parameters(self)
        rows = row_counts(self, feedback)  # (n,)
        sample = self._draw(_sample_ratings(uniform))
        levels = _levels(feedback.rating, sample)  # (K,)
        in_log, in_sample = _count(levels, feedback.rating, rows), _count(levels, sample)
        _check_support(levels[(in_log > 0) & (in_sample + self.smoothing == 0)])
        self.levels_ = frozen(levels)
        self.observed_share_ = frozen(in_log / rows.sum())
        self.observation_rate_ = min(float(rows.sum()) / (feedback.n_users * feedback.n_items), 1.0)
        self.population_share_ = frozen((in_sample + self.smoothing) / (len(sample) + self.smoothing * len(levels)))
        # Eq. 18
        p = self.observed_share_ * self.observation_rate_ / self.population_share_  # (K,)
        by_rating = zip(_plain(levels), np.minimum(p, 1.0).tolist(), strict=True)
        self.propensity_by_rating_ = {r: value for r, value in by_rating if value > 0}
        notes = _notes(levels, p, in_log > 0, in_sample > 0)
        return self._remember(feedback, *notes, uniform=uniform)

    def _draw(self, sample: Ratings) -> Ratings:
        if self.sample_size is None:
            return sample
        if self.sample_size > len(sample):
            raise InputError(
                f"NaiveBayes: sample_size={self.sample_size:,} of a uniform sample of {len(sample):,} ratings; "
                "ask for fewer, or leave it out to use all."
            )
        return generator("NaiveBayes", self.rng).choice(sample, self.sample_size, replace=False)

    def predict(self, feedback: Feedback) -> Propensities:
        """The p of each row's rating, carrying the fingerprint of `feedback`; refused for the sample itself."""
        check_grid(self, feedback)
        _refuse_sample(self.side_["uniform"], feedback)
        levels = np.array(list(self.propensity_by_rating_), np.float32)
        at = np.minimum(np.searchsorted(levels, feedback.rating), len(levels) - 1)
        unknown = distinct(feedback.rating[levels[at] != feedback.rating])
        if len(unknown):
            raise RatingError(
                f"NaiveBayes: no rating {listing(_plain(unknown))} in the log it was fitted on, so their p is not "
                f"known; it has {listing(_plain(levels))}. Fit on a log with all levels."
            )
        values = np.array(list(self.propensity_by_rating_.values()))[at]  # (n,)
        return Propensities(values=values, fingerprint=feedback.fingerprint)

    def matrix(self) -> Floats:
        """Undefined: the p of a cell depends on its rating, which is known for observed cells only."""
        check_fitted(self)
        raise UndefinedError(
            "NaiveBayes: p depends on a cell's rating, which is known for observed cells only, so there is no matrix "
            "of all cells; predict(feedback) gives the p of the rows of a log."
        )


def _count(levels: Ratings, ratings: Ratings, rows: Floats | None = None) -> Floats:
    """How many rows have each level (K,)."""
    return np.bincount(np.searchsorted(levels, ratings), rows, minlength=len(levels)).astype(np.float64)


def _plain(ratings: Ratings) -> list[float]:
    """As people write them: 0.1, not the float32's 0.10000000149."""
    return [float(str(r)) for r in ratings]


def _levels(log: Ratings, sample: Ratings) -> Ratings:
    levels = distinct(np.concatenate([distinct(log), distinct(sample)]))
    if len(levels) > MAX_LEVELS:
        raise RatingError(
            f"NaiveBayes: needs a discrete rating scale, of at most {MAX_LEVELS:,} levels, got {len(levels):,}; "
            "round the ratings to a few levels, or use a model that does not look at them."
        )
    return levels


def _sample_ratings(uniform: Any) -> Ratings:
    if uniform is None:
        raise InputError(
            "NaiveBayes: needs a uniform sample, ratings of cells drawn at random, to learn how often each rating "
            "occurs where nobody chose; pass fit(log, uniform=sample), or use Popularity or Logistic, which need none."
        )
    if isinstance(uniform, Feedback):
        return uniform.rating
    try:
        ratings = np.asarray(uniform, np.float32)
    except (TypeError, ValueError):
        ratings = np.empty((0, 0), np.float32)
    if ratings.ndim != 1 or len(ratings) == 0:
        raise InputError(
            f"NaiveBayes: uniform must be a Feedback or a list of ratings, got {type(uniform).__name__} that is "
            "neither; read the sample with ol.read(..., uniform=True)."
        )
    if bad := int(np.sum(~np.isfinite(ratings))):
        raise RatingError(f"NaiveBayes: {bad:,} of {len(ratings):,} ratings in uniform are not finite; drop them.")
    return ratings


def _check_parameters(model: Any) -> None:
    if not isinstance(model.smoothing, int | float | np.number) or not 0 <= model.smoothing < np.inf:
        raise InputError(
            f"NaiveBayes: smoothing must be a number from 0, got {model.smoothing!r}; 1 is Laplace's, 0 none."
        )
    size = model.sample_size
    if size is None:
        return
    if not is_whole(size) or size < 1:
        raise InputError(f"NaiveBayes: sample_size must be a whole number from 1, got {size!r}; leave it out for all.")
    generator(f"NaiveBayes(sample_size={size})", model.rng)


def _check_support(missing: Ratings) -> None:
    if len(missing):
        raise RatingError(
            f"NaiveBayes: the uniform sample has no rating {listing(_plain(missing))}, which the log has, so that "
            "their p would be infinite; pass smoothing=1, or a larger sample."
        )


def _refuse_sample(sample: Any, feedback: Feedback) -> None:
    if feedback.uniform or (isinstance(sample, Feedback) and _leaks(sample, feedback)):
        raise LeakError(
            "NaiveBayes: this feedback is marked as a uniform sample, or has cells of the one that the model was "
            "fitted with, and may not be scored; set a part aside with ol.split, fit with it and score the rest."
        )


def _leaks(sample: Feedback, feedback: Feedback) -> bool:
    """Whether it is the sample, a part of it, or another part of the sample's log with cells in common."""
    mark, scored = sample.fingerprint, feedback.fingerprint
    if mark in {scored, feedback.origin}:
        return True
    # Another log may observe the same cells by chance; a part of the same log has the same ratings.
    one_log = (sample.origin or mark) == (feedback.origin or scored)
    return one_log and bool(np.isin(sample.cell, feedback.cell, assume_unique=True).any())


def _notes(levels: Ratings, p: Floats, in_log: Array, in_sample: Array) -> Iterator[str]:
    if (p > 1).any():
        yield (
            f"p of ratings {listing(_plain(levels[p > 1]))} came out above 1 and is capped at 1: the sample is too "
            "small for them, or not uniform"
        )
    if not in_sample.all():
        yield (
            f"ratings {listing(_plain(levels[~in_sample]))} are in the log but not in the sample: their P(Y=r) comes "
            "of smoothing alone"
        )
    if not in_log.all():
        yield (
            f"ratings {listing(_plain(levels[~in_log]))} are in the sample but not in the log: they have no p, and "
            "weighted estimates leave their cells out"
        )
