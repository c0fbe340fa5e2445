"""The verdict in words: which model beats which, how surely, and why not where the log cannot say.

Conservative: one model must beat every other under Holm's correction, on enough rows and users, without another
debiased estimator or most of the rows saying the opposite. Everything else is a reason not to choose.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from openloop.core.audit import Family, StrataTable, Verdict
from openloop.core.comparison import Comparison
from openloop.core.contrasts import Contrast, leaders
from openloop.core.estimate import Estimate
from openloop.core.paradox import Paradox
from openloop.core.weights import HEAVY_SHARE, THIN_SAMPLE

BIASED = ("naive", "ips_eq3")  # what a verdict may not rest on
MANY = 3  # paradoxes that are told one by one


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence:
    """What the verdict is made of."""

    result: Comparison
    metric: str
    estimator: str
    contrasts: dict[Family, tuple[Contrast, ...]]
    best: dict[Family, dict[str, float]]
    strata: tuple[StrataTable, ...] = ()
    paradoxes: tuple[Paradox, ...] = ()

    @property
    def family(self) -> Family:
        """The metric and estimator of the verdict."""
        return self.metric, self.estimator

    @property
    def own(self) -> tuple[Contrast, ...]:
        """The contrasts of the verdict."""
        return self.contrasts[self.family]

    def between(self, a: str, b: str, family: Family | None = None) -> Contrast:
        """The contrast a − b."""
        found = self.contrasts[family or self.family]
        return next(c for c in found if c.models == frozenset((a, b))).of(a)

    @property
    def others(self) -> tuple[str, ...]:
        """The other debiased estimators of the metric."""
        return tuple(e for m, e in self.contrasts if m == self.metric and e not in (self.estimator, *BIASED))


def decide(found: Evidence) -> Verdict:
    """The verdict on the evidence."""
    obstacles = [*_thin(found), *_biased(found)]
    winner = next((m for m in found.result.models if _beats_all(found, m)), None)
    if winner is None:
        return _undecided(found, obstacles)
    obstacles += [*_contradictions(found, winner), *_against_majority(found, winner)]
    verb = "is ahead of" if obstacles else "beats"
    beaten = [m for m in found.result.ranking(*found.family) if m != winner]
    return Verdict(
        winner=None if obstacles else winner,
        headline=_cannot(obstacles[0]) if obstacles else f"{winner} beats {_joined(beaten)} on {_named(found.family)}.",
        sentences=(*_pairs(found, winner, verb), *_context(found, winner)),
        reasons=tuple(obstacles),
    )


def _beats_all(found: Evidence, model: str) -> bool:
    return all(c.better == model for c in found.own if model in c.models)


def _cannot(reason: str) -> str:
    return f"This log cannot support a choice: {reason}."


def _undecided(found: Evidence, obstacles: Sequence[str]) -> Verdict:
    """No model beats all others."""
    ranking = found.result.ranking(*found.family)
    unbeaten = leaders(ranking, found.own) or tuple(ranking)
    reasons = (*obstacles, *_apart(found, unbeaten[0], unbeaten[1:]))
    return Verdict(
        winner=None,
        headline=_cannot(reasons[0]),
        sentences=(*_beaten_by_all(found, unbeaten), *_context(found, unbeaten[0])),
        reasons=reasons,
    )


def _apart(found: Evidence, a: str, rest: Sequence[str]) -> list[str]:
    """Which of the leading models are not told apart from the first."""
    return [
        f"{a} and {b} cannot be told apart on {_named(found.family)}: they differ by {_size(c)} "
        f"({_interval(found, c)}, {_holm(c)})"
        for b in rest
        if (c := found.between(a, b)).better is None
    ]


def _beaten_by_all(found: Evidence, first: Sequence[str]) -> Iterator[str]:
    """The models that every leading one beats."""
    rest = [m for m in found.result.models if m not in first]
    beaten = [m for m in rest if all(found.between(a, m).better == a for a in first)]
    if beaten:
        verb = "beats" if len(first) == 1 else "each beat"
        yield f"{_joined(first)} {verb} {_joined(beaten)} on {_named(found.family)}."


# -- why not -------------------------------------------------------------------------------------------------


def _thin(found: Evidence) -> Iterator[str]:
    """Support too thin: of users, of rows after weighting, or all on one row."""
    worst: dict[str, str] = {}
    for model in found.result.models:
        seen = found.result[model, *found.family].diagnostics
        if seen.users < THIN_SAMPLE:
            worst["users"] = (
                f"support too thin: {seen.users} users have rows that count, at least {THIN_SAMPLE} are needed"
            )
        if seen.effective_size is not None and seen.effective_size < THIN_SAMPLE:
            worst["rows"] = f"support too thin: {seen.n:,} rows count as {seen.effective_size:.1f} after weighting"
        if seen.largest_share is not None and seen.largest_share > HEAVY_SHARE and not _plain(found):
            worst["one"] = f"support too thin: one row carries {seen.largest_share:.0%} of all weight"
    yield from worst.values()


def _plain(found: Evidence) -> bool:
    return found.estimator in BIASED


def _biased(found: Evidence) -> Iterator[str]:
    if _plain(found):
        yield (
            f"only {found.estimator} could be computed, a plain average over what was observed, which rewards models "
            "that copy the old system"
        )


def _contradictions(found: Evidence, winner: str) -> Iterator[str]:
    """Debiased estimators that have a pair the other way round, significantly."""
    for estimator in found.others:
        for c in found.contrasts[found.metric, estimator]:
            if winner in c.models and c.pvalue < 1 - found.result.level and _ahead(found, c) != winner:
                yield (
                    f"the estimators disagree: {found.estimator} has {winner} ahead of {_other(c, winner)}, "
                    f"{estimator} the reverse, by {_size(c)} ({_interval(found, c)})"
                )


def _against_majority(found: Evidence, winner: str) -> Iterator[str]:
    """A paradox in which most rows prefer the other model, and stand for most of the population.

    Rows that are many because they are the likeliest to be seen do not speak for the others.
    """
    for p in found.paradoxes:
        against = p.pair.metric == found.metric and winner in (p.pair.a, p.pair.b) and p.preferred != winner
        if against and _population_share(found, p) > 0.5:
            yield f"paradox found: in {_stratum(p)} {p.preferred} is ahead of {winner}"


def _population_share(found: Evidence, p: Paradox) -> float:
    """The share of the population that the majority stratum is; 1 where that is not known."""
    lines = [x for t in found.strata if (t.metric, t.by) == (p.pair.metric, p.pair.by) for x in t.strata]
    return next((x.share for x in lines if x.name == p.majority.name and x.share is not None), 1.0)


# -- what is said --------------------------------------------------------------------------------------------


def _pairs(found: Evidence, winner: str, verb: str) -> Iterator[str]:
    """A sentence for each other model, the closest first."""
    rest = [m for m in found.result.ranking(*found.family) if m != winner]
    for number, other in enumerate(rest):
        c = found.between(winner, other)
        parts = [
            f"{winner} {verb} {other} on {_named(found.family)} by {_size(c)} ({_interval(found, c)}, {_holm(c)})",
            *_strata_words(found, winner, other),
            *_gamma_words(c),
            *([] if number else _sample_words(found.result[winner, *found.family])),
        ]
        yield "; ".join(parts) + "."


def _strata_words(found: Evidence, winner: str, other: str) -> Iterator[str]:
    for table in found.strata:
        if table.metric == found.metric and len(table.strata) > 2:
            values = [line.difference(winner, other).value for line in table.strata]
            tied = sum(value == 0 for value in values)
            held = sum(_prefers(found, value) for value in values)
            between = f" (tied in {tied})" if tied else ""
            yield f"holds in {held} of {len(values)} strata of {table.by.partition(' (')[0]}{between}"
            return


def _gamma_words(c: Contrast) -> Iterator[str]:
    if c.gamma == math.inf:
        yield "no error in the propensities could flip it"
    elif c.gamma is not None:
        yield f"could flip once propensities are off by more than {c.gamma:.3g}×"


def _sample_words(e: Estimate) -> Iterator[str]:
    if e.diagnostics.effective_size is not None:
        yield f"effective sample {e.diagnostics.effective_size:,.0f} of {e.diagnostics.n:,}"


def _context(found: Evidence, winner: str) -> Iterator[str]:
    """How often it is best, who agrees, what the plain average says, and paradoxes."""
    share = found.best.get(found.family, {}).get(winner)
    if share is not None and math.isfinite(share):
        yield f"Among users like these, {winner} comes out best in {_percent(share)} of bootstrap samples."
    yield from _agreement(found, winner)
    yield from _paradoxes(found)
    for metric in found.result.metrics:
        if (metric, found.estimator) in found.contrasts and metric != found.metric:
            yield from _elsewhere(found, winner, metric)


def _paradoxes(found: Evidence) -> Iterator[str]:
    """The first few; all of them are in the audit."""
    own = list({(p.pair.a, p.pair.b): p for p in reversed(found.paradoxes) if p.pair.metric == found.metric}.values())
    own.reverse()  # a pair once, by the first grouping that shows it
    yield from (f"{p}." for p in own[:MANY])
    if len(own) > MANY:
        yield f"Simpson's paradox stands between {len(own) - MANY} more pairs of models."


def _agreement(found: Evidence, winner: str) -> Iterator[str]:
    """Whether the estimators have the same model first."""
    same = [e for e in found.others if found.result.ranking(found.metric, e)[0] == winner]
    different = [e for e in found.others if e not in same]
    if same:
        yield f"{_joined(same)} {'has' if len(same) == 1 else 'have'} {winner} first too."
    for e in different:
        yield f"{e} has {found.result.ranking(found.metric, e)[0]} first."
    if (found.metric, "naive") in found.contrasts and found.estimator != "naive":
        top = found.result.ranking(found.metric, "naive")[0]
        yield "The plain average has it first too." if top == winner else f"The plain average would pick {top}."


def _elsewhere(found: Evidence, winner: str, metric: str) -> Iterator[str]:
    """Other models that beat the winner by another metric."""
    family = metric, found.estimator
    ahead = [c.better for c in found.contrasts[family] if winner in c.models and c.better not in (None, winner)]
    if ahead:
        names = _joined([m for m in found.result.ranking(*family) if m in ahead])
        yield f"On {_named(family)} {names} {'beats' if len(ahead) == 1 else 'beat'} {winner}."


# -- pieces --------------------------------------------------------------------------------------------------


def _ahead(found: Evidence, c: Contrast) -> str:
    return c.a if (c.value < 0) == (found.result.better[c.metric] == "lower") else c.b


def _prefers(found: Evidence, difference: float) -> bool:
    return difference < 0 if found.result.better[found.metric] == "lower" else difference > 0


def _other(c: Contrast, model: str) -> str:
    return c.b if c.a == model else c.a


def _stratum(p: Paradox) -> str:
    total = sum(part.rows for part in p.pair.strata)
    return f"{p.majority.name} ({_percent(p.majority.rows / total)} of the rows)"


def _named(family: Family) -> str:
    return f"{family[1]}-{family[0]}"


def _size(c: Contrast) -> str:
    return f"{abs(c.value):.3g}"


def _interval(found: Evidence, c: Contrast) -> str:
    """The unadjusted interval of the difference, of the sign that the words have."""
    low, high = (c.low, c.high) if c.value >= 0 else (-c.high, -c.low)
    return f"{found.result.level * 100:g} % {low:.3g} to {high:.3g}"


def _holm(c: Contrast) -> str:
    return "Holm p < 0.001" if c.holm < 0.001 else f"Holm p = {c.holm:.2g}"


def _percent(share: float) -> str:
    if share in (0.0, 1.0):
        return f"{share:.0%}".replace("%", " %")
    return f"{min(max(share, 0.001), 0.999) * 100:.3g} %"


def _joined(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
