"""A Feedback and models as a source of Moments: probabilities, candidates, strata and outcomes, made once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Feedback, Floats, distinct
from openloop.core.metric import Metric
from openloop.core.moments import Moments
from openloop.core.weights import WeightSummary
from openloop.estimators import array_rows as rows_of
from openloop.estimators.array_rows import ArrayColumns, Outcome, Rows
from openloop.estimators.bounds import inverse_squares
from openloop.estimators.naming import Method
from openloop.estimators.requests import Request
from openloop.estimators.stratified import Bins, catalogue_cells, edges
from openloop.estimators.terms import Common, paired
from openloop.metrics.rating import MAX_LEVELS, midpoints
from openloop.scoring import Exclusion, dense_outcome, places, ranks
from openloop.tables import Table

MAX_GRID = 2**28  # cells whose Σ1/π² is worth the wait; above it Hoeffding's interval is not offered


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observation:
    """How the scored rows came to be seen: p of the log, its shares, and where known the whole grid of p."""

    values: Floats  # p of each scored row
    grid: Floats | None
    scored: Floats | None  # s of each row, None when unknown
    excluded: Floats  # t of each user: the share of the log that `exclude` is

    @classmethod
    def of(
        cls, values: Floats, grid: Floats | None, log: Feedback, exclude: Feedback | None, exclusion: Exclusion
    ) -> Observation:
        """The observation model of a log that may be one part of a split whose other part is excluded."""
        return cls(values=values, grid=grid, scored=log.share, excluded=_excluded_share(log, exclude, exclusion))

    def probability(self, user: npt.NDArray[np.int32]) -> Floats:
        """π = p·s / (1 − p·t): a candidate is observed in the scored part; p·s where nothing is excluded.

        Where s is not known, p: right up to a factor.
        """
        s = 1.0 if self.scored is None else self.scored
        return self.values * s / (1.0 - self.values * self.excluded[user])

    def inverse_squares(self, excluded: npt.NDArray[np.int64]) -> float | None:
        """Σ 1/π² over the candidate cells, where one share holds for all of them."""
        if self.grid is None or self.scored is None or np.ptp(self.scored) or np.ptp(self.excluded):
            return None
        if self.grid.size > MAX_GRID:
            return None
        s, t = self.scored[0], self.excluded[0]
        out = np.split(excluded % self.grid.shape[1], np.searchsorted(excluded, self._row_starts()))
        return sum(inverse_squares(_chance(row, s, t, gone)) for row, gone in zip(self.grid, out, strict=True))

    def _row_starts(self) -> npt.NDArray[np.int64]:
        n_users, n_items = self.grid.shape if self.grid is not None else (0, 0)
        return np.arange(1, n_users) * n_items


def _chance(p: Floats, s: float, t: float, excluded: npt.NDArray[np.int64]) -> Floats:
    """π of one user's cells; certain cells do not count in Σ1/π², and excluded ones neither."""
    chance = p * s / (1.0 - p * t)
    chance[excluded] = 1.0
    return chance


def _excluded_share(log: Feedback, exclude: Feedback | None, exclusion: Exclusion) -> Floats:
    """t of each user: the probability that the excluded part holds an observed row, 0 for a part of another log.

    Scored rows stay candidates: of an excluded part that holds some of them, only the rest leaves the ranking.
    """
    if exclude is None or exclude.share is None or not one_log(log, exclude):
        return np.zeros(log.n_users)
    held = np.bincount(exclude.user, minlength=log.n_users)
    left = np.diff(exclusion.ptr)
    if np.ptp(exclude.share) == 0:
        return np.full(log.n_users, exclude.share[0] * left.sum() / held.sum())
    share = np.zeros(log.n_users)
    share[exclude.user] = exclude.share  # one share for all rows of a user
    return share * left / np.maximum(held, 1)


