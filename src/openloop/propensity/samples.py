"""Ratings of cells drawn at random: how a model is given them, what they say, and that they are not scored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Feedback, Floats, Ints, distinct
from openloop.core.levels import LevelSample
from openloop.errors import InputError, LeakError, RatingError
from openloop.propensity.frames.log_frame import LogFrame
from openloop.propensity.frames.opening import RATING, OpenedLog
from openloop.support.frames import collected, is_frame

Ratings = npt.NDArray[np.float32]

MAX_LEVELS = 1000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Drawn:
    """The ratings of a uniform sample, and who gave them where the sample names users of the log."""

    rating: Ratings
    user: Ints | None = None

    @classmethod
    def of(cls, who: str, uniform: Any, log: Feedback | LogFrame) -> Drawn:
        """From a Feedback, on any grid, a frame, or a list of ratings."""
        if isinstance(uniform, Feedback):
            return cls(rating=uniform.rating, user=_users_of(uniform, log))
        if is_frame(uniform):
            return cls(rating=_ratings_of(who, uniform, log.opened.chosen if isinstance(log, LogFrame) else {}))
        try:
            ratings = np.asarray(uniform, np.float32)
        except (TypeError, ValueError):
            ratings = np.empty((0, 0), np.float32)
        if ratings.ndim != 1 or len(ratings) == 0:
            raise InputError(
                f"{who}: uniform must be a Feedback, a frame or a list of ratings, got {type(uniform).__name__}; "
                "read the sample with ol.read(..., uniform=True), or pass numbers."
            )
        if bad := int(np.sum(~np.isfinite(ratings))):
            raise RatingError(f"{who}: {bad:,} of {len(ratings):,} ratings in uniform are not finite; drop them.")
        return cls(rating=ratings)

    def __len__(self) -> int:
        return len(self.rating)

    def some(self, who: str, size: int, rng: np.random.Generator) -> Drawn:
        """`size` of them, drawn at random."""
        if size > len(self):
            raise InputError(
                f"{who}: sample_size={size:,} of a uniform sample of {len(self):,} ratings; "
                "ask for fewer, or leave it out to use all."
            )
        at = rng.choice(len(self), size, replace=False)
        return Drawn(rating=self.rating[at], user=None if self.user is None else self.user[at])

    def shares(self, levels: Array, smoothing: float) -> Floats:
        """π̂_r = (n_r + smoothing)/(n₀ + smoothing·L) of each level (L,): Laplace's rule where smoothing is 1."""
        n = np.bincount(level_codes(levels, self.rating), minlength=len(levels)).astype(np.float64)
        return (n + smoothing) / (len(self) + smoothing * len(levels))

    def level_sample(self, levels: Array, shares: Floats, rows: float) -> LevelSample:
        """What the sample tells about the population, for propensities fitted on `rows` rows of the log."""
        level = None if self.user is None else level_codes(levels, self.rating)
        return LevelSample(levels=levels, shares=shares, size=len(self), rows=rows, user=self.user, level=level)


def _users_of(sample: Feedback, log: Feedback | LogFrame) -> Ints | None:
    """The log's codes of the sample's users, found by their ids; None where the log lacks any of them."""
    if not isinstance(log, Feedback) or sample.users == log.users:
        return sample.user if sample.users == log.users else None
    user = log.users.find(sample.users.ids)[sample.user]
    return None if bool((user < 0).any()) else user


def _ratings_of(who: str, sample: Any, known: Mapping[str, str]) -> Ratings:
    """The ratings of a frame, which is small, in rising order; `known` are the log's names of columns."""
    opened = OpenedLog.of(f"{who}: uniform=", sample, {}, known, ("rating",))
    opened.check()
    return np.sort(collected(opened.frame.select(opened.key("rating")))[RATING].to_numpy()).astype(np.float32)


def level_codes(levels: Array, rating: Ratings) -> npt.NDArray[np.int64]:
    """The level of each rating: the last one that is not above it."""
    return np.maximum(np.searchsorted(levels, rating, side="right") - 1, 0)


def rows_by_level(levels: Array, ratings: Ratings, rows: Floats | None = None) -> Floats:
    """How many rows have each level (K,); a rating has one row, or so many."""
    return np.bincount(np.searchsorted(levels, ratings), rows, minlength=len(levels)).astype(np.float64)


def levels_of(who: str, log: Ratings, sample: Ratings) -> Ratings:
    """The distinct ratings of log and sample."""
    levels = distinct(np.concatenate([distinct(log), distinct(sample)]))
    if len(levels) > MAX_LEVELS:
        raise RatingError(
            f"{who}: needs a discrete rating scale, of at most {MAX_LEVELS:,} levels, got {len(levels):,}; "
            "round the ratings to a few levels, or use a model that ignores them."
        )
    return levels


def plain(ratings: Any) -> list[float]:
    """As people write them: 0.1, not the float32's 0.10000000149."""
    return [float(str(np.float32(r))) for r in ratings]


def refuse_sample_frame(who: str, sample: Any, frame: Any) -> None:
    """Refuse the frame that a model was fitted with as its sample; another of the same rows is not recognised."""
    if sample is frame and is_frame(frame):
        raise LeakError(
            f"{who}: this frame is the uniform sample that the model was fitted with, and may not be scored; give "
            "ratings of other cells, drawn at random, or set a part aside before the fit."
        )


def refuse_sample(who: str, sample: Any, feedback: Feedback) -> None:
    """Refuse to score a uniform sample, or cells of the one that a model was fitted with."""
    same = isinstance(sample, Feedback) and sample.fingerprint in {feedback.fingerprint, feedback.origin}
    if same and not feedback.uniform:
        raise LeakError(
            f"{who}: the uniform sample is the scored log itself; give ratings of other cells, drawn at random, or set "
            "a part aside with ol.split, fit with it and score the rest."
        )
    if feedback.uniform or (isinstance(sample, Feedback) and _leaks(sample, feedback)):
        raise LeakError(
            f"{who}: this feedback is marked as a uniform sample, or has cells of the one that the model was "
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
