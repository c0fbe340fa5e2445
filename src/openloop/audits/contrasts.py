"""Paired differences between models: tests over users, Holm's correction, effect sizes, and who leads.

Pairs are compared within one metric and one estimator; p-values are adjusted over all pairs of that family,
the intervals beside them are not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from openloop.core.comparison import Comparison
from openloop.core.estimate import Estimate
from openloop.core.feedback import Floats
from openloop.estimators.sensitivity import critical_gamma

MANY_SUMS = 1_000_000  # of users: with more, one of them changes nothing in the others' parts
ROUNDING = 1e-12  # of an estimate: what is smaller is rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """How much one model's metric varies: what an A/B test of it is planned from. See `openloop.audits.planning`."""

    stderr: float  # over users
    cell_stderr: float | None  # over cells; None where there is none, as for metrics of users
    loss_variance: float | None  # S², of losses over the population's cells
    users: int  # U of the population
    scored_users: int  # with rows that count

    @classmethod
    def of(cls, e: Estimate) -> Arm:
        """That of an estimate."""
        cells = None if e.cell_variance is None else math.sqrt(e.cell_variance)
        spread = e.diagnostics.loss_variance
        return cls(
            stderr=e.stderr, cell_stderr=cells, loss_variance=spread, users=e.n_users, scored_users=e.scored_users
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """The paired difference a − b under one metric and estimator.

    Attributes:
        a: One model.
        b: The other model.
        metric: The metric.
        estimator: The estimator.
        estimand: What is compared, in words.
        value: The estimated difference.
        stderr: Its standard error over users.
        low: The lower limit of its interval, not adjusted.
        high: The upper limit.
        pvalue: The two-sided p-value, not adjusted.
        holm: The p-value adjusted over all pairs (Holm 1979).
        effect: The difference divided by the standard deviation of users' contributions to it (Cohen's d_z).
        better: The model that beats the other, None where neither does.
        df: The degrees of freedom of t.
        effective_users: (Σψ²)²/Σψ⁴ of the difference.
        holm_without: `holm`, of every pair without its own most influential user.
        gamma: Γ*, how far propensities may be off before the sign changes. None where it has no meaning.
        gamma_form: What may be off by a factor of Γ: "odds", those of p, or "ratio", the weight.
        gamma_low: Γ*₉₅, where the interval first covers 0.
        rho: ρ*, infinite where the order holds over the whole grid.
        rho_low: Where the interval against ρ first covers 0.
        kappa: κ*, infinite where the order holds for all κ in [0, 1].
        kappa_low: Where the interval against κ first covers 0.
        arms: How much the metric of each model varies, for `ol.plan`.

    Examples:
        >>> world = ol.simulate.movie_lovers()
        >>> pair = ol.audit(world.predictions, world.observe(0), metrics=["mae"]).contrast("Y1", "Y2")
        >>> pair.better, round(pair.gamma, 1)
        ('Y1', 1.7)
    """

    a: str
    b: str
    metric: str
    estimator: str
    estimand: str  # what is compared, in words
    value: float
    stderr: float
    low: float
    high: float
    pvalue: float
    holm: float
    effect: float  # the difference in standard deviations of users' parts in it
    better: str | None  # the model that beats the other, None where neither does
    df: float = math.inf  # of the t that interval and p-value come from
    effective_users: float = math.inf  # (Σψ²)²/Σψ⁴ of the difference
    holm_without: float | None = None  # `holm`, of every pair without its own most influential user
    gamma: float | None = None  # Γ*; None where it has no meaning
    gamma_form: str = "odds"  # what may be off by Γ: the odds of p, or by "ratio" the weight
    gamma_low: float | None = None  # Γ*₉₅, where the interval first covers 0
    rho: float | None = None  # ρ*, ∞ where the order holds over the whole grid
    rho_low: float | None = None
    kappa: float | None = None  # κ*, ∞ where the order holds for all κ in [0, 1]
    kappa_low: float | None = None
    arms: tuple[Arm, Arm] | None = None  # of a and of b

    def of(self, a: str) -> Contrast:
        """The same contrast with model `a` first."""
        if a == self.a:
            return self
        return replace(
            self, a=self.b, b=self.a, value=-self.value, low=-self.high, high=-self.low, effect=-self.effect,
            arms=None if self.arms is None else self.arms[::-1],
        )  # fmt: skip

    @property
    def models(self) -> frozenset[str]:
        """Both models."""
        return frozenset((self.a, self.b))


def holm(pvalues: npt.ArrayLike) -> Floats:
    """Holm's (1979) step-down adjustment: max over j ≤ i of (m − j + 1)·p₍ⱼ₎, at most 1; in the order given."""
    p = np.asarray(pvalues, np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def contrasts(
    result: Comparison, metric: str, estimator: str, baseline: str | None = None, beside: Sequence[float] = ()
) -> tuple[Contrast, ...]:
    """All pairs of models, or all with a baseline, tested over users at the comparison's level.

    `beside` are p-values of other pairs that are tested with them.
    """
    pairs = [pair for pair in combinations(result.models, 2) if baseline is None or baseline in pair]
    linear = {model: result[model, metric, estimator].linear() for model in result.models}
    found = [_settled(linear[a] - linear[b], linear[a].value) for a, b in pairs]
    adjusted = holm([*(testable(e) for e in found), *beside])[: len(found)]
    without = [testable(_without_one(result, a, b, e)) for (a, b), e in zip(pairs, found, strict=True)]
    left = holm([*without, *beside])[: len(found)]
    return tuple(
        replace(_contrast(result, a, b, e, float(p)), holm_without=float(q))
        for (a, b), e, p, q in zip(pairs, found, adjusted, left, strict=True)
    )


def _without_one(result: Comparison, a: str, b: str, e: Estimate) -> Estimate:
    """The difference without the user who moves it most, by both models' own functions."""
    user = int(np.argmax(np.abs(e.influence)))
    if result[a, e.metric, e.method].columns.size > MANY_SUMS:
        return _settled(e.without(user), result[a, e.metric, e.method].value)
    kept = [result[model, e.metric, e.method].without(user).linear() for model in (a, b)]
    return _settled(kept[0] - kept[1], kept[0].value)


def _contrast(result: Comparison, a: str, b: str, e: Estimate, adjusted: float) -> Contrast:
    low, high = e.limits(result.level)
    own = result.pair(a, b, metric=e.metric, estimator=e.method)
    clear = low > 0 or high < 0  # not where the interval covers 0, or is none
    parts = own.parts if own is not None and clear and moves_with_weights(e.method) else None
    return Contrast(
        a=a, b=b, metric=e.metric, estimator=e.method, estimand=e.estimand, value=e.value, stderr=e.stderr,
        low=low, high=high,
        pvalue=testable(e), holm=adjusted, effect=effect_size(e), df=e.df, effective_users=e.effective_users,
        better=winner(a, b, e, adjusted, result.better.get(e.metric, "higher"), result.level),
        gamma=None if parts is None else critical_gamma(*parts), gamma_form="odds" if own is None else own.form,
        arms=(Arm.of(result[a, e.metric, e.method]), Arm.of(result[b, e.metric, e.method])),
    )  # fmt: skip


def _settled(e: Estimate, size: float) -> Estimate:
    """The difference with 0 for its value or spread where that is only rounding."""
    tiny = ROUNDING * abs(size)
    if math.isnan(e.value):  # nothing is left without the one user
        return e
    if abs(e.value) > tiny and not 0 < e.stderr <= tiny:
        return e
    value = e.value if abs(e.value) > tiny else 0.0
    if e.stderr > tiny:
        return replace(e, value=value)
    none = np.zeros(e.n_users)
    return replace(e, value=value, influence=none, deviations=none, sample_effects=np.empty(0), replicates=np.empty(0))


def winner(a: str, b: str, e: Estimate, adjusted: float, better: str, level: float) -> str | None:
    """The model that beats the other, by the adjusted p-value of a − b."""
    if not (adjusted < 1 - level and e.value != 0):
        return None
    return a if (e.value < 0) == (better == "lower") else b


def testable(e: Estimate) -> float:
    """The p-value over users; 1 where there is no interval, and nothing to test."""
    return e.pvalue if math.isfinite(e.stderr) else 1.0


def effect_size(e: Estimate) -> float:
    """The paired difference in standard deviations over users of their parts in it (Cohen's d_z)."""
    spread = e.stderr * math.sqrt(e.units)
    if not spread > 0:
        return math.copysign(math.inf, e.value) if spread == 0 and e.value else 0.0 if spread == 0 else math.nan
    return e.value / spread


def moves_with_weights(estimator: str) -> bool:
    """Whether Γ* of the pooled sums is this estimator's: its sign is that of Σwd."""
    return estimator in ("snips", "ips")


def best_of(estimates: Mapping[str, Estimate], better: str, level: float) -> str | None:
    """The model that beats every other one, with Holm over all pairs; None where there is none."""
    pairs = list(combinations(estimates, 2))
    found = [_settled(estimates[a] - estimates[b], estimates[a].value) for a, b in pairs]
    adjusted = holm([testable(e) for e in found])
    won = [winner(a, b, e, p, better, level) for (a, b), e, p in zip(pairs, found, adjusted, strict=True)]
    return next((m for m in estimates if won.count(m) == len(estimates) - 1 > 0), None)


def leaders(models: Sequence[str], found: Sequence[Contrast]) -> tuple[str, ...]:
    """The models that no other beats, in the order given."""
    beaten = {m for c in found if c.better is not None for m in c.models - {c.better}}
    return tuple(m for m in models if m not in beaten)


def by_rank(found: Sequence[Contrast], ranking: Sequence[str]) -> list[Contrast]:
    """Each contrast with the better ranked model first, in the order of the ranks."""
    place = {model: n for n, model in enumerate(ranking)}
    turned = [c.of(min(c.models, key=place.__getitem__)) for c in found]
    return sorted(turned, key=lambda c: (place[c.a], place[c.b]))


def estimators_of(result: Comparison, metric: str) -> list[str]:
    """The estimators that the metric has."""
    return [e for e in result.estimators if (result.models[0], metric, e) in result.estimates]
