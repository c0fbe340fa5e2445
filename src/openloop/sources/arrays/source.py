"""A Feedback and models as a source of Moments: probabilities, candidates, strata and outcomes, made once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np

from openloop.core.feedback import Feedback, Floats, distinct
from openloop.core.levels import LevelSample
from openloop.core.metric import Metric, reaches
from openloop.core.moments import Moments
from openloop.core.tilts import Tilts
from openloop.core.weights import WeightSummary
from openloop.estimators.naming import Method
from openloop.metrics.rating import MAX_LEVELS
from openloop.propensity.cell_means import CellMeans
from openloop.sources import remarks
from openloop.sources.arrays import rows as rows_of
from openloop.sources.arrays.lists import ArrayLists
from openloop.sources.arrays.rows import ArrayColumns, Outcome, Rows
from openloop.sources.arrays.tilting import Tilter
from openloop.sources.balancing import balanced_probability, candidate_levels, part_targets, with_leverage
from openloop.sources.masks import Masks
from openloop.sources.observation import Group, View, overlap, unscaled
from openloop.sources.outcomes import Exclusion, Partial, answers_of, dense_outcome, predictions, predicts, ranks
from openloop.sources.plan import LEVELS, MAX_LISTED, Answers, LogFacts, Request, Strata, StrataFacts, strata_names
from openloop.sources.predictions import Predictions
from openloop.sources.question import Question
from openloop.sources.relevance import of_log
from openloop.sources.rules import Coverage, one_score
from openloop.sources.terms import Common, assemble, paired


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scored:
    """A log and models as they are scored: everything checked, and resolved from what was asked."""

    models: Mapping[str, Any]
    log: Feedback
    threshold: float
    predicted: Mapping[str, Floats]  # of each row, by model
    exclude: Feedback | None = None
    propensity: Floats | None = None  # of each row
    grid: Floats | None = None  # of each cell, where it is known
    floored: float | None = None  # the share of propensities that a floor raised
    kept_weight: float | None = None  # Σ1/max(p, floor) over Σ1/p
    by_items: bool = False  # propensities were fitted to each item's rows of this log
    sample: LevelSample | None = None  # the uniform sample that they were fitted with
    base: Floats | None = None  # of each row, before propensities were balanced, which are not probabilities any more
    means: CellMeans | None = None  # of functions of predictions, which they were balanced to
    imputation: Any = None  # ratings (U, I), or losses by (model, metric)
    groups: Mapping[str, Group] = field(default_factory=dict[str, Group])
    bounded: bool = True  # whether Σ1/π² over the grid is needed, for Hoeffding's interval
    dropped: int = 0  # rows that some model does not predict
    filled: Mapping[str, int] = field(default_factory=dict[str, int])  # rows whose prediction is the furthest rating
    device: Any = None  # where ranks are counted

    def view(self, on: str) -> View:
        """What metrics of one kind are estimated over: only rankings lose what is excluded."""
        exclude = self.exclude if on == "rank" else None
        if self.base is None:
            return View.of(self.log, self.propensity, self.grid, exclude, self.threshold, self.groups)
        view = View.of(self.log, self.base, None, exclude, self.threshold, self.groups, scaled=False)
        # Strata of p before it was balanced would leave inside them what balancing corrects.
        seen: Any = view.observation
        return replace(view, rows=self._balanced(view, exclude), observation=replace(seen, values=self.propensity))

    @property
    def balanced(self) -> bool:
        """Whether propensities were balanced."""
        return self.base is not None

    def _balanced(self, view: View, exclude: Feedback | None) -> Rows:
        pi, p, base = (np.asarray(x) for x in (view.rows.probability, self.propensity, self.base))
        cells, tilt = float(view.rows.cells.sum()), base / p  # |C|; w′/w of the whole log
        levels = None if self.sample is None else candidate_levels(self.sample, self.log, exclude, view.exclusion)
        targets = part_targets(self.sample, levels, self._part_means())
        balanced = balanced_probability(tilt / pi, cells, self.log, tuple(targets))
        return replace(view.rows, probability=balanced, unbalanced=float((1.0 / pi).sum()) / cells)

    def _part_means(self) -> CellMeans | None:
        """The means of functions of predictions, for metrics of both kinds over what is not excluded.

        A model predicts the cells that it was trained on unlike all others, and no scored row is like them.
        """
        if self.means is None or self.exclude is None:
            return self.means
        gone = Exclusion.of(self.exclude, self.log)
        return self.means.without(gone.user, gone.item)

    def sample_for(self, on: str, view: View) -> LevelSample | None:
        """The uniform sample, as metrics of one kind depend on it."""
        if self.sample is None or self.exclude is None or on != "rank":
            return self.sample
        if self.balanced:
            cells = self.log.n_users * self.log.n_items * self.sample.shares
            left = candidate_levels(self.sample, self.log, self.exclude, view.exclusion)
            return with_leverage(self.sample, cells, left)
        s, level = 1.0 if self.log.share is None else self.log.share, self.sample.codes(self.log.rating)
        weights = (1.0 / (np.asarray(self.propensity) * s), 1.0 / np.asarray(view.rows.probability))  # 1/(p·s), 1/π
        whole, left = (np.bincount(level, w, len(self.sample)).astype(np.float64) for w in weights)
        return with_leverage(self.sample, whole, left)


class FeedbackSource:
    """Answers requests from arrays; see `sources.plan.Source`. Work that several requests share is done once."""

    in_one_pass = False

    def __init__(self, scored: Scored) -> None:
        self.models = tuple(scored.models)
        self.levelled = scored.sample is not None
        self._scored = scored
        self._log = scored.log
        self.overlap = cache(lambda: overlap(scored.log, scored.exclude))
        self.view = cache(scored.view)
        self.stratified = cache(lambda on, strata: self.view(on).stratified(strata))
        self.rows_for, self.about = cache(self._rows_for), cache(self._about)
        self.coverage, self.relevance = cache(self._coverage), lambda: of_log(self._log, scored.threshold)
        self.answers, self.common = cache(self._answers), cache(self._common)
        self.catalogue = cache(lambda on, strata: self.view(on).catalogue(strata, self.stratified(on, strata).edges))
        self.outcome = cache(self._outcome)
        self.gains = lru_cache(maxsize=2 * len(self.models))(self._gains)  # those of one metric
        self.ranked = cache(self._ranked)
        self.imputed, self.inverse_squares = cache(self._imputed), cache(self._inverse_squares)
        self._flat: dict[str, int] = {}  # users whose candidates all have one score, by model
        self._masks: dict[str, Masks] = {}  # scores of -inf, by model
        self.tilter = cache(lambda on: Tilter.of(scored, self.view(on)))

    @property
    def form(self) -> str:
        """What wrong propensities change: their odds, or where these have no scale the weight."""
        return "odds" if self._log.share is not None and not self._scored.balanced else "ratio"

    @property
    def subject(self) -> Scored:
        """What is scored, checked and resolved."""
        return self._scored

    def refusal(self, metric: Metric, method: Method) -> str | None:
        """Why these rows cannot give that estimate."""
        what = f"{method.name} of {metric.name}"
        rows = self.view(metric.on).rows
        if metric.name == "accuracy" and rows.middles is None:
            return f"{what}: the log has more than {MAX_LEVELS} distinct ratings, too many for levels; use mae or mse."
        if method.weighted and rows.probability is None:
            return f"{what} needs propensities; pass them to evaluate, or read the log with propensity=."
        if method.weighted and metric.on == "rank" and self.overlap():
            return remarks.undefined_candidates(what, self.overlap())
        if metric.kind == "user" and not rows.relevant.any():
            return remarks.not_reached(what, self._scored.threshold)
        return (
            self._unknown_share(metric, method)
            or self._uncovered(metric, method, what)
            or (self._unimputed(metric, what) if method.imputes else None)
        )

    def _unknown_share(self, metric: Metric, method: Method) -> str | None:
        share = self._log.share
        if not remarks.needs_scale(metric, method) or (share is not None and np.ptp(share) == 0):
            return None
        why = unscaled(self._log) if share is None else remarks.BY_COUNT
        return remarks.unknown_share(f"{method.name} of {metric.name}", why, lost=share is None)

    def _uncovered(self, metric: Metric, method: Method, what: str) -> str | None:
        everywhere = method.imputes and not isinstance(self._scored.imputation, Mapping)
        for name in self.models:
            reason = self.coverage(name).refusal(metric, everywhere=everywhere)
            if reason is not None:
                return f"{what}: model {name!r} {reason}"
        return None

    def _coverage(self, name: str) -> Coverage:
        """What a model's predictions hold; a recommender or an array has the scores of every cell."""
        model, predicted = self._scored.models[name], name in self._scored.predicted
        if not isinstance(model, Predictions):
            return Coverage(predicted=predicted)
        return model.coverage(float(self.view("rank").exclusion.candidates.sum()), predicted=predicted)

    def _unimputed(self, metric: Metric, what: str) -> str | None:
        if self._scored.imputation is None:
            return f"{what} needs imputed ratings or losses; pass imputation=."
        if isinstance(self._scored.imputation, Mapping):
            for model in self.models:
                if (model, metric.name) not in self._scored.imputation:
                    return f"{what}: imputation has no imputed losses of {model!r} by {metric.name}; add them."
        return None

    def summary(self, metric: Metric) -> WeightSummary | None:
        """The weights of the rows that count for a metric."""
        return self.common(metric.kind, metric.on, None).weights

    def mass(self, on: str) -> float | None:
        """Σw of all scored rows over the candidates; where shares differ by user, not all users can be scored."""
        share = self._log.share
        return self.common("cell", on, None).mass if share is not None and np.ptp(share) == 0 else None

    def unlisted(self, model: str) -> float:
        """The share of scored rows whose users have no list of a model."""
        given = self._scored.models[model]
        return given.unlisted(self._log) if isinstance(given, Predictions) else 0.0

    def weight_on_rare(self, fewest: int) -> tuple[float, int] | None:
        """The share of Σw on items with fewer rows in the whole log, and the rows on others."""
        weight, log = self.view("prediction").rows.weight(), self._log
        if weight is None or self._scored.dropped:
            return None
        rare = log.rows_of_items[log.item] < fewest
        return float(weight[rare].sum() / weight.sum()), len(log) - int(rare.sum())

    def listed(self, metric: Metric) -> dict[str, float]:
        """Σwc/Σw of each model over all scored rows, c what a row would gain if everything were liked.

        Models rank the same candidates, so with right weights they all have the same.
        """
        rows, liked = self.view("rank").rows, np.ones(len(self._log))
        weight, everything = np.asarray(rows.weight()), replace(rows, rating=liked, relevant=liked)
        ranked = {model: ArrayColumns(everything, self.ranked(model, relevant=False)) for model in self.models}
        return {model: float(np.average(metric.gain(columns), weights=weight)) for model, columns in ranked.items()}

    def _about(self) -> LogFacts:
        """What is scored."""
        levels, counts = np.unique(self._log.rating, return_counts=True)
        weight = None if self._scored.propensity is None else self.view("prediction").rows.weight()
        span, listed = (float(levels[0]), float(levels[-1])), len(levels) <= MAX_LISTED
        return LogFacts(
            rows=len(self._log), users=self._log.n_users, items=self._log.n_items,
            scored_users=len(distinct(self._log.user)), span=span,
            ratings=tuple(zip(levels.tolist(), counts.tolist(), strict=True)) if listed else (),
            masses=() if weight is None or not listed
            else tuple(np.bincount(np.searchsorted(levels, self._log.rating), weight).tolist()),
            threshold=self._scored.threshold, dropped=self._scored.dropped,
            excluded=None if self._scored.exclude is None else len(self._scored.exclude),
        )  # fmt: skip

    def _answers(self, model: str) -> Answers | None:
        """What a model says of the scored rows."""
        if not predicts(self._scored.models[model]):
            return None
        values = self._scored.predicted.get(model)
        values = predictions(model, self._scored.models[model], self._log, lenient=True) if values is None else values
        filled = self._scored.filled.get(model, 0) / len(self._log)
        return None if values is None else answers_of(values, self._log.rating, filled)

    def facts(self, strata: Strata) -> StrataFacts:
        """What the scored rows of each stratum are."""
        rows = self.stratified("prediction", strata)
        stratum = np.zeros(len(rows), np.int64) if rows.stratum is None else rows.stratum
        pairs = distinct(stratum * self._log.n_items + self._log.item)
        names = self._scored.groups[strata][0] if isinstance(strata, str) else strata_names(rows.n_strata)
        return StrataFacts(
            names=names,
            rows=tuple(np.bincount(stratum, minlength=rows.n_strata).tolist()),
            items=tuple(np.bincount(pairs // self._log.n_items, minlength=rows.n_strata).tolist()),
            limits=(None,) * rows.n_strata if rows.limits is None else tuple((a, b) for a, b in rows.limits.tolist()),
        )

    def scored(self, metric: Metric, models: Sequence[str]) -> tuple[Rows, list[Outcome]] | None:
        """The rows that count for a metric, and what each model makes of them."""
        return self.rows_for(metric.kind, metric.on, None), [self.outcome(model, metric) for model in models]

    def lists(self, asked: Question) -> ArrayLists:
        """What models list for users, of the candidates of rankings."""
        coverage = {name: self.coverage(name) for name in self.models}
        return ArrayLists(self._scored.models, self._log, self.view("rank").exclusion, coverage, asked)

    def close(self) -> None:
        """Nothing to do: rows in memory are freed when nothing refers to them."""

    def tilts(self, metrics: Sequence[Metric], pairs: Sequence[tuple[str, str]]) -> list[Tilts]:
        """Sums of tilted weights of the rows that count for each metric."""
        return [self._tilts(metric, pairs) for metric in metrics]

    def _tilts(self, metric: Metric, pairs: Sequence[tuple[str, str]]) -> Tilts:
        rows, counted = self.rows_for(metric.kind, metric.on, None), self.view(metric.on).rows.relevant > 0
        gains = {model: self.gains(metric, model, None) for model in self.models}
        return self.tilter(metric.on).sums(rows, gains, pairs, None if metric.kind == "cell" else counted)

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
        single = pair.single(model)
        return found[single] if single in found else self._single(single)

    def _single(self, r: Request) -> Moments:
        rows = self.rows_for(r.metric.kind, r.metric.on, r.strata)
        common = self.common(r.metric.kind, r.metric.on, r.strata)
        model = r.models[0]
        delta, imputed = self.imputed(r.metric, model) if r.imputed else (self.gains(r.metric, model, r.strata), None)
        found = rows_of.sums(r.metric, rows, delta, r.wanted)
        return replace(assemble(r.metric, found, r.wanted, common), imputed=imputed)

    def _pair_sums(self, r: Request) -> dict[str, Floats]:
        rows = self.rows_for(r.metric.kind, r.metric.on, r.strata)
        a, b = (self.imputed(r.metric, m)[0] if r.imputed else self.gains(r.metric, m, r.strata) for m in r.models)
        return rows_of.sums(r.metric, rows, a - b, r.wanted)

    def _common(self, kind: str, on: str, strata: Strata | None) -> Common:
        rows = self.stratified(on, strata)
        counted = self.rows_for(kind, on, strata)
        return Common(
            cells=rows.cells, base=rows_of.base_sums(rows), weights=rows_of.weight_summary(counted),
            edges=rows.edges, sample=self._scored.sample_for(on, self.view(on)) if strata == LEVELS else None,
            limits=rows.limits, catalogue=self.catalogue(on, strata),
            inverse_squares=self.inverse_squares(on) if self._scored.bounded else None,
            scaled=rows.scaled, unbalanced=rows.unbalanced, floored=self._scored.floored,
            kept_weight=self._scored.kept_weight, whole_users="user" in self._log.split,
        )  # fmt: skip

    def _inverse_squares(self, on: str) -> float | None:
        view = self.view(on)
        return None if view.observation is None else view.observation.inverse_squares(view.exclusion.cells)

    def _rows_for(self, kind: str, on: str, strata: Strata | None) -> Rows:
        rows = self.stratified(on, strata)
        return rows if kind == "cell" else rows.take(np.flatnonzero(rows.relevant > 0))

    def _outcome(self, model: str, metric: Metric) -> Outcome:
        if metric.on == "prediction":
            return Outcome(prediction=self._scored.predicted[model])
        return self.ranked(model, relevant=metric.kind == "user")

    def _gains(self, metric: Metric, model: str, strata: Strata | None) -> Floats:
        """δ of each row; only where it depends on a user's other rows do strata matter."""
        if strata is not None and not metric.groups:
            return self.gains(metric, model, None)
        return rows_of.gains(metric, self.rows_for(metric.kind, metric.on, strata), self.outcome(model, metric))

    def _ranked(self, model: str, *, relevant: bool) -> Outcome:
        view, asked = self.view("rank"), self._scored.models[model]
        counted = view.rows.relevant > 0
        if relevant and isinstance(asked, Predictions) and asked.ranking.rank is not None:  # a list is looked up once
            return self.ranked(model, relevant=False).take(counted)
        log = self._log.take(np.flatnonzero(counted)) if relevant else self._log
        masks = self._masks.setdefault(model, Masks(self._log))
        found = ranks(model, asked, log, view.exclusion, self._scored.device, masks)
        masks.check(model, log)
        if found.tied is not None:
            candidates = view.exclusion.candidates[log.user]
            flat = distinct(log.user[(found.tied >= candidates) & (candidates > 1)])
            self._flat[model] = max(len(flat), self._flat.get(model, 0))
        return found

    def remarks(self) -> list[str]:
        """What showed while models were ranked: one score for all items of some users, and scores of -inf."""
        users = self.about().scored_users
        told = [one_score(model, flat, users) for model, flat in self._flat.items() if flat]
        return told + [remark for model, masks in self._masks.items() if (remark := masks.remark(model))]

    def masked(self) -> dict[str, int]:
        """How many candidates have the score -inf, by model; not of those that say what they do not know."""
        found = {model: masks.candidates for model, masks in self._masks.items()}
        return {model: n for model, n in found.items() if n and not isinstance(self._scored.models[model], Partial)}

    def _imputed(self, metric: Metric, model: str) -> tuple[Floats, Floats]:
        """The residual δ − δ̂ of each row, and Σ_{C_u} δ̂ of each user."""
        view, log = self.view(metric.on), self._log
        delta = metric.gain(ArrayColumns(view.rows, self.outcome(model, metric)))
        if isinstance(self._scored.imputation, Mapping):
            losses = np.asarray(self._scored.imputation[model, metric.name], np.float64)  # (U, I)
            hat, total = losses[log.user, log.item], losses.sum(axis=1)
            user, item = np.unravel_index(view.exclusion.cells, losses.shape)
            np.subtract.at(total, user, losses[user, item])
        else:
            guessed = np.asarray(self._scored.imputation, np.float64)[log.user, log.item]
            hat = metric.gain(ArrayColumns(self._rerated(view.rows, guessed), self.outcome(model, metric)))
            total = self._imputed_totals(metric, model)
        return delta - hat, total

    def _rerated(self, rows: Rows, rating: Floats) -> Rows:
        return replace(rows, rating=rating, relevant=reaches(rating, self._scored.threshold).astype(np.float64))

    def _imputed_totals(self, metric: Metric, model: str) -> Floats:
        """Σ_{C_u} δ̂, a block of users at a time."""
        view, n_users, n_items = self.view(metric.on), self._log.n_users, self._log.n_items
        total, asked = np.zeros(n_users), self._scored.models[model]
        step = max(1, 2**21 // n_items)
        for start in range(0, n_users, step):
            users = np.arange(start, min(start + step, n_users))
            outcome, item = dense_outcome(model, asked, self._log, view.exclusion, users, metric.on)
            rated = np.asarray(self._scored.imputation[users], np.float64).ravel()[item]
            user = (start + item // n_items).astype(np.int32)
            rows = self._rerated(replace(view.rows, user=user, probability=None), rated)
            total += np.bincount(user, metric.gain(ArrayColumns(rows, outcome)), minlength=n_users)
        return total
