"""How a log is rehearsed: drawn again and again from its propensities, and judged by the verdict's own rules.

The losses of two models on all cells are computed once, and a draw then is a few sums per user. It is judged twice:
with the models made equal, and with the estimated difference put in.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.audits import rules
from openloop.audits.completing import Completed, completed
from openloop.audits.contrasts import Contrast, by_rank, contrasts
from openloop.audits.drawing import DrawnLog, LevelLead, Levels, exchanged
from openloop.audits.evidence import Evidence
from openloop.audits.imputing import impute
from openloop.audits.question import AuditQuestion
from openloop.audits.rehearsal import Outcomes, Rehearsal
from openloop.audits.sensitivity import with_limits
from openloop.audits.verdict import decide
from openloop.core.comparison import Comparison
from openloop.core.estimate import Estimate
from openloop.core.feedback import Floats
from openloop.core.metric import Metric
from openloop.core.moments import Moments
from openloop.errors import InputError, UndefinedError
from openloop.estimators.estimands import SEEN, estimand
from openloop.estimators.naming import Method, method
from openloop.evaluation import Prepared
from openloop.kernels.drawing import drawn_cells
from openloop.moments import rows as rows_of
from openloop.moments.reduction import summary_of
from openloop.moments.source import BlockSource
from openloop.moments.terms import Common, Needed
from openloop.moments.tilt_plan import TiltPlan
from openloop.moments.tilting import tilter_of_rows
from openloop.moments.whole import whole_block
from openloop.propensity.known import Known
from openloop.support.arguments import generator, is_whole
from openloop.support.progress import Step

MAX_CELLS = 50_000_000  # of the population: four grids of them are held
PLAIN_SUMS = ("snips", "ips", "snips_user")  # estimators that are made of sums over rows
FAMILIES = (*PLAIN_SUMS, "clipped")
NOT_REDRAWN: dict[str, Any] = {
    "best": {}, "strata": (), "paradoxes": (), "open_loop": None, "doubts": (), "leaks": (), "listed": {}
}  # evidence about the log that is there  # fmt: skip
SPARE = 6.0  # standard deviations of the number of rows, for which room is made beforehand


def rehearse(ready: Prepared, found: Evidence, propensities: Any, asked: AuditQuestion, step: Step) -> Rehearsal:
    """Rehearse the two leading models under the verdict's metric and estimator."""
    source = rehearsable(ready, propensities, asked.rehearse)
    metric = next(m for m in ready.metrics if m.name == found.metric)
    methods = _methods(found, metric)
    lead = _leading(found)
    seed = int(generator("rehearse", asked.rng).integers(2**62))
    _check_models(source, metric, (lead.a, lead.b))
    subject, log = source.subject, source.scored_log()
    weights = source.setting.rows(whole_block(subject), "prediction").weight()
    imputed = impute(log, np.ones(len(log)) if weights is None else weights, seed)
    whole = completed(source, metric, (lead.a, lead.b), imputed.ratings, propensities)
    tilted = found.basis.blind or found.basis.balanced or methods[0].clips or subject.kept_weight is not None
    stage = Stage(
        whole=whole, metric=metric, methods=methods, models=(lead.a, lead.b), found=found, seed=seed,
        tilting=source.tilting(metric.on) if tilted else None, kept_weight=subject.kept_weight,
        rows_of_items=subject.rows_of_items, levels=Levels.of(source, metric.on, whole),
        unbalanced=source.setting.unbalanced.get(metric.on),
    )  # fmt: skip
    return stage.play(asked.rehearse, lead.value, step)


