"""`Balanced`: another model's weights, moved to the population's ratings, margins and means."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from openloop.core.covariates import Covariates
from openloop.core.feedback import Array, Feedback, Floats, check_fitted, distinct, frozen
from openloop.core.levels import LevelSample
from openloop.core.positives import only_positives
from openloop.core.propensities import Propensities
from openloop.errors import BalanceWarning, InputError, RatingError, UndefinedError, listing
from openloop.propensity.base import PropensityEstimator, check_grid, refuse_frame, row_counts
from openloop.propensity.cell_means import CellMeans
from openloop.propensity.checks.held_out import refit, unfitted
from openloop.propensity.frames.level_cells import level_of
from openloop.propensity.frames.log_frame import LogFrame
from openloop.propensity.frames.lookups import ITEM, RATING, Lookup
from openloop.propensity.samples import Drawn, Ratings, plain, refuse_sample
from openloop.propensity.solvers.calibration import FEWEST, Raked
from openloop.propensity.targets import Target, level_shares, margins_of, means_of, moved, refuse_unreached
from openloop.propensity.weighed_rows import WeighedRows, item_factors, thin
from openloop.support.wording import percent

MAX_GROUPS = 10  # of ratings: finer scales are balanced by so many groups


class Balanced(PropensityEstimator):
    """Another model's weights w, balanced: w′ = w·g_r·h_i has the population's share of each rating level r.

    This is calibration of weights (Deville & Särndal 1992).

    `fit(log, uniform=sample)` fits a copy of `model`. The shares come from ratings of cells drawn at random, smoothed:
    π̂_r = (n_r + 1)/(n₀ + L); 200 ratings are enough. Where the model has fitted each item's p, it has mistaken an
    effect of the ratings for one of the item. Each item then keeps its Σw, if the item of the median row has 20 rows
    and such weights exist. Scales of over ten levels are balanced by ten groups. If the log has no row of a level, the
    neighbouring levels get its share.

    `margins` and `functions` are further targets; with either, the sample is optional, and w′ ∝ w·exp(μᵀh).

    `fit(log, predictions=f)` balances f and f², whose means over all cells are known, which reduces the noise of
    estimated errors of f. `imputed=g`, ratings predicted without the scored rows, adds the losses |f − g| and (f − g)².

    A balanced weight may be below 1, and its p above 1.

    Args:
        model: A propensity model.
        margins: Shares of categories, {"age": {"18-25": 0.2, …}}, of columns of the features given to `fit`.
        functions: Means over the population, {"name": (h, mean)}, with h a function of the users, items (codes) and
            ratings of rows.

    Attributes:
        inner_: The fitted copy of `model`.
        sample_: What was learned from the sample; None without one.
        levels_: The levels, or groups, of ratings; None without a sample.
        factors_: g of each level; None without a sample.
        item_factors_: h of each item (I,). After a fit on a frame: of `factor_items_`, with the one of all others last.
        factor_items_: The items that `item_factors_` are about.
        keeps_items_: Whether each item keeps its Σw.
        unseen_share_: The population's share of levels without a row.
        by_rating_: Whether weights depend on the rating alone.
        targets_: What was balanced.
        mu_: μ of each target.
        thin_: Why the rows cannot carry the means of predictions; empty if they can.
        users_: The users of the log, a `Vocabulary`.
        items_: The items of the log, a `Vocabulary`.
        notes_: What the fit reports, a tuple of sentences.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.movie_lovers().observe(rng=0)
        >>> sample = [1] * 75 + [3] * 50 + [5] * 75
        >>> seen = ol.propensity.Balanced(ol.propensity.Logistic()).fit(log, uniform=sample)
        >>> w = seen.predict(log).weights
        >>> {rating: round(float(w[log.rating == rating].sum() / w.sum()), 2) for rating in (1, 3, 5)}
        {1: 0.37, 3: 0.25, 5: 0.37}
    """

    def __init__(
        self,
        model: Any,
        margins: Mapping[str, Mapping[Any, float]] | None = None,
        functions: Mapping[str, tuple[Any, float]] | None = None,
    ) -> None:
        self.model: Any = model
        self.margins = margins
        self.functions = functions

    @property
    def assumes(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What is assumed."""
        name = type(self.model).__name__
        return f"being observed depends on what {name} uses and, by one factor each, on what was balanced"

    @property
    def sees_rating(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the weights depend on ratings, by a sample or by the inner model."""
        return getattr(self, "sample_", None) is not None or getattr(self.model, "sees_rating", False)

    @property
    def fits_items(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether items keep the Σw that the model has fitted."""
        return getattr(self, "keeps_items_", False)

    def fit(
        self,
        feedback: Feedback | Any,
        uniform: Any = None,
        *,
        predictions: Any = None,
        imputed: Any = None,
        user_features: Any = None,
        item_features: Any = None,
        **columns: Any,
    ) -> Balanced:
        """Fit the model, then change its weights as little as the targets allow.

        Args:
            feedback: A log, or a frame if `model` takes frames; a frame is balanced by ratings alone, in its engine.
            uniform: Ratings of cells drawn at random: a Feedback on any grid, a frame or a list.
            predictions: A recommender, an array (U, I), or {name: model} to compare models by one set of weights. They
                must not have been trained on the scored rows.
            imputed: Ratings predicted without the scored rows: a recommender or an array (U, I).
            user_features: `Covariates` of users, or an array, for `model` and `margins`.
            item_features: The same for items.
            **columns: Only for a frame: `user`, `item` and `rating` name its columns, `population` is (users, items)
                where the log does not show everyone, `distinct=True` says that no pair is repeated.

        Returns:
            The fitted model itself.
        """
        log = self._opened(feedback, columns, ["rating"])
        known = predictions is not None or imputed is not None
        if isinstance(log, LogFrame):
            side = {"uniform": uniform, "predictions": predictions, "imputed": imputed,
                    "user_features": user_features, "item_features": item_features}  # fmt: skip
        else:
            means = CellMeans.of(predictions, imputed, log) if known else None
            side = {
                "uniform": uniform, "predictions": means,
                "user_features": Covariates.of(user_features, log.users, "user"),
                "item_features": Covariates.of(item_features, log.items, "item"),
            }  # fmt: skip
        given = {name: value for name, value in side.items() if value is not None}
        self._check(log, given)
        taken = {name: value for name, value in given.items() if name in _taken(self.model)}
        fitted = self._balance(log, unfitted(self.model).fit(log, **taken), given)
        if self.thin_:
            warnings.warn(f"Balanced: {self.thin_}", BalanceWarning, stacklevel=2)
        return fitted

    def refit(self, feedback: Feedback) -> Balanced:
        """A fresh copy, fitted on another part of the log with the same sample, margins and choices of the model.

        Args:
            feedback: Another part of the log.

        Returns:
            The new fitted model; this one is unchanged.
        """
        check_fitted(self)
        fresh = Balanced(self.model, self.margins, self.functions)
        return fresh._balance(feedback, refit(self.inner_, feedback), self.side_)

    def _check(self, log: Feedback | LogFrame, given: Mapping[str, Any]) -> None:
        if isinstance(log, LogFrame):
            self._check_frame(log, given)
        if log.positives if isinstance(log, Feedback) else only_positives(*log.rating_range()):
            raise UndefinedError(
                "Balanced: this log holds positives only, so it has no ratings to balance, and the model's p are the "
                "chance of being shown and liked; give the chance of being shown as a column of the log."
            )
        if not {"uniform", "predictions"} & given.keys() and not self.margins and not self.functions:
            raise InputError(
                "Balanced: needs to know something about the population; pass fit(log, uniform=sample), ratings of "
                "cells drawn at random, or fit(log, predictions=model), or margins= or functions=."
            )

    def _check_frame(self, log: LogFrame, given: Mapping[str, Any]) -> None:
        """A frame's weights are balanced by ratings alone: all else would need its rows, or all cells, in memory."""
        if getattr(type(self.model), "frame_parts", None) in (None, PropensityEstimator.frame_parts):
            refuse_frame(self.model, log, {})
        others = [*given, *(name for name in ("margins", "functions") if getattr(self, name))]
        for name in others:
            if name != "uniform":
                raise InputError(
                    f"Balanced: {name}= does not apply: the log is a frame, whose weights are balanced by the ratings "
                    "of uniform= alone; read the log with ol.read."
                )

    def _balance(self, log: Feedback | LogFrame, inner: Any, given: dict[str, Any]) -> Balanced:
        self.inner_: Any = inner
        self._learn_levels(log, given.get("uniform"))
        weighed = WeighedRows.of(log, inner, self.levels_)
        rows, w = weighed.rows, weighed.w
        notes = [*getattr(inner, "notes_", ()), *self._level_notes(rows.rating)]
        self.targets_ = tuple(self._targets(rows.rating, given))
        found, why = self._calibrated(weighed)
        self.mu_, self.thin_ = found.mu, thin(self.targets_, w, found) if self._means else ""
        others = len(self.targets_) - 1 - (self._means is not None)  # predictions say nothing about who saw what
        self.by_rating_ = weighed.alone and self.sample_ is not None and not others
        tilted = w * np.exp(self._tilt(rows, found.mu))
        self.factor_items_ = rows.items
        self.item_factors_ = frozen(item_factors(rows, w, tilted, by_item=self.keeps_items_))
        self.factors_ = None if self.sample_ is None else frozen(np.exp(found.mu[: len(self.sample_)]))
        return self._remember(log, *notes, *why, *([self.thin_] if self.thin_ else ()), **given)

    @property
    def _means(self) -> CellMeans | None:
        """The functions of predictions."""
        return next((target for target in self.targets_ if isinstance(target, CellMeans)), None)

    def _learn_levels(self, log: Feedback | LogFrame, uniform: Any) -> None:
        """What the sample says of the ratings."""
        self.sample_: LevelSample | None = None
        self.levels_, self.unseen_share_, self.grouped_ = None, 0.0, False
        if uniform is None:
            return
        drawn = Drawn.of("Balanced", uniform, log)
        if isinstance(log, LogFrame):
            ratings, rows = log.few_ratings(MAX_GROUPS), float(log.rows)
        else:
            ratings, rows = log.rating, float(row_counts(self, log).sum())
        levels = distinct(np.concatenate([distinct(ratings), distinct(drawn.rating)]))
        self.grouped_ = len(levels) > MAX_GROUPS
        levels = _groups(levels, drawn.rating) if self.grouped_ else levels
        self.sample_ = drawn.level_sample(levels, drawn.shares(levels, 1.0), rows)
        self.levels_ = self.sample_.levels

    def _level_notes(self, rating: Array) -> list[str]:
        """What there is to note about the levels, for a log with these ratings."""
        sample = self.sample_
        if sample is None:
            return []
        self.unseen_share_ = sample.unseen(rating)
        return list(_level_notes(sample, sample.present(rating), self.unseen_share_, grouped=self.grouped_))

    def _targets(self, rating: Array, given: Mapping[str, Any]) -> Iterator[Target]:
        """Ratings first, so that the first of μ are theirs."""
        if self.sample_ is not None:
            yield level_shares(self.sample_, self.sample_.present(rating))
        yield from margins_of(self.margins or {}, given.get("user_features"), given.get("item_features"))
        yield from means_of(self.functions or {})
        if "predictions" in given:
            yield given["predictions"]

    def _calibrated(self, weighed: WeighedRows) -> tuple[Raked, list[str]]:
        """With items' sums kept where that can be done, and why where it cannot."""
        rows, w, median = weighed.rows, weighed.w, weighed.typical
        self.keeps_items_, notes = False, list[str]()
        # A model has absorbed nothing of predictions: with items' sums kept, RMSE was up to 15 % larger than without.
        alone = len(self.targets_) == 1 and self._means is not None
        if getattr(self.inner_, "fits_items", False) and not alone:
            if median < FEWEST:
                notes.append(
                    f"items do not keep their sums of weights: the median row's item has {median:.0f} rows, and "
                    f"{FEWEST} are needed"
                )
            elif (found := moved(self.targets_, rows, w, rows.item)).converged:
                self.keeps_items_ = True
                return found, notes
            else:
                notes.append(
                    "items do not keep their sums of weights: no weights meet these sums and the other targets"
                )
        found = moved(self.targets_, rows, w)
        refuse_unreached(self.targets_, found, weighed.size)
        return found, notes

    def _tilt(self, feedback: Any, mu: Floats) -> Floats:
        """μᵀh of each row."""
        ends = np.cumsum([len(target.names) for target in self.targets_])
        parts = np.split(mu, ends[:-1])
        return np.sum([target.tilt(feedback, part) for target, part in zip(self.targets_, parts, strict=True)], axis=0)

    def predict(self, feedback: Feedback) -> Propensities:
        """1/w′ of each row, and the model's own p as `base`; refused for the sample itself.

        Args:
            feedback: A log, or a part of one, on the users and items of the fit.

        Returns:
            `Propensities` in Feedback order, with the fingerprint of `feedback`.
        """
        check_grid(self, feedback)
        refuse_sample("Balanced", self.side_.get("uniform"), feedback)
        self._check_ratings(feedback.rating)
        p = self.inner_.predict(feedback).used
        values = p * np.exp(-self._tilt(feedback, self.mu_)) / self._factors_of(feedback)
        return self._found(feedback, values, base=p, sample=self.sample_, by_rating=self.by_rating_, means=self._means)

    def _factors_of(self, feedback: Feedback) -> Floats:
        """h of each row."""
        if self.frame_ is None:
            return self.item_factors_[feedback.item]
        return self.item_factors_[self.factor_items_.find(feedback.items.ids)][feedback.item]  # -1: of all others

    def frame_parts(self) -> tuple[Sequence[Lookup], Any]:
        """What is looked up for each row of a frame, and p as an expression of it.

        Returns:
            Lookups to join, and a narwhals expression of their columns.
        """
        if self.sample_ is None or len(self.targets_) > 1:
            raise UndefinedError(
                "Balanced: only weights that are balanced by ratings alone can be a column of a frame; these are also "
                "balanced by what is known of rows in memory: predict(feedback) gives their p."
            )
        lookups, p = self.inner_.frame_parts()
        h: Any = nw.lit(float(self.item_factors_[-1]))
        own = [Lookup(key=RATING, of=self.sample_.levels, others=self.grouped_)]  # else others have no weight
        if self.keeps_items_:
            h, there = nw.col("openloop_h"), len(self.factor_items_)
            columns, last = {"openloop_h": self.item_factors_[:there]}, {"openloop_h": float(self.item_factors_[-1])}
            own.append(
                Lookup(key=ITEM, of=self.factor_items_, columns=columns, others=bool(self.frame_), otherwise=last)
            )
        return (*lookups, *own), p * (-_chosen(self.mu_, self.sample_.levels)).exp() / h

    def _check_ratings(self, rating: Array) -> None:
        """A rating that neither log nor sample had belongs to no level, unless levels are groups."""
        if self.sample_ is None or self.grouped_:
            return
        unknown = np.setdiff1d(rating, self.sample_.levels)
        if len(unknown):
            raise RatingError(
                f"Balanced: no rating {listing(plain(unknown))} in the log or sample it was fitted on, so their weight "
                f"is not known; they have {listing(plain(self.sample_.levels))}. Fit on a log with all levels."
            )

    def matrix(self) -> Floats:
        """Undefined: a balanced weight is not 1 over a probability, and may depend on a rating that is not known.

        Raises:
            UndefinedError: Always.
        """
        check_fitted(self)
        raise UndefinedError(
            "Balanced: weights belong to the rows of a log, and may depend on ratings, which are known for observed "
            "cells only. So there is no matrix of all cells; predict(feedback) gives the p of rows."
        )


def _chosen(values: Floats, levels: Floats) -> Any:
    """The value of each row's level."""
    chosen: Any = nw.lit(float(values[0]))
    code = level_of(levels)
    for r, value in enumerate(values[1:].tolist(), 1):
        chosen = nw.when(code >= r).then(value).otherwise(chosen)
    return chosen


def _groups(levels: Ratings, sample: Ratings) -> Ratings:
    """Where ten groups of ratings begin, of about equal shares of the population."""
    cuts = np.quantile(sample, np.arange(1, MAX_GROUPS) / MAX_GROUPS, method="inverted_cdf")
    return distinct(np.concatenate([levels[:1], cuts.astype(np.float32)]))


def _level_notes(sample: LevelSample, present: Array, unseen: float, *, grouped: bool) -> Iterator[str]:
    if grouped:
        starts = listing(plain(sample.levels), MAX_GROUPS)
        yield f"ratings are balanced by {len(sample)} groups, which begin at {starts}"
    if not present.all():
        yield (
            f"the log has no row of ratings {listing(plain(sample.levels[~present]))}, whose share of the population "
            f"is {percent(unseen)}: it is given to the neighbouring levels"
        )


def _taken(model: Any) -> set[str]:
    """What the fit of a model takes beside the feedback; that of Calibrated what the model within it takes."""
    while hasattr(model, "model"):
        model = model.model
    return set(inspect.signature(model.fit).parameters)
