"""A Feedback and models as a source of Moments: probabilities, candidates, strata and outcomes, made once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Feedback, Floats
from openloop.core.metric import Metric
from openloop.core.moments import Moments
from openloop.core.weights import WeightSummary
from openloop.estimators import array_rows as rows_of
from openloop.estimators.array_rows import ArrayColumns, Outcome, Rows
from openloop.estimators.bounds import inverse_squares
from openloop.estimators.naming import Method
from openloop.estimators.requests import Request
from openloop.estimators.stratified import Bins, catalogue_shares, edges
from openloop.estimators.terms import Common, paired
from openloop.scoring import Exclusion, Table, dense_outcome, ranks

MAX_LEVELS = 64  # above that ratings are not levels, and accuracy says nothing


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observation:
    """How the scored rows came to be seen: p of the log, its shares, and where known the whole grid of p."""

    values: Floats  # p of each scored row
    grid: Floats | None
    scored: Floats | None  # s of each row, None when unknown
    excluded: Floats  # t of each user: the share of the log that `exclude` is

    @classmethod
    def of(cls, values: Floats, grid: Floats | None, log: Feedback, exclude: Feedback | None) -> Observation:
        """The observation model of a log that may be one part of a split whose other part is excluded."""
        return cls(values=values, grid=grid, scored=log.share, excluded=_excluded_share(log, exclude))

    def probability(self, user: npt.NDArray[np.int32]) -> Floats:
        """π = p·s / (1 − p·t): a candidate is observed in the scored part; p·s where nothing is excluded."""
        s = 1.0 if self.scored is None else self.scored
        return self.values * s / (1.0 - self.values * self.excluded[user])

    def inverse_squares(self, excluded: npt.NDArray[np.int64]) -> float | None:
        """Σ 1/π² over the candidate cells, where one share holds for all of them."""
        if self.grid is None or self.scored is None or np.ptp(self.scored) or np.ptp(self.excluded):
            return None
        chance = self.grid * self.scored[0] / (1.0 - self.grid * self.excluded[0])  # (U, I)
        chance[np.unravel_index(excluded, chance.shape)] = 1.0  # certain cells do not count, and these neither
        return inverse_squares(chance)


def _excluded_share(log: Feedback, exclude: Feedback | None) -> Floats:
    """t of each user; 0 where the excluded part was not split from the same log."""
    t = np.zeros(log.n_users)
    if exclude is None or exclude.origin is None or exclude.origin != log.origin or exclude.share is None:
        return t
    if np.ptp(exclude.share) == 0:
        return np.full(log.n_users, exclude.share[0])
    t[exclude.user] = exclude.share  # one share for all rows of a user
    return t


class FeedbackSource:
    """Answers requests from arrays; see `estimators.requests.Source`."""

    def __init__(
        self,
        models: Mapping[str, Any],
        log: Feedback,
        observation: Observation | None,
        *,
        exclude: Feedback | None,
        threshold: float,
        predicted: Mapping[str, Floats],
        imputation: Any,
    ) -> None:
        self.models = tuple(models)
        self._models = models
        self._log = log
        self._observation = observation
        self._excludes = exclude is not None
        self._exclusion = Exclusion.of(exclude, log)
        self._threshold = threshold
        self._predicted = predicted
        self._imputation = imputation
        self._rows = self._all_rows()
        # Work that several requests share is done once for this source.
        self.common = cache(self._common)
        self.outcome = cache(self._outcome)
        self.imputed = cache(self._imputed)

    def _all_rows(self) -> Rows:
        log, seen = self._log, self._observation
        rating = log.rating.astype(np.float64)
        levels = np.unique(rating)
        cells = self._exclusion.candidates
        if log.share is not None and np.ptp(log.share):
            # Shares that differ by user: a user without a scored row could not have had one.
            cells = np.where(np.bincount(log.user, minlength=log.n_users) > 0, cells, 0.0)
        return Rows(
            user=log.user, rating=rating, relevant=(rating >= self._threshold).astype(np.float64), cells=cells,
            probability=None if seen is None else seen.probability(log.user),
            middles=(levels[1:] + levels[:-1]) / 2 if len(levels) <= MAX_LEVELS else None,
        )  # fmt: skip

    def refusal(self, metric: Metric, method: Method) -> str | None:
        """Why these rows cannot give that estimate."""
        what = f"{method.name} of {metric.name}"
        if metric.name == "accuracy" and self._rows.middles is None:
            return f"{what}: the log has more than {MAX_LEVELS} distinct ratings, which are no levels."
        if method.weighted and self._observation is None:
            return f"{what} needs propensities; pass them to evaluate, or read the log with propensity=."
        if metric.kind == "user" and not self._rows.relevant.any():
            return f"{what} is undefined: no scored rating reaches the threshold {self._threshold:g}."
        return (
            self._unknown_share(metric, method)
            or self._unlisted(metric, what)
            or (self._unimputed(metric, what) if method.imputes else None)
        )

    def _unknown_share(self, metric: Metric, method: Method) -> str | None:
        seen = self._observation
        if not method.weighted or seen is None or seen.scored is not None:
            return None
        scaled = method.scale == "always" or (method.scale == "cell" and metric.kind == "cell")
        weighs = method.strata is None or (method.share == "catalogue" and seen.grid is None)
        if scaled or (self._excludes and weighs):
            return (
                f"{method.name} of {metric.name}: the scored part was split by time, so the probability that it "
                "observes a cell is not known; split by row, or use an estimator that needs no scale."
            )
        return None

    def _unlisted(self, metric: Metric, what: str) -> str | None:
        for name, model in self._models.items():
            if not isinstance(model, Table) or model.kind == "score":
                continue
            if metric.on == "prediction":
                return f"{what}: model {name!r} is a table of ranks, which has no predicted ratings."
            if metric.k is None or metric.k > model.depth:
                return (
                    f"{what}: model {name!r} is a top-{model.depth} list, which serves only @k with k ≤ {model.depth}."
                )
        return None

    def _unimputed(self, metric: Metric, what: str) -> str | None:
        if self._imputation is None:
            return f"{what} needs imputed ratings or losses; pass imputation=."
        if isinstance(self._imputation, Mapping):
            for model in self.models:
                if (model, metric.name) not in self._imputation:
                    return f"{what}: imputation has no imputed losses of {model!r} by {metric.name}."
        return None

    def summary(self, metric: Metric) -> WeightSummary | None:
        """The weights of the rows that count for a metric."""
        return self.common(metric.kind, None).weights

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
        rows, common = self._rows_for(r.metric.kind, r.strata), self.common(r.metric.kind, r.strata)
        model = r.models[0]
        if r.imputed:
            residual, imputed = self.imputed(r.metric, model)
            return rows_of.residual_moments(r.metric, rows, residual, imputed, r.wanted, common)
        return rows_of.accumulate(r.metric, rows, self.outcome(model, r.metric), r.wanted, common)

    def _pair_sums(self, r: Request) -> dict[str, Floats]:
        rows = self._rows_for(r.metric.kind, r.strata)
        a, b = r.models
        if r.imputed:
            difference = self.imputed(r.metric, a)[0] - self.imputed(r.metric, b)[0]
            return rows_of.residual_pair_sums(r.metric, rows, difference, r.wanted)
        outcomes = (self.outcome(a, r.metric), self.outcome(b, r.metric))
        return rows_of.pair_sums(r.metric, rows, *outcomes, r.wanted)

    def _common(self, kind: str, strata: tuple[int, Bins] | None) -> Common:
        everything, counted = self._stratified(strata), self._rows_for(kind, strata)
        seen = self._observation
        shares = None
        if strata is not None and seen is not None and seen.grid is not None:
            shares = catalogue_shares(seen.grid, everything.edges, self._exclusion.cells)
        return Common(
            cells=everything.cells, base=rows_of.base_sums(everything), weights=rows_of.weight_summary(counted),
            edges=everything.edges, shares=shares,
            inverse_squares=None if seen is None else seen.inverse_squares(self._exclusion.cells),
        )  # fmt: skip

    def _stratified(self, strata: tuple[int, Bins] | None) -> Rows:
        if strata is None or self._observation is None:
            return self._rows
        p = self._observation.values
        at = edges(p, *strata)
        return replace(self._rows, stratum=np.searchsorted(at, p), edges=at)

    def _rows_for(self, kind: str, strata: tuple[int, Bins] | None) -> Rows:
        rows = self._stratified(strata)
        return rows if kind == "cell" else rows.take(rows.relevant > 0)

    def _outcome(self, model: str, metric: Metric) -> Outcome:
        relevant = self._rows.relevant > 0
        if metric.on == "prediction":
            found = Outcome(prediction=self._predicted[model])
            return found if metric.kind == "cell" else found.take(relevant)
        if metric.kind == "cell":
            return self._ranked(model, metric.k, relevant=False)
        return self._ranked(model, metric.k, relevant=True)

    def _ranked(self, model: str, k: int | None, *, relevant: bool) -> Outcome:
        listed = isinstance(self._models[model], Table) and self._models[model].kind == "rank"
        return self.outcome_ranks(model, k if listed else None, relevant=relevant)

    def outcome_ranks(self, model: str, k: int | None, *, relevant: bool) -> Outcome:
        """The ranks of the rows, computed once for each model."""
        key = (model, k, relevant)
        cached = self.__dict__.setdefault("_ranks", {})
        if key not in cached:
            log = self._log.take(self._rows.relevant > 0) if relevant else self._log
            cached[key] = ranks(model, self._models[model], log, self._exclusion, k)
        return cached[key]

    def _imputed(self, metric: Metric, model: str) -> tuple[Floats, Floats]:
        """The residual δ − δ̂ of each row, and Σ_{C_u} δ̂ of each user."""
        x = ArrayColumns(self._rows, self.outcome(model, metric))
        delta = metric.gain(x)
        log = self._log
        if isinstance(self._imputation, Mapping):
            losses = np.asarray(self._imputation[model, metric.name], np.float64)  # (U, I)
            total = losses.sum(axis=1)
            np.subtract.at(total, *self._excluded_part(losses))
            return delta - losses[log.user, log.item], np.where(self._rows.cells > 0, total, 0.0)
        guessed = np.asarray(self._imputation, np.float64)[log.user, log.item]
        hat = metric.gain(ArrayColumns(self._rerated(self._rows, guessed), self.outcome(model, metric)))
        return delta - hat, self._imputed_totals(metric, model)

    def _excluded_part(self, losses: Floats) -> tuple[npt.NDArray[np.int64], Floats]:
        user, item = np.unravel_index(self._exclusion.cells, losses.shape)
        return user, losses[user, item]

    def _rerated(self, rows: Rows, rating: Floats) -> Rows:
        return replace(rows, rating=rating, relevant=(rating >= self._threshold).astype(np.float64))

    def _imputed_totals(self, metric: Metric, model: str) -> Floats:
        """Σ_{C_u} δ̂, a block of users at a time."""
        total = np.zeros(self._log.n_users)
        n_items = self._log.n_items
        step = max(1, 2**21 // n_items)
        for start in range(0, self._log.n_users, step):
            stop = min(start + step, self._log.n_users)
            outcome, item = dense_outcome(
                model, self._models[model], self._log, self._exclusion, start, stop, metric.on
            )
            rated = np.asarray(self._imputation[start:stop], np.float64).ravel()[item]
            user = (start + item // n_items).astype(np.int32)
            rows = self._rerated(
                Rows(user=user, rating=rated, relevant=rated, cells=self._rows.cells, middles=self._rows.middles), rated
            )
            total += np.bincount(user, metric.gain(ArrayColumns(rows, outcome)), minlength=self._log.n_users)
        return np.where(self._rows.cells > 0, total, 0.0)