def _leading(found: Evidence) -> Contrast:
    """The first pair by rank that differs for some user."""
    ranked = by_rank(found.own, found.result.ranking(*found.family))
    apart = next((c for c in ranked if c.stderr > 0), None)
    if apart is None:
        raise UndefinedError(
            f"rehearse: no two models differ for any user by {found.estimator} of {found.metric}; audit models that do."
        )
    return apart


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stage:
    """Two models on all cells, ready to be drawn from; `methods` are the estimators whose sums are at hand."""

    whole: Completed
    metric: Metric
    methods: tuple[Method, ...]  # that of the verdict first
    models: tuple[str, str]
    found: Evidence
    tilting: TiltPlan | None  # None: the rules ask for no tilted sums
    kept_weight: float | None  # what a floor leaves of Σ1/p in the log; in draws, too
    rows_of_items: npt.NDArray[np.int64]
    seed: int
    unbalanced: float | None = None  # Σw/|C| before weights were balanced
    levels: Levels | None = None  # of the sample that propensities were fitted with

    def play(self, draws: int, difference: float, step: Step) -> Rehearsal:
        """Draw and judge; the same seed draws the same logs."""
        equal, different, rows = Counter[str](), Counter[str](), 0
        lead, room = self._lead(), self.whole.expected
        put_in = lead.by_level - lead.mean + self._of_gains(difference)  # (L,)
        room = int(room + SPARE * math.sqrt(room) + rules.EFFECTIVE_ROWS)
        for draw in range(draws):
            step("rehearsing", 0.9 + 0.1 * draw / draws)
            cells = drawn_cells(self.seed + 1 + draw, self.whole.probability, self.whole.factor, room)
            log = self._log(cells)
            places = np.random.default_rng((self.seed, draw)).random(len(self.whole.factor)) < 0.5  # (U,)
            level, (a, b) = lead.levels(log.rows.rating), self._gains(log.cells)
            a, b = exchanged(a - lead.by_level[level], b, places[log.rows.user])
            rows += len(log.rows)
            equal[self._answer(log, (a, b))] += 1
            different[self._answer(log, (a + put_in[level], b))] += 1
        return Rehearsal(
            a=self.models[0], b=self.models[1], metric=self.metric.name, estimator=self.methods[0].name, draws=draws,
            difference=difference, rows=rows / draws, equal=Outcomes(**equal), different=Outcomes(**different),
        )  # fmt: skip

    def _lead(self) -> LevelLead:
        return LevelLead.of(self.whole, self.metric, self.models, per_user=self.methods[0].name == "snips_user")

    def _log(self, cells: npt.NDArray[np.int64]) -> DrawnLog:
        """The log that observed these cells, as far as the models do not matter."""
        every, item = self.whole.rows(cells), (cells % self.whole.rating.shape[1]).astype(np.int32)
        every = every if self.levels is None else self.levels.refitted(every)
        keep = every.relevant > 0 if self.metric.kind == "user" else None
        rows, cells = (every, cells) if keep is None else (every.take(keep), cells[keep])
        edges = () if rows.stratum is None else tuple(np.arange(rows.n_strata - 1) + 0.5)
        common = Common(
            cells=rows.cells, base=rows_of.base_sums(every), weights=summary_of(rows), scaled=rows.scaled,
            unbalanced=self.unbalanced, edges=edges, kept_weight=self.kept_weight,
            sample=None if self.levels is None else self.levels.sample,
        )  # fmt: skip
        tilter = None if self.tilting is None else tilter_of_rows(self.tilting, every, item, self.rows_of_items)
        return DrawnLog(rows=rows, cells=cells, item=item if keep is None else item[keep], common=common, tilter=tilter)

    def _gains(self, cells: npt.NDArray[np.int64]) -> Iterator[Floats]:
        return (self.whole.gains[m].ravel()[cells].astype(np.float64) for m in self.models)

    def _answer(self, log: DrawnLog, gains: tuple[Floats, Floats]) -> str:
        """What the verdict's rules say of the two models, with these gains of a drawn log's rows."""
        if not len(log.rows):
            return "none"
        metric, found, named = self.metric.name, self.found, dict(zip(self.models, gains, strict=True))
        wanted = Needed(cap=next((way.cap for way in self.methods if way.clips), None))
        moments = {m: log.moments(self.metric, gain, wanted) for m, gain in named.items()}
        result = Comparison(
            estimates={(m, metric, e.name): self._estimate(e, x) for m, x in moments.items() for e in self.methods},
            better=found.result.better, level=found.result.level,
            tilts={} if log.tilter is None else {metric: log.tilts(named, self.models)},
        )  # fmt: skip
        drawn = {(metric, way.name): contrasts(result, metric, way.name) for way in self.methods[1:]}
        drawn[found.family] = with_limits(result, contrasts(result, *found.family, beside=self._beside()))
        mass = None if found.mass is None else log.mass
        verdict = decide(replace(found, result=result, contrasts=drawn, mass=mass, **NOT_REDRAWN))
        if verdict.level != "verdict":
            return verdict.level
        return "right" if verdict.winner == self.models[0] else "wrong"

    def _estimate(self, way: Method, m: Moments) -> Estimate:
        return replace(way.estimate(m), method=way.name, estimand=estimand(self.metric, way.name))

    def _beside(self) -> list[float]:
        """The p-values of the other pairs, which are as they were."""
        return [c.pvalue for c in self.found.own if c.models != frozenset(self.models)]

    def _of_gains(self, difference: float) -> float:
        """How much gains must differ for the estimates to differ so; under a root, by squares beside b's."""
        if not self.metric.root:
            return difference
        squares = float(self.whole.gains[self.models[1]][self.whole.probability > 0].mean(dtype=np.float64))
        return (math.sqrt(squares) + difference) ** 2 - squares