def _other_users(log: Feedback, exclude: Feedback) -> bool:
    """Whether two parts of one log share no user."""
    if not one_log(log, exclude):
        return False
    scored, held = (np.bincount(part.user, minlength=log.n_users) > 0 for part in (log, exclude))
    return not bool(np.any(scored & held))


def overlap(log: Feedback, exclude: Feedback | None) -> int:
    """How many scored rows are also in an excluded log of another origin."""
    if exclude is None or one_log(log, exclude):
        return 0
    return len(places(log, exclude))


def one_log(log: Feedback, exclude: Feedback) -> bool:
    """Whether both are parts of one log, or one is the whole of which the other is a part."""
    if log.origin is None and exclude.origin is None and len(log) != len(exclude):
        return False  # two whole logs; no need to fingerprint them
    return (log.origin or log.fingerprint) == (exclude.origin or exclude.fingerprint)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class View:
    """What one kind of metric is estimated over: all cells for predictions, the candidates for rankings."""

    rows: Rows
    exclusion: Exclusion
    observation: Observation | None

    @classmethod
    def of(
        cls, log: Feedback, values: Floats | None, grid: Floats | None, exclude: Feedback | None, threshold: float
    ) -> View:
        """The view of a log under an exclusion."""
        if exclude is not None and _other_users(log, exclude):
            exclude = None  # whole users were split: no scored user has an item to leave out
        exclusion = Exclusion.of(exclude, log)
        seen = None if values is None else Observation.of(values, grid, log, exclude, exclusion)
        rating = log.rating.astype(np.float64)
        rows = Rows(
            user=log.user, rating=rating, relevant=_reach(rating, threshold), cells=exclusion.candidates,
            probability=None if seen is None else seen.probability(log.user), scaled=log.share is not None,
            middles=midpoints(distinct(rating)),
        )  # fmt: skip
        return cls(rows=rows, exclusion=exclusion, observation=seen)

    def stratified(self, strata: tuple[int, Bins] | None) -> Rows:
        """The rows in strata of p."""
        if strata is None or self.observation is None:
            return self.rows
        p = self.observation.values
        at = edges(p, *strata)
        return replace(self.rows, stratum=np.searchsorted(at, p), edges=at)

    def catalogue(self, at: tuple[float, ...]) -> Floats | None:
        """The cells of each user and stratum (U, S), where the grid of p is known."""
        if self.observation is None or self.observation.grid is None:
            return None
        return catalogue_cells(self.observation.grid, at, self.exclusion.cells)


def _reach(rating: Floats, threshold: float) -> Floats:
    """1 where a rating reaches the threshold, in the single precision that Feedback holds ratings in."""
    return (rating.astype(np.float32) >= np.float32(threshold)).astype(np.float64)


