"""`NaiveBayes`: p depends on the rating alone; a small uniform sample shows how often each rating occurs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from openloop.core.feedback import Array, Feedback, Floats, check_fitted, distinct, frozen
from openloop.core.propensities import Propensities
from openloop.errors import InputError, RatingError, UndefinedError, listing
from openloop.propensity.base import PropensityEstimator, check_grid, row_counts
from openloop.propensity.frames.log_frame import LogFrame
from openloop.propensity.frames.lookups import RATING, Lookup
from openloop.propensity.samples import (
    MAX_LEVELS,
    Drawn,
    Ratings,
    levels_of,
    plain,
    refuse_sample,
    rows_by_level,
)
from openloop.support.arguments import generator, is_whole


class NaiveBayes(PropensityEstimator):
    """p by rating: P(O=1 | Y=r) = P(Y=r | O=1) · P(O=1) / P(Y=r), capped at 1 (Schnabel et al. 2016, Eq. 18).

    The log gives P(Y=r | O=1) and P(O=1). A uniform sample, ratings of cells drawn at random, gives P(Y=r), smoothed by
    Laplace's rule: (n_r + smoothing) / (n + smoothing·K), where K is the number of levels of log and sample. Ratings
    may be on any scale with few levels.

    Args:
        smoothing: What is added to the count of each rating in the sample; 1 is Laplace's rule, 0 is no smoothing.
        sample_size: The number of ratings of the sample to use, drawn by `rng` (Figure 4 of the paper); None uses all.
        rng: A seed or generator for `sample_size`.

    Attributes:
        propensity_by_rating_: The p of each rating in the log, a dictionary.
        levels_: The ratings of log and sample (K,), rising.
        observed_share_: P(Y=r | O=1) of each level (K,).
        population_share_: P(Y=r) of each level (K,).
        observation_rate_: P(O=1).
        sample_: What was learned from the sample.
        users_: The users of the log, a `Vocabulary`.
        items_: The items of the log, a `Vocabulary`.
        notes_: What the fit reports, a tuple of sentences.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.movie_lovers().observe(rng=0)
        >>> sample = [1] * 75 + [3] * 50 + [5] * 75
        >>> seen = ol.propensity.NaiveBayes().fit(log, uniform=sample)
        >>> {rating: round(p, 2) for rating, p in seen.propensity_by_rating_.items()}
        {1.0: 0.05, 3.0: 0.27, 5.0: 0.5}
    """

    assumes = "being observed depends on the rating alone"
    sees_rating = True

    def __init__(
        self, smoothing: float = 1.0, sample_size: int | None = None, rng: int | np.random.Generator | None = None
    ) -> None:
        self.smoothing = smoothing
        self.sample_size = sample_size
        self.rng = rng

    def fit(self, feedback: Feedback | Any, uniform: Any = None, **columns: Any) -> NaiveBayes:
        """Count the ratings of the log and of the uniform sample.

        Args:
            feedback: A log, or a frame, whose rows are counted in its engine.
            uniform: Ratings of cells drawn at random: a Feedback on any grid, a frame, or a list of ratings. A Feedback
                or frame that served as sample cannot be scored later; a list does not say where it comes from, so the
                library cannot guard against that.
            **columns: Only for a frame: `user`, `item` and `rating` name its columns, `population` is (users, items)
                where the log does not show everyone, `distinct=True` says that no pair is repeated.

        Returns:
            The fitted model itself.
        """
        _check_parameters(self)
        log = self._opened(feedback, columns, ["rating"])
        if isinstance(log, LogFrame):
            ratings, rows = log.rating_counts(MAX_LEVELS)
        else:
            ratings, rows = log.rating, row_counts(self, log)
        notes = self.fit_counts(ratings, rows, self._draw(uniform, log), log.n_users * log.n_items)
        return self._remember(log, *notes, uniform=uniform)

    def fit_counts(self, ratings: Ratings, rows: Floats, sample: Drawn, cells: int) -> Iterator[str]:
        """Find p from ratings and how many rows each of them represents.

        Args:
            ratings: Ratings of the log.
            rows: How many rows of the log each of these represents.
            sample: The uniform sample.
            cells: The number of cells of the grid.

        Returns:
            Notes about the fit.
        """
        levels = levels_of("NaiveBayes", ratings, sample.rating)  # (K,)
        in_log, in_sample = rows_by_level(levels, ratings, rows), rows_by_level(levels, sample.rating)
        _check_support(levels[(in_log > 0) & (in_sample + self.smoothing == 0)])
        self.levels_ = frozen(levels)
        self.observed_share_ = frozen(in_log / rows.sum())
        self.observation_rate_ = min(float(rows.sum()) / cells, 1.0)
        self.population_share_ = frozen(sample.shares(levels, self.smoothing))
        self.sample_ = sample.level_sample(levels, self.population_share_, float(rows.sum()))
        # Eq. 18
        p = self.observed_share_ * self.observation_rate_ / self.population_share_  # (K,)
        by_rating = zip(plain(levels), np.minimum(p, 1.0).tolist(), strict=True)
        self.propensity_by_rating_ = {r: value for r, value in by_rating if value > 0}
        return _notes(levels, p, in_log > 0, in_sample > 0)

    def _draw(self, uniform: Any, log: Feedback | LogFrame) -> Drawn:
        if uniform is None:
            raise InputError(
                "NaiveBayes: needs a uniform sample, ratings of cells drawn at random, to learn how often each rating "
                "occurs among all cells; pass fit(log, uniform=sample), or use Popularity or Logistic, which need "
                "none."
            )
        drawn = Drawn.of("NaiveBayes", uniform, log)
        if self.sample_size is None:
            return drawn
        return drawn.some("NaiveBayes", self.sample_size, generator("NaiveBayes", self.rng))

    def predict(self, feedback: Feedback) -> Propensities:
        """The p of each row's rating; refused for the sample itself.

        Args:
            feedback: A log, or a part of one, on the users and items of the fit.

        Returns:
            `Propensities` in Feedback order, with the fingerprint of `feedback`.
        """
        check_grid(self, feedback)
        refuse_sample("NaiveBayes", self.side_["uniform"], feedback)
        levels, p = self._by_rating()
        at = np.minimum(np.searchsorted(levels, feedback.rating), len(levels) - 1)
        unknown = distinct(feedback.rating[levels[at] != feedback.rating])
        if len(unknown):
            raise RatingError(
                f"NaiveBayes: no rating {listing(plain(unknown))} in the log it was fitted on, so their p is not "
                f"known; it has {listing(plain(levels))}. Fit on a log with all levels."
            )
        return self._found(feedback, p[at], sample=self.sample_, by_rating=True)

    def _by_rating(self) -> tuple[Ratings, Floats]:
        """The ratings that have a p, and their p."""
        return np.array(list(self.propensity_by_rating_), np.float32), np.array(
            list(self.propensity_by_rating_.values())
        )

    def frame_parts(self) -> tuple[Sequence[Lookup], Any]:
        """What is looked up for each row of a frame, and p as an expression of it.

        Returns:
            Lookups to join, and a narwhals expression of their columns.
        """
        levels, p = self._by_rating()
        return [Lookup(key=RATING, of=levels.astype(np.float64), columns={"openloop_p_rating": p})], nw.col(
            "openloop_p_rating"
        )

    def matrix(self) -> Floats:
        """Undefined: the p of a cell depends on its rating, which is known for observed cells only.

        Raises:
            UndefinedError: Always.
        """
        check_fitted(self)
        raise UndefinedError(
            "NaiveBayes: p depends on a cell's rating, which is known for observed cells only, so there is no matrix "
            "of all cells; predict(feedback) gives the p of the rows of a log."
        )


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
            f"NaiveBayes: the uniform sample has no rating {listing(plain(missing))}, which the log has, so "
            "their p would be infinite; pass smoothing=1, or a larger sample."
        )


def _notes(levels: Ratings, p: Floats, in_log: Array, in_sample: Array) -> Iterator[str]:
    if (p > 1).any():
        yield (
            f"p of ratings {listing(plain(levels[p > 1]))} came out above 1 and is capped at 1: the sample is too "
            "small for them, or not uniform"
        )
    if not in_sample.all():
        yield (
            f"ratings {listing(plain(levels[~in_sample]))} are in the log but not in the sample: their P(Y=r) comes "
            "from smoothing alone"
        )
    if not in_log.all():
        yield (
            f"ratings {listing(plain(levels[~in_log]))} are in the sample but not in the log: they have no p, and "
            "weighted estimates leave their cells out"
        )