# -- refusals ------------------------------------------------------------------------------------------------


def rehearsable(ready: Prepared, propensities: Any, draws: int) -> BlockSource:
    """The source, if a log like it can be drawn; else an error that says what is missing."""
    if not (is_whole(draws) and draws >= 1):
        raise InputError(f"rehearse: must be a whole number of logs to draw, got {draws!r}; 200 is usual, 0 is none.")
    source = ready.source
    for reason in _reasons(source, propensities):
        raise UndefinedError(f"rehearse: {reason}")
    return source


def _reasons(source: BlockSource, propensities: Any) -> Iterator[str]:
    subject, log = source.subject, source.scored_log()
    if log.positives:
        yield "the log has positives only: what was shown and not liked is unknown, so no log can be drawn like it."
    if log.n_users * log.n_items > MAX_CELLS:
        yield (
            f"needs losses on all cells, and {log.n_users:,} × {log.n_items:,} are more than {MAX_CELLS:,}; take a "
            "sample of users."
        )
    if len(log) < rules.EFFECTIVE_ROWS:
        yield f"the log has {len(log):,} rows, and no verdict rests on fewer than {rules.EFFECTIVE_ROWS}; collect more."
    if not source.setting.weighted:
        yield "there are no propensities to draw from; pass a fitted model."
    if subject.grid is None and (isinstance(propensities, Known) or not hasattr(propensities, "predict")):
        yield (
            "the propensities are those of observed rows only, so cells that were not observed have no chance to be "
            "drawn; pass a fitted model without min_item_rows=, or a users × items array."
        )


def _check_models(source: BlockSource, metric: Metric, models: tuple[str, str]) -> None:
    for name in models:
        coverage = source.coverage(name)
        if not (coverage.cells or (metric.on == "rank" and coverage.ranks and not coverage.rows_alone)):
            raise UndefinedError(
                f"rehearse: model {name!r} is a table of some of the population's cells, and losses are needed on all "
                "of them; give a recommender, an array, or the scores of all cells."
            )


def _methods(found: Evidence, metric: Metric) -> tuple[Method, ...]:
    """The verdict's estimator, and those beside it that the rules look at and the same sums give."""
    if _stem(found.estimator) not in FAMILIES or estimand(metric, found.estimator) == SEEN:
        raise UndefinedError(
            f"rehearse: {found.estimator} of {metric.name} is not a debiased sum over rows, which a rehearsal could "
            "redraw; audit by snips, ips, snips_user or clipped of a metric per cell, per user or per relevant item."
        )
    own = method(found.estimator)
    if own.clips:
        own = replace(own, cap=found.seen().cap)
    beside = [e for m, e in found.contrasts if m == metric.name and e != own.name and e in (*PLAIN_SUMS, "naive")]
    return (own, *(method(e) for e in beside))


def _stem(name: str) -> str:
    return name.partition("@")[0]