class FeedbackSource:
    """Answers requests from arrays; see `estimators.requests.Source`."""

    def __init__(
        self,
        models: Mapping[str, Any],
        log: Feedback,
        propensities: tuple[Floats | None, Floats | None],  # of the rows, and of the grid
        *,
        exclude: Feedback | None,
        threshold: float,
        predicted: Mapping[str, Floats],
        imputation: Any,
        floored: float | None = None,
        bounded: bool = True,  # whether Σ1/π² over the grid is wanted, for Hoeffding's interval
    ) -> None:
        self.models = tuple(models)
        self._models = models
        self._log = log
        self._threshold = threshold
        self._predicted = predicted
        self._imputation = imputation
        self._floored = floored
        self._bounded = bounded
        self.overlap = cache(lambda: overlap(log, exclude))
        # Only rankings lose what is excluded.
        self.view = cache(lambda on: View.of(log, *propensities, exclude if on == "rank" else None, threshold))
        # Work that several requests share is done once for this source.
        self.rows_for = cache(self._rows_for)
        self.common = cache(self._common)
        self.outcome = cache(self._outcome)
        self.ranked = cache(self._ranked)
        self.imputed = cache(self._imputed)
        self.inverse_squares = cache(self._inverse_squares)

    def refusal(self, metric: Metric, method: Method) -> str | None:
        """Why these rows cannot give that estimate."""
        what = f"{method.name} of {metric.name}"
        rows = self.view(metric.on).rows
        if metric.name == "accuracy" and rows.middles is None:
            return f"{what}: the log has more than {MAX_LEVELS} distinct ratings, which are no levels; use mae or mse."
        if method.weighted and rows.probability is None:
            return f"{what} needs propensities; pass them to evaluate, or read the log with propensity=."
        if method.weighted and metric.on == "rank" and self.overlap():
            return (
                f"{what}: {self.overlap():,} scored rows are in exclude= too, which is no part of the scored log, so "
                "the probability of a candidate is undefined; drop them from one of the two."
            )
        if metric.kind == "user" and not rows.relevant.any():
            return f"{what} is undefined: no scored rating reaches the threshold {self._threshold:g}; lower threshold=."
        return (
            self._unknown_share(metric, method)
            or self._unlisted(metric, method, what)
            or (self._unimputed(metric, what) if method.imputes else None)
        )

    def _unknown_share(self, metric: Metric, method: Method) -> str | None:
        share = self._log.share
        scaled = method.scale == "always" or (method.scale == "cell" and metric.kind == "cell")
        if not scaled or (share is not None and np.ptp(share) == 0):
            return None
        why = (
            "was split by time, so the probability that it observes a cell is known up to a factor only"
            if share is None
            else "leaves out a number of rows a user, so that users with few rows cannot be scored"
        )
        return f"{method.name} of {metric.name}: the scored part {why}; split by row, or use snips or stratified."

    def _unlisted(self, metric: Metric, method: Method, what: str) -> str | None:
        for name, model in self._models.items():
            reason = None
            if isinstance(model, Table):
                everywhere = method.imputes and not isinstance(self._imputation, Mapping)
                candidates = float(self.view("rank").exclusion.candidates.sum())
                reason = model.refusal(metric, candidates, everywhere=everywhere)
            if reason is not None:
                return f"{what}: model {name!r} {reason}"
        return None

    def _unimputed(self, metric: Metric, what: str) -> str | None:
        if self._imputation is None:
            return f"{what} needs imputed ratings or losses; pass imputation=."
        if isinstance(self._imputation, Mapping):
            for model in self.models:
                if (model, metric.name) not in self._imputation:
                    return f"{what}: imputation has no imputed losses of {model!r} by {metric.name}; add them."
        return None

    def summary(self, metric: Metric) -> WeightSummary | None:
        """The weights of the rows that count for a metric."""
        return self.common(metric.kind, metric.on, None).weights

    def moments(self, requests: Sequence[Request]) -> dict[Request, Moments]:
        """The moments of each request; a pair's are made of its models'."""
        found: dict[Request, Moments] = {}
        for request in sorted(requests, key=lambda r: len(r.models)):
            if len(request.models) == 1:
                found[request] = self._single(request)
                continue
            single = [self._like(found, request, model) for model in request.models]
            found[request] = paired(single[0], single[1], self._pair_sums(request))
        return found

    def _like(self, found: Mapping[Request, Moments], pair: Request, model: str) -> Moments:
        wanted = replace(pair.wanted, parts=False)
        single = replace(pair, models=(model,), wanted=wanted)
        return found[single] if single in found else self._single(single)

    def _single(self, r: Request) -> Moments:
        rows = self.rows_for(r.metric.kind, r.metric.on, r.strata)
        common = self.common(r.metric.kind, r.metric.on, r.strata)
        model = r.models[0]
        if r.imputed:
            residual, imputed = self.imputed(r.metric, model)
            return rows_of.residual_moments(r.metric, rows, residual, imputed, r.wanted, common)
        return rows_of.accumulate(r.metric, rows, self.outcome(model, r.metric), r.wanted, common)

    def _pair_sums(self, r: Request) -> dict[str, Floats]:
        rows = self.rows_for(r.metric.kind, r.metric.on, r.strata)
        a, b = r.models
        if r.imputed:
            difference = self.imputed(r.metric, a)[0] - self.imputed(r.metric, b)[0]
            return rows_of.residual_pair_sums(r.metric, rows, difference, r.wanted)
        outcomes = (self.outcome(a, r.metric), self.outcome(b, r.metric))
        return rows_of.pair_sums(r.metric, rows, *outcomes, r.wanted)

    def _common(self, kind: str, on: str, strata: tuple[int, Bins] | None) -> Common:
        view = self.view(on)
        rows = view.stratified(strata)
        counted = self.rows_for(kind, on, strata)
        return Common(
            cells=rows.cells, base=rows_of.base_sums(rows), weights=rows_of.weight_summary(counted),
            edges=rows.edges, catalogue=None if strata is None else view.catalogue(rows.edges),
            inverse_squares=self.inverse_squares(on) if self._bounded else None,
            scaled=rows.scaled, floored=self._floored,
        )  # fmt: skip

    def _inverse_squares(self, on: str) -> float | None:
        view = self.view(on)
        return None if view.observation is None else view.observation.inverse_squares(view.exclusion.cells)

    def _rows_for(self, kind: str, on: str, strata: tuple[int, Bins] | None) -> Rows:
        rows = self.view(on).stratified(strata)
        return rows if kind == "cell" else rows.take(rows.relevant > 0)

    def _outcome(self, model: str, metric: Metric) -> Outcome:
        if metric.on == "prediction":
            return Outcome(prediction=self._predicted[model])
        return self.ranked(model, relevant=metric.kind == "user")

    def _ranked(self, model: str, *, relevant: bool) -> Outcome:
        view = self.view("rank")
        log = self._log.take(view.rows.relevant > 0) if relevant else self._log
        return ranks(model, self._models[model], log, view.exclusion)

    def _imputed(self, metric: Metric, model: str) -> tuple[Floats, Floats]:
        """The residual δ − δ̂ of each row, and Σ_{C_u} δ̂ of each user."""
        view, log = self.view(metric.on), self._log
        delta = metric.gain(ArrayColumns(view.rows, self.outcome(model, metric)))
        if isinstance(self._imputation, Mapping):
            losses = np.asarray(self._imputation[model, metric.name], np.float64)  # (U, I)
            hat, total = losses[log.user, log.item], losses.sum(axis=1)
            user, item = np.unravel_index(view.exclusion.cells, losses.shape)
            np.subtract.at(total, user, losses[user, item])
        else:
            guessed = np.asarray(self._imputation, np.float64)[log.user, log.item]
            hat = metric.gain(ArrayColumns(self._rerated(view.rows, guessed), self.outcome(model, metric)))
            total = self._imputed_totals(metric, model)
        return delta - hat, total

    def _rerated(self, rows: Rows, rating: Floats) -> Rows:
        return replace(rows, rating=rating, relevant=_reach(rating, self._threshold))

    def _imputed_totals(self, metric: Metric, model: str) -> Floats:
        """Σ_{C_u} δ̂, a block of users at a time."""
        view, n_users, n_items = self.view(metric.on), self._log.n_users, self._log.n_items
        total = np.zeros(n_users)
        step = max(1, 2**21 // n_items)
        for start in range(0, n_users, step):
            users = np.arange(start, min(start + step, n_users))
            outcome, item = dense_outcome(model, self._models[model], self._log, view.exclusion, users, metric.on)
            rated = np.asarray(self._imputation[users], np.float64).ravel()[item]
            user = (start + item // n_items).astype(np.int32)
            rows = self._rerated(replace(view.rows, user=user, probability=None), rated)
            total += np.bincount(user, metric.gain(ArrayColumns(rows, outcome)), minlength=n_users)
        return total
