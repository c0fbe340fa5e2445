"""`Evidence`: what a verdict is made of, and questions about it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from openloop.audits.answers import Reason
from openloop.audits.basis import Basis
from openloop.audits.contrasts import Contrast
from openloop.audits.paradox import Paradox
from openloop.audits.results import Family, OpenLoop, StrataTable
from openloop.core.comparison import Comparison
from openloop.core.weights import MASS_RANGE, Diagnostics
from openloop.estimators.estimands import PLAIN, SEEN

SCALED = ("ips", "clipped", "dr")  # estimators that need the weights to add up to the population
SAME = 1e-9  # relative: estimates that are equal but for rounding


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence:
    """What the verdict is made of.

    `basis` says where the weights come from, `mass` is Σw/(U·I) over all scored rows (None where p has no scale),
    `rare` the share of Σw on items with few rows, `ranked` whether the metric judges rankings, `liked` whether no
    scored rating is below the threshold. `population` names what is left of it, where it is not the whole. `doubts`
    are reasons against any choice that are known beforehand, `leaks` models that were shown the answers, `assumes` what
    the propensities take for granted. `listed` is what each model would score on the log if everything were liked.
    """

    result: Comparison
    metric: str
    estimator: str
    contrasts: dict[Family, tuple[Contrast, ...]]
    best: dict[Family, dict[str, float]]
    strata: tuple[StrataTable, ...] = ()
    paradoxes: tuple[Paradox, ...] = ()
    open_loop: OpenLoop | None = None
    basis: Basis = field(default_factory=Basis)
    mass: float | None = None
    rare: float = 0.0
    ranked: bool = False
    liked: bool = False
    population: str = ""
    doubts: tuple[str | Reason, ...] = ()
    leaks: tuple[str, ...] = ()
    trained: tuple[str, ...] = ()  # models that were trained on the scored rows
    assumes: str = ""
    listed: Mapping[str, float] = field(default_factory=dict[str, float])
    gains: tuple[float, float] | None = None  # of the worst and the best rank, by a metric of your own
    filled: Mapping[str, float] = field(default_factory=dict[str, float])  # rows that a model does not predict
    running: str | None = None  # the model whose lists were shown
    weighted: bool = True  # by propensities, whose origin `basis` tells

    @property
    def family(self) -> Family:
        """The metric and estimator of the verdict."""
        return self.metric, self.estimator

    @property
    def own(self) -> tuple[Contrast, ...]:
        """The contrasts of the verdict."""
        return self.contrasts[self.family]

    @property
    def estimand(self) -> str:
        """What is compared, in words."""
        return self.own[0].estimand

    @property
    def subject(self) -> str:
        """What the models are compared on: "recall@10, per relevant item"."""
        what = f"{self.metric}, {self.estimand}" if self.estimand else self.metric
        return f"{what}, {self.population}" if self.population else what

    def between(self, a: str, b: str, estimator: str | None = None) -> Contrast | None:
        """The contrast a − b; None where the two were not compared."""
        found = self.contrasts.get((self.metric, estimator or self.estimator), ())
        return next((c.of(a) for c in found if c.models == frozenset((a, b))), None)

    def of(self, model: str) -> list[Contrast]:
        """The contrasts of a model, itself first, the closest rival first."""
        rivals = [m for m in self.result.ranking(*self.family) if m != model]
        return [c for m in rivals if (c := self.between(model, m)) is not None]

    def ahead(self, difference: float) -> bool:
        """Whether a difference favours the first model."""
        return difference < 0 if self.result.better[self.metric] == "lower" else difference > 0

    def seen(self, estimator: str | None = None) -> Diagnostics:
        """What an estimate of the metric rests on."""
        return self.result[self.result.models[0], self.metric, estimator or self.estimator].diagnostics

    @property
    def evenly_weighted(self) -> bool:
        """Whether all rows have one weight, so that a weighted estimate is the plain average."""
        seen = self.seen()
        return seen.effective_size is not None and math.isclose(seen.effective_size, seen.n, rel_tol=SAME)

    @property
    def constant(self) -> bool:
        """Whether every model has one value in all rows, so that no weights change any average."""
        return self.equal(self.estimator, "naive") and all(
            self._still(m, e) for m in self.result.models for e in (self.estimator, "naive")
        )

    def _still(self, model: str, estimator: str) -> bool:
        found = self.result[model, self.metric, estimator]
        return found.stderr <= SAME * abs(found.value)

    def first(self, estimator: str) -> str | None:
        """The model that an estimator has first; None where two tie there."""
        one, two, *_ = self.result.ranking(self.metric, estimator)
        a, b = (self.result[m, self.metric, estimator].value for m in (one, two))
        return None if math.isclose(a, b, rel_tol=SAME, abs_tol=0.0) else one

    @property
    def witnesses(self) -> tuple[str, ...]:
        """Other debiased estimators of the same quantity, that say something of their own."""
        return tuple(
            e for m, e in self.contrasts
            if m == self.metric and e not in (self.estimator, *PLAIN) and self._comparable(e) and self._own_voice(e)
        )  # fmt: skip

    def _comparable(self, estimator: str) -> bool:
        """Whether it estimates the same, on a scale that can be trusted.

        Stratified is snips with averaged weights, so neither is a second witness beside the other.
        """
        theirs = self.contrasts[self.metric, estimator][0].estimand
        same = theirs == self.estimand != SEEN and {stem(estimator), stem(self.estimator)} != {"snips", "stratified"}
        return same and not (stem(estimator) in SCALED and off_scale(self.seen(estimator)))

    def _own_voice(self, estimator: str) -> bool:
        return not self.equal(estimator, self.estimator) and not self.equal(estimator, "naive")

    def equal(self, one: str, other: str) -> bool:
        """Whether two estimators give every model the same value; not where one is missing."""
        if (self.metric, other) not in self.contrasts:
            return False
        pairs = [(self.result[m, self.metric, one].value, self.result[m, self.metric, other].value)
                 for m in self.result.models]  # fmt: skip
        return all(math.isclose(a, b, rel_tol=SAME, abs_tol=0.0) for a, b in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rulebook:
    """What speaks against a verdict: rules about the log, and rules about a pair, the better model first."""

    of_the_log: tuple[Callable[[Evidence], Iterator[Reason]], ...]
    of_pairs: tuple[Callable[[Evidence, Contrast], Iterator[Reason]], ...]


def stem(estimator: str) -> str:
    """The estimator without its parameters."""
    return estimator.partition("@")[0]


def off_scale(seen: Diagnostics) -> bool:
    """Whether Σw is far from the population that it should add up to."""
    return seen.mass is not None and not MASS_RANGE[0] <= seen.mass <= MASS_RANGE[1]
