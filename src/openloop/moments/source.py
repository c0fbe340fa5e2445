"""`BlockSource`: what is asked of a log, answered by passes over its blocks: facts first, then one reduction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from typing import Any, TypeVar

import numpy as np

from openloop.blocks.block import Block, Outcome
from openloop.blocks.local import Blocks
from openloop.blocks.passes import Together
from openloop.blocks.population import Population
from openloop.core.covariates import Covariates
from openloop.core.feedback import Array, Feedback, Floats
from openloop.core.levels import LevelSample
from openloop.core.metric import Metric
from openloop.core.moments import Moments
from openloop.core.tilts import Tilts
from openloop.core.vocabulary import Int64s, Ints
from openloop.core.weights import WeightSummary
from openloop.errors import InputError
from openloop.estimators.edges import Bins
from openloop.estimators.naming import Method
from openloop.metrics.rating import MAX_LEVELS
from openloop.moments import remarks
from openloop.moments.balancing import with_leverage
from openloop.moments.facts import (
    LevelCounts,
    PropensitySteps,
    StrataTable,
    answers_of,
    cells_of_strata,
    inverse_squares_of,
    level_masses,
    level_weights,
    rare_weight,
    typical_rows,
)
from openloop.moments.imputation import Imputation
from openloop.moments.lists import BlockLists
from openloop.moments.models import Asked, Masked, Partial
from openloop.moments.question import Question
from openloop.moments.reduction import Key, Reduction, Sums, key_of, names_of, weight_parts, weight_summary
from openloop.moments.relevance import Relevance
from openloop.moments.requests import Answers, LogFacts, Request, StrataFacts, strata_names
from openloop.moments.rows import ArrayColumns, Rows
from openloop.moments.setting import LEVELS, P, Setting, Strata
from openloop.moments.table_rules import Coverage, one_score
from openloop.moments.terms import Common, assemble, paired
from openloop.moments.tilt_plan import TiltPlan, planned
from openloop.moments.tilting import RatingScale, Tilter, item_factors, raking_factors, tilted_item_sums
from openloop.propensity.cell_means import CellMeans

Result = TypeVar("Result")
MAX_GRID = 2**28  # cells whose Σ1/π² is worth the wait; above it Hoeffding's interval is not offered
MAX_LISTED = 20  # ratings whose rows are counted one by one
UNITS, UNITS_PER_BUCKET = 2_000_000, 400  # beyond so many users, 102,400 clusters of them take their place


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subject:
    """What is scored, checked and resolved."""

    setting: Setting
    blocks: Blocks
    population: Population
    order: Ints  # the code of each user, block after block
    models: tuple[str, ...]
    asked: Mapping[str, Asked]  # the models that are no tables
    coverage: Mapping[str, Coverage]
    levels: LevelCounts  # the scored rows of each rating
    rows_of_items: Int64s  # of the whole log
    scored_of_items: Int64s  # of the scored rows
    n_rows: int
    scored_users: int
    n_excluded: int | None = None  # rows; None: nothing was excluded
    n_lost: int = 0  # cells that are no candidates
    overlap: int = 0  # scored rows that are excluded by another log
    split: str = ""  # how p of a part without a share came to be known up to a factor only
    whole_users: bool = False
    by_items: bool = False  # propensities were fitted to each item's rows of this log
    positives: bool = False
    floored: float | None = None
    kept_weight: float | None = None
    rank_sample: LevelSample | None = None  # of balanced propensities, as rankings depend on it
    bounded: bool = True  # whether Σ1/π² over the grid is needed, for Hoeffding's interval
    grid: Callable[[Array], Floats] | None = None  # p of all cells of some users, where it is known
    imputation: Imputation | None = None
    dropped: int = 0  # rows that some model does not predict
    filled: Mapping[str, int] = field(default_factory=dict[str, int])  # rows whose prediction is the furthest rating
    unlisted: Mapping[str, float] = field(default_factory=dict[str, float])  # shares of rows without a list
    masked: Mapping[str, Masked] = field(default_factory=dict[str, Masked])
    flat: Mapping[str, int] = field(default_factory=dict[str, int])  # users whose candidates all have one score
    trained_rows: Int64s | None = None  # rows of each item that models may have been trained on
    log: Feedback | None = None  # where the log is in memory
    exclude: Feedback | None = None
    means: CellMeans | None = None  # of functions of predictions, which propensities were balanced to


class BlockSource:
    """Answers requests by passes over blocks. What several requests share is found once."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.models = subject.models
        self.coverage = subject.coverage.__getitem__
        self.levelled = subject.setting.sample is not None
        self.about, self.relevance = cache(self._about), cache(self._relevance)
        self.answers, self.summary = cache(self._answers), cache(self._summary)
        self.mass, self._weight_parts = cache(self._mass), cache(self._parts_of_weights)
        self.weight_on_rare = cache(self._weight_on_rare)
        self._steps = cache(partial(PropensitySteps, self.over, P)) if subject.setting.weighted else None
        self._tilter, self._table = cache(self._make_tilter), cache(self._strata_table)
        self._catalogue, self._inverse_squares = cache(self._count_cells), cache(self._sum_inverse_squares)
        self._scored = lru_cache(maxsize=1)(self._all_scored)
        self.sample, self._common = cache(self._sample_of), cache(self._shared)
        self.setting = subject.setting
        self._together: Together | None = None

    @property
    def form(self) -> str:
        """What wrong propensities change: their odds, or where these have no scale the weight."""
        return self.subject.setting.form

    def close(self) -> None:
        """Give back what blocks take; nothing more is asked."""
        self.subject.blocks.close()

    def over(self, work: Callable[[Block], Result]) -> Iterator[Result]:
        """What `work` makes of each block."""
        return self.subject.blocks.map(work) if self._together is None else self._together.over(work)

    def ask(self, *questions: Callable[[], Any]) -> list[Any]:
        """The answers to several questions, by common passes where each alone would take one."""
        self._together = Together(self.subject.blocks.map)
        try:
            return self._together.answer(questions)
        finally:
            self._together = None

    def survey(
        self, metrics: Iterable[Metric], strata: Iterable[Strata], also: Iterable[Callable[[], Any]] = ()
    ) -> None:
        """Find by common passes what estimates of these metrics need to know of the log, and what else is asked."""
        weighted, every = self.setting.weighted, list(dict.fromkeys(strata))
        questions = [partial(self._weights, *kind) for kind in dict.fromkeys((m.kind, m.on) for m in metrics)]
        edges = [self._steps] if self._steps is not None and any(isinstance(s, tuple) for s in every) else []
        self.ask(*questions, *edges, *also)
        tables = [s for s in every if weighted or isinstance(s, str)]
        self._found(tables)
        self.ask(*(partial(self._table, s) for s in tables))

    # -- refusals --------------------------------------------------------------------------------------------

    def refusal(self, metric: Metric, method: Method) -> str | None:
        """Why these rows cannot give that estimate."""
        subject, what = self.subject, f"{method.name} of {metric.name}"
        setting = subject.setting
        if metric.name == "accuracy" and setting.middles is None:
            return f"{what}: the log has more than {MAX_LEVELS} distinct ratings, too many for levels; use mae or mse."
        if method.weighted and not setting.weighted:
            return f"{what} needs propensities; pass them to evaluate, or read the log with propensity=."
        if method.weighted and metric.on == "rank" and subject.overlap:
            return remarks.undefined_candidates(what, subject.overlap)
        if metric.kind == "user" and not subject.levels.reaching(setting.threshold):
            return remarks.not_reached(what, setting.threshold)
        if self._clustered and not (metric.kind == "cell" or (metric.pooled and method.pools)):
            return f"{what} needs sums of each user, and {setting.n_users:,} users are too many; take a sample of them."
        return self._unknown_share(metric, method) or self._uncovered(metric, method, what)

    def _unknown_share(self, metric: Metric, method: Method) -> str | None:
        setting = self.subject.setting
        if not remarks.needs_scale(metric, method) or (setting.scaled and setting.share is not None):
            return None
        why = remarks.BY_COUNT if setting.scaled else self.subject.split
        return remarks.unknown_share(f"{method.name} of {metric.name}", why, lost=not setting.scaled)

    def _uncovered(self, metric: Metric, method: Method, what: str) -> str | None:
        for name in self.models:
            reason = self.coverage(name).refusal(metric, everywhere=method.imputes)
            if reason is not None:
                return f"{what}: model {name!r} {reason}"
        if method.imputes and self.subject.imputation is None:
            return f"{what} needs imputed ratings; pass them as ol.dr(ratings) in estimators=."
        return None

    # -- what is told of the log -----------------------------------------------------------------------------

    def _about(self) -> LogFacts:
        """What is scored."""
        subject, levels = self.subject, self.subject.levels
        masses: tuple[float, ...] = ()
        if levels.few(MAX_LISTED) and self.setting.weighted:
            masses = tuple(level_masses(self.over, self.setting, levels.values).tolist())
        return LogFacts(
            rows=subject.n_rows, users=self.setting.n_users, items=self.setting.n_items,
            scored_users=subject.scored_users, span=levels.span,
            ratings=levels.listed if levels.few(MAX_LISTED) else (), masses=masses,
            threshold=self.setting.threshold, dropped=subject.dropped, excluded=subject.n_excluded,
        )  # fmt: skip

    def _relevance(self) -> Relevance:
        """What the threshold makes of the scored rows."""
        return self.subject.levels.relevance(self.setting.threshold, positives=self.subject.positives)

    def _answers(self, model: str) -> Answers | None:
        """What a model says of the scored rows; None where it gives ranks alone."""
        filled = self.subject.filled.get(model, 0) / self.subject.n_rows
        return answers_of(self.over, model, filled)

    def _summary(self, metric: Metric) -> WeightSummary | None:
        """The weights of the rows that count for a metric; None without propensities."""
        return self._weights(metric.kind, metric.on)

    def _weights(self, kind: str, on: str) -> WeightSummary | None:
        setting = self.setting
        return weight_summary(self._weight_parts(setting.seen_on(on)), kind) if setting.weighted else None

    def _parts_of_weights(self, on: str) -> dict[Any, Any]:
        setting = self.setting  # and not self, which executors are not sent
        return stacked(self.over(lambda block: weight_parts(setting.rows(block, on))))

    def _mass(self, on: str) -> float | None:
        """Σw of all scored rows over the candidates; None where p has no scale."""
        setting = self.setting
        if not setting.scaled or setting.share is None:
            return None
        summary = self._weights("cell", on)
        before = setting.unbalanced.get(on, 1.0)
        return None if summary is None else summary.total / self._candidates(on) * before

    def _candidates(self, on: str) -> float:
        """Σ|C_u|."""
        setting = self.setting
        return float(setting.n_users) * setting.n_items - (self.subject.n_lost if on == "rank" else 0)

    def unlisted(self, model: str) -> float:
        """The share of scored rows whose users have no list of a model; 0 where it gives no lists."""
        return self.subject.unlisted.get(model, 0.0)

    def _weight_on_rare(self, fewest: int) -> tuple[float, int] | None:
        """The share of Σw on items with fewer rows in the whole log, and the rows on others; None if unknown."""
        if not self.setting.weighted or self.subject.dropped:
            return None
        return rare_weight(self.over, self.setting, self.subject.rows_of_items < fewest)

    def remarks(self) -> list[str]:
        """What showed while models were ranked: one score for all items of some users, and scores of -inf."""
        users = self.subject.scored_users
        told = [one_score(model, flat, users) for model, flat in self.subject.flat.items() if flat]
        return told + [text for model, masked in self.subject.masked.items() if (text := masked.remark(model))]

    def masked(self) -> dict[str, int]:
        """How many candidates have the score -inf, by model; not of those that say what they do not know."""
        cells = {model: masked.candidates for model, masked in self.subject.masked.items()}
        return {m: n for m, n in cells.items() if n and not isinstance(self.subject.asked[m].model, Partial)}

    # -- strata ----------------------------------------------------------------------------------------------

    def _found(self, strata: Sequence[Strata | None]) -> Setting:
        """The setting with the edges of these strata, which are found where they are new."""
        new = [s for s in dict.fromkeys(strata) if isinstance(s, tuple) and s not in self.setting.edges]
        if new and self._steps is not None:
            self.setting = replace(self.setting, edges={**self.setting.edges, **self._steps().edges(new)})
        return self.setting

    def facts(self, strata: Strata) -> StrataFacts:
        """What the scored rows of each stratum are."""
        setting, found = self._found([strata]), self._table(strata)
        limits = found.limits if isinstance(strata, tuple) and setting.weighted else None
        return StrataFacts(
            names=setting.groups[strata] if isinstance(strata, str) else strata_names(setting.n_strata(strata)),
            rows=tuple(found.rows.tolist()), items=tuple(found.items.sum(axis=1).tolist()),
            limits=(None,) * len(found.rows) if limits is None else tuple((a, b) for a, b in limits.tolist()),
        )  # fmt: skip

    def _strata_table(self, strata: Strata) -> StrataTable:
        return StrataTable.of(self.over, self._found([strata]), strata, len(self.subject.population.items))

    # -- moments ---------------------------------------------------------------------------------------------

    @property
    def _clustered(self) -> bool:
        """Whether users are so many that clusters of them take their place."""
        return self.setting.n_users > UNITS

    def moments(self, requests: Sequence[Request]) -> dict[Request, Moments]:
        """The moments of each request, all by one pass."""
        return self.reduce(requests, [], ())[0]

    def reduce(
        self, requests: Sequence[Request], tilted: Sequence[Metric], pairs: Sequence[tuple[str, str]]
    ) -> tuple[dict[Request, Moments], dict[str, Tilts]]:
        """The moments of each request, and the sums under tilted weights of some of their metrics, by one pass."""
        singles = dict.fromkeys(r.single(m) for r in requests for m in r.models)
        doubles = [r for r in requests if len(r.models) > 1]
        every = [*singles, *doubles]
        setting = self._found([r.strata for r in every])
        tilters = {metric.name: self._tilter(metric.on) for metric in tilted}
        units = UNITS_PER_BUCKET if self._clustered else None
        work = Reduction(
            setting=setting, requests=every, imputation=self.subject.imputation, tilts=tilters, pairs=pairs, units=units
        )
        sums = self._merged(self.over(work))
        moments = {r: self._assembled(r, sums) for r in singles}
        for r in doubles:
            a, b = (moments[r.single(m)] for m in r.models)
            moments[r] = paired(a, b, self._of(r, sums))
        tilts = {
            name: tilter.tilts(
                {key[2]: v for key, v in sums.items() if key[:2] == ("tilted", name)}, self.models, pairs
            )
            for name, tilter in tilters.items()
        }
        return moments, tilts

    def _merged(self, parts: Iterator[Sums]) -> dict[Key, Floats]:
        """The sums of all blocks: by user in the order of their codes, by bucket and by cluster as they come."""
        by_key: dict[Key, list[Floats]] = {}
        of_users: set[Key] = set()
        for part in parts:
            of_users |= part.of_users.keys()
            for sums in (part.of_users, part.of_buckets, part.of_clusters):
                for key, values in sums.items():
                    by_key.setdefault(key, []).append(values)
        return {
            key: self.by_code(own) if key in of_users and not self._clustered else np.concatenate(own)
            for key, own in by_key.items()
        }

    def by_code(self, parts: Sequence[Floats]) -> Floats:
        """The rows of users, block after block, in the order of their codes; of unknown users zeros, last."""
        values = np.concatenate(parts)
        ordered = np.zeros((self.setting.n_users, *values.shape[1:]))
        ordered[self.subject.order] = values
        return np.asfortranarray(ordered)

    def _of(self, r: Request, sums: Mapping[Key, Floats]) -> dict[str, Floats]:
        """The sums of one request by their names."""
        names = names_of(r, is_weighted=self.setting.weighted)
        return {name: sums[key_of(name, r)] for name in names if key_of(name, r) in sums}

    def _assembled(self, r: Request, sums: Mapping[Key, Floats]) -> Moments:
        found = assemble(r.metric, self._of(r, sums), r.needed, self._common_of(r, sums))
        if self._clustered:  # a variance over cells says nothing about users beside one over clusters
            found = replace(found, squares=None)
        return replace(found, imputed=sums[key_of("imputed", r)]) if r.imputed else found

    def _common_of(self, r: Request, sums: Mapping[Key, Floats]) -> Common:
        """What the moments of all models over the same rows share."""
        on, strata = r.metric.on, r.strata
        base = {name: sums[key] for name in ("rows", "mass") if (key := ("base", on, strata, name)) in sums}
        return replace(self._common(r.metric.kind, on, strata), base=base, cells=self._cells(sums["cells", on]))

    def _cells(self, cells: Floats) -> Floats:
        """|C_u| of all users; those whose ids are not known have all items."""
        setting, unknown = self.setting, self.setting.n_users - len(self.subject.population.users)
        if self._clustered:
            return cells + unknown * setting.n_items / len(cells)
        if unknown:
            cells[len(cells) - unknown :] = setting.n_items
        return cells

    def _shared(self, kind: str, on: str, strata: Strata | None) -> Common:
        setting, subject = self._found([strata]), self.subject
        of_p = isinstance(strata, tuple) and setting.weighted
        return Common(
            cells=np.zeros(0), base={}, weights=self._weights(kind, on),
            edges=_edges(setting, strata), limits=self._table(strata).limits if of_p else None,
            sample=self.sample(on) if strata == LEVELS else None,
            catalogue=self._catalogue(on, strata) if of_p and subject.grid is not None else None,
            inverse_squares=self._inverse_squares(on) if subject.bounded else None,
            scaled=setting.scaled, unbalanced=setting.unbalanced.get(on), floored=subject.floored,
            kept_weight=subject.kept_weight, whole_users=subject.whole_users,
        )  # fmt: skip

    # -- the grid of p, where it is known --------------------------------------------------------------------

    def _count_cells(self, on: str, strata: tuple[int, Bins]) -> Floats:
        """The candidates of each user and stratum (U, S)."""
        edges, grid, excludes = self.setting.edges[strata], self.subject.grid, self._excludes(on)
        assert grid is not None  # noqa: S101, asked only where it is known
        parts = self.over(lambda block: cells_of_strata(block, grid(block.users), edges, excludes=excludes))
        return self.by_code(list(parts))

    def _sum_inverse_squares(self, on: str) -> float | None:
        """Σ 1/π² over the candidates, where one share holds for all of them."""
        setting, grid = self.setting, self.subject.grid
        alike = setting.scaled and setting.share is not None and not isinstance(setting.excluded_share, np.ndarray)
        if grid is None or not alike or setting.balanced or setting.n_users * setting.n_items > MAX_GRID:
            return None
        excludes, shares = self._excludes(on), (setting.share, setting.excluded_share if on == "rank" else 0.0)
        parts = self.over(lambda block: inverse_squares_of(block, grid(block.users), shares, excludes=excludes))
        return float(np.concatenate(list(parts)).sum())

    def _excludes(self, on: str) -> bool:
        return self.setting.excludes and on == "rank"

    def _sample_of(self, on: str) -> LevelSample | None:
        """The uniform sample, as metrics of one kind depend on it."""
        sample, setting = self.setting.sample, self.setting
        if sample is None or not self._excludes(on):
            return sample
        if setting.balanced:
            return self.subject.rank_sample
        before, after = level_weights(self.over, setting, sample)
        return with_leverage(sample, before, after)

    # -- weights that may be off -----------------------------------------------------------------------------

    def tilting(self, on: str) -> TiltPlan:
        """How weights can be tilted."""
        return self._tilter(on).plan

    def _make_tilter(self, on: str) -> Tilter:
        setting, subject = self.setting, self.subject
        span, rows = subject.levels.span, subject.rows_of_items
        plan = planned(
            weighted=setting.weighted,
            span=span,
            positives=subject.positives or subject.levels.reaching(setting.threshold) == subject.n_rows,
            by_items=subject.by_items,
            typical=typical_rows(rows, subject.scored_of_items),
        )
        scale = RatingScale.of(subject.levels.values) if "rho" in plan.against else None
        if not plan.raked or scale is None:
            return Tilter(plan=plan, scale=scale, by_item=item_factors(plan, rows))
        parts = self.over(lambda block: tilted_item_sums(setting.rows(block, on), block.item, scale))
        return Tilter(plan=plan, scale=scale, by_item=raking_factors(parts, len(rows)))

    def scored(self, metric: Metric, models: Sequence[str]) -> tuple[Rows, list[Outcome]]:
        """The rows that count for a metric, and what each model makes of them."""
        rows, outcomes = self._scored(metric.kind, metric.on)
        return rows, [outcomes[model] for model in models]

    def _all_scored(self, kind: str, on: str) -> tuple[Rows, dict[str, Outcome]]:
        setting, models = self.setting, self.models

        def work(block: Block) -> tuple[Rows, dict[str, Outcome]]:
            rows, outcomes = setting.rows(block, on), {m: block.outcomes[m] for m in models}
            if kind == "cell":
                return rows, outcomes
            counted = np.flatnonzero(rows.relevant > 0)
            return rows.take(counted), {m: outcome.take(counted) for m, outcome in outcomes.items()}

        parts = list(self.over(work))
        outcomes = {m: Outcome.joined([own[m] for _, own in parts]) for m in models}
        return Rows.joined([rows for rows, _ in parts]), outcomes

    def scored_log(self) -> Feedback:
        """The scored rows in memory."""
        log = self.subject.log
        if log is None:
            raise InputError("rehearse: takes all cells of a log in memory; read it with ol.read.")
        if not self.subject.dropped:
            return log
        scored = np.concatenate(list(self.over(lambda b: b.users[b.user].astype(np.int64) * log.n_items + b.item)))
        return log.take(np.isin(log.cell, scored), origin=log.origin or log.fingerprint)

    def listed(self, metric: Metric) -> dict[str, float]:
        """Σwc/Σw of each model over all scored rows, c what a row would gain if everything were liked.

        Models rank the same candidates, so with right weights they all have the same.
        """
        setting, asked, models = self.setting, self.subject.asked, self.models

        def work(block: Block) -> Floats:
            rows, liked = setting.rows(block, "rank"), np.ones(len(block))
            everything = replace(rows, rating=liked, relevant=liked)
            weight = np.asarray(rows.weight())
            gains = [metric.gain(ArrayColumns(everything, _ranked(block, asked, m))) for m in models]
            return np.stack([rows.by_bucket(weight * gain)[:, 0] for gain in (liked, *gains)], axis=1)  # (b, M + 1)

        total = np.concatenate(list(self.over(work))).sum(axis=0)
        return dict(zip(self.models, (total[1:] / total[0]).tolist(), strict=True))

    def lists(self, asked: Question) -> BlockLists:
        """What models list for users, of the candidates of rankings."""
        return BlockLists(self.subject, self.over, self.by_code, self._features(asked.item_features))

    def _features(self, given: Any) -> Floats | None:
        items = Covariates.of(given, self.subject.population.items, "item")
        return None if items is None else items.values


def _ranked(block: Block, models: Mapping[str, Asked], name: str) -> Outcome:
    """Ranks of all rows, also where only those of relevant rows were needed so far."""
    return block.outcomes[name] if name not in models else models[name].ranks(block, np.arange(len(block)))[0]


def stacked(parts: Iterator[Mapping[Any, Any]]) -> dict[Any, Any]:
    """Arrays of all blocks by name, one after the other."""
    by_name: dict[Any, list[Any]] = {}
    for part in parts:
        for name, values in part.items():
            by_name.setdefault(name, []).append(values)
    return {name: np.concatenate(values) for name, values in by_name.items()}


def _edges(setting: Setting, strata: Strata | None) -> tuple[float, ...]:
    """The edges of strata; between groups, those of their numbers."""
    if isinstance(strata, tuple):
        return setting.edges.get(strata, ())
    return () if strata is None else tuple(np.arange(len(setting.groups[strata]) - 1) + 0.5)
