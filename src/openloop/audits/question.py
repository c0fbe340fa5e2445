"""`AuditQuestion`: what is asked of an audit, and what it chooses by itself: metrics, estimators, strata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from openloop.core.feedback import Feedback
from openloop.core.lists import ListMetric
from openloop.core.metric import Metric
from openloop.errors import InputError, NameFormatError, did_you_mean
from openloop.estimators.edges import Bins
from openloop.estimators.naming import Method, method
from openloop.metrics.naming import any_metric
from openloop.moments.question import Question, listed, strata_of
from openloop.moments.setting import Strata

if TYPE_CHECKING:
    from openloop.propensity.checks.checking import Check

METRICS = ("recall@10", "dcg@10", "mae", "mse")  # those of them that the predictions can be judged by
LISTED = ("coverage@10", "gini@10", "popularity@10", "novelty@10", "new@10")  # shown beside rankings
LISTED_GIVEN = {"item_features": "similarity@10", "running": "overlap@10"}  # and these, where that is given
CLICKS = ("recall@10", "adg")  # where all rows are positives
ESTIMATORS = ("snips", "ips", "stratified", "naive")
Cold = Literal["keep", "drop", "report"]
COLD = ("keep", "drop", "report")  # rows of users or items without training rows
POOLED = ("snips", "clipped", "stratified")  # estimators that average over relevant items
STRATA = (5, "2:width")  # of equal mass, whether a difference holds throughout; the paper's two, for its paradox


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AuditQuestion(Question):
    """A `Question`, and what `audit` asks beyond it; see there for each.

    Without metrics those of `METRICS` are taken that all models can serve, and without metrics of lists `LISTED`
    beside rankings, all cut where the shortest list ends. A plain "stratified" has the first strata
    asked for. Naive is always among the estimators, to compare the others with, and snips_user beside those that
    average over relevant items, to see whether it matters which of them count once. `blind`: the frame's column of p
    was fitted without seeing ratings; `sampled`: with so many ratings drawn at random, 0 where the number is unknown;
    `modelled`: by a joint model.
    """

    metrics: Sequence[str | Metric | ListMetric] = ()
    estimators: Sequence[str | Method] = ESTIMATORS
    strata: Sequence[int | str] = STRATA
    check: bool | Feedback | Check = True  # a check that was made before stays
    assumes: str | None = None
    blind: bool = False
    sampled: int | None = None
    modelled: bool = False
    baseline: str | None = None  # compare the others with this model only
    min_item_rows: int = 0  # items with fewer rows in the whole log leave the population
    cold: Cold = "keep"  # rows of users or items without training rows
    rehearse: int = 0  # logs to draw from the propensities, to see how often they give a verdict

    def __post_init__(self) -> None:
        self._complete_metrics()
        if isinstance(self.strata, int | str):
            object.__setattr__(self, "strata", (self.strata,))
        object.__setattr__(self, "estimators", _completed(self.estimators, self.strata))
        if self.min_item_rows < 0:
            raise InputError(f"audit: min_item_rows= must be 0 or more rows, got {self.min_item_rows}; 30 is usual.")
        Question.__post_init__(self)

    @property
    def keeps_tables(self) -> bool:
        """Whether models' tables are looked at beyond the scored rows."""
        return self.rehearse > 0 or Question.keeps_tables.fget(self)  # type: ignore[attr-defined]

    def _complete_metrics(self) -> None:
        """The default metrics, and the default measures of lists beside them."""
        named = listed("metrics", self.metrics, least=0)
        known = [any_metric(m) for m in named]
        guessed: list[str] = []
        if not any(isinstance(m, Metric) for m in known):
            named, known = [*METRICS, *named], [*map(any_metric, METRICS), *known]
            guessed += METRICS
            object.__setattr__(self, "lenient", True)
        lists, shown = [m for m in known if isinstance(m, ListMetric)], list[str]()
        if not lists and any(m.on == "rank" for m in known if isinstance(m, Metric)):
            shown += LISTED
        asked = {m.needs for m in lists}
        shown += [m for need, m in LISTED_GIVEN.items() if getattr(self, need) is not None and need not in asked]
        object.__setattr__(self, "metrics", (*named, *shown))
        object.__setattr__(self, "guessed", (*self.guessed, *guessed, *shown))

    @property
    def stratifications(self) -> tuple[tuple[int, Bins], ...]:
        """Those of the estimators, and those that tables are made of."""
        own = (strata for strata in self.groupings.values() if not isinstance(strata, str))
        return tuple(dict.fromkeys((*strata_of(self.methods), *own)))

    @property
    def groupings(self) -> dict[str, Strata]:
        """Strata by the words for them."""
        found: dict[str, Strata] = {}
        for given in self.strata:
            way = method(f"stratified@{given}")
            if way.strata is None or way.share is not None:
                raise NameFormatError(f"audit: strata must be numbers such as 5 or '2:width', got {given!r}.")
            found[f"propensity ({way.strata} of equal {way.bins})"] = way.strata, way.bins
        return found | {name: name for name in self.groups}


def _completed(estimators: Sequence[str | Method], strata: Sequence[int | str]) -> list[str | Method]:
    named: list[str | Method] = [estimators] if isinstance(estimators, str | Method) else list(estimators)
    if strata and strata[0] != STRATA[0]:
        named = [f"stratified@{strata[0]}" if e == "stratified" else e for e in named]
    given = {method(e).name for e in named}
    pooled = [place for place, e in enumerate(named) if method(e).name.partition("@")[0] in POOLED]
    if pooled and "snips_user" not in given:
        named.insert(1 + pooled[0], "snips_user")
    return named if "naive" in given else [*named, "naive"]


def for_clicks(asked: AuditQuestion) -> AuditQuestion:
    """The question for positives without exposure: every row counts once, which is naive."""
    given = [method(e).name for e in asked.estimators]
    default = given == [method(e).name for e in _completed(ESTIMATORS, asked.strata)]
    return replace(
        asked,
        metrics=(*CLICKS, *asked.list_measures) if asked.lenient else asked.metrics,
        guessed=(*CLICKS, *asked.guessed) if asked.lenient else asked.guessed,
        estimators=("naive",) if default else asked.estimators,
    )


def check_models(models: Mapping[str, Any], baseline: str | None) -> None:
    """Refuse fewer than two models, and a baseline that is not among them."""
    if len(models) < 2:
        raise InputError(
            f"audit: compares models, so it needs at least two, got {list(models)}; for one alone use ol.evaluate."
        )
    if baseline is not None and baseline not in models:
        raise InputError(f"audit: baseline={baseline!r} is not among the models.{did_you_mean(baseline, list(models))}")
