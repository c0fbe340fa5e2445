"""The verdict in words: which model beats which, how surely, and why not where the log cannot say.

Conservative: one model must beat every other under Holm's correction, on enough rows and users, by an estimator that
corrects the selection, and neither another such estimator, nor most of the population, nor an open loop may say the
opposite. Everything else is a reason not to choose.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from openloop.audits.answers import Reason, Verdict
from openloop.audits.contrasts import Contrast, leaders, testable
from openloop.audits.evidence import BIASED, SCALED, Evidence, off_scale, stem
from openloop.audits.paradox import Paradox
from openloop.audits.results import Family, StrataLine, StrataTable
from openloop.core.estimate import Estimate
from openloop.core.weights import HEAVY_SHARE, THIN_SAMPLE
from openloop.support.wording import chance, counted, joined, level_of, percent, times

MANY = 3  # paradoxes that have a sentence each


def decide(found: Evidence) -> Verdict:
    """The verdict on the evidence."""
    obstacles = [*found.doubts, *_thin(found), *_biased(found)]
    winner = next((m for m in found.result.models if all(c.better == m for c in found.own if m in c.models)), None)
    if winner is None:
        return _undecided(found, obstacles)
    obstacles += [*_leaked(found, winner), *_contradictions(found, winner), *_against_most(found, winner)]
    verb = "is ahead of" if obstacles else "beats"
    beaten = [m for m in found.result.ranking(*found.family) if m != winner]
    return Verdict(
        level="none" if obstacles else "verdict",
        winner=None if obstacles else winner,
        leader=winner,
        unbeaten=(winner,),
        headline=_cannot(obstacles[0]) if obstacles else f"{winner} beats {joined(beaten)} on {_named(found.family)}.",
        sentences=(*_pairs(found, winner, verb), *_context(found, winner)),
        reasons=_reasons(obstacles),
    )


def _reasons(found: Sequence[str]) -> tuple[Reason, ...]:
    return tuple(Reason(code="obstacle", text=text) for text in found)


def _cannot(reason: str) -> str:
    return f"This log cannot support a choice: {reason}."


def _undecided(found: Evidence, obstacles: Sequence[str]) -> Verdict:
    """No model beats all others."""
    ranking = found.result.ranking(*found.family)
    unbeaten = leaders(ranking, found.own) or tuple(ranking)
    reasons = (*obstacles, *_undistinguished(found, unbeaten[0], unbeaten[1:]))
    return Verdict(
        level="none",
        unbeaten=unbeaten,
        headline=_cannot(reasons[0]),
        sentences=(*_beaten_by_all(found, unbeaten), *_context(found, unbeaten[0])),
        reasons=_reasons(reasons),
    )


def _undistinguished(found: Evidence, a: str, rest: Sequence[str]) -> Iterator[str]:
    """Which of the leading models are not told apart from the first."""
    for b in rest:
        c = found.between(a, b)
        if c.better is None and c.value == c.stderr == 0:
            yield f"{a} and {b} are the same to every user on {_named(found.family)}"
        elif c.better is None:
            yield f"{a} and {b} cannot be told apart on {_named(found.family)}: they differ by {_size(found, c)}"


def _beaten_by_all(found: Evidence, first: Sequence[str]) -> Iterator[str]:
    """The models that every leading one beats."""
    rest = [m for m in found.result.models if m not in first]
    beaten = [m for m in rest if all(found.between(a, m).better == a for a in first)]
    if beaten:
        verb = "beats" if len(first) == 1 else "each beat"
        yield f"{joined(first)} {verb} {joined(beaten)} on {_named(found.family)}."


# -- why not -------------------------------------------------------------------------------------------------


def _thin(found: Evidence) -> Iterator[str]:
    """Support too thin: of users, of rows after weighting, or all on one row."""
    seen = found.seen()
    if seen.users < THIN_SAMPLE:
        has = "has rows that count" if seen.users == 1 else "have rows that count"
        yield f"support too thin: {counted(seen.users, 'user')} {has}, at least {THIN_SAMPLE} are needed"
    if seen.effective_size is not None and seen.effective_size < THIN_SAMPLE:
        count = "counts" if seen.n == 1 else "count"
        yield f"support too thin: {counted(seen.n, 'row')} {count} as {seen.effective_size:.1f} after weighting"
    if seen.largest_share is not None and seen.largest_share > HEAVY_SHARE:
        yield f"support too thin: one row carries {percent(seen.largest_share)} of all weight"


def _biased(found: Evidence) -> Iterator[str]:
    """The plain average, by name or in all but name; and weights that do not add up where they must."""
    seen = found.seen()
    if found.estimator in BIASED or (found.equal(found.estimator, "naive") and not found.evenly_weighted):
        yield (
            f"{found.estimator} does not correct the selection: an average over what was observed rewards models that "
            "copy the old system"
        )
    elif stem(found.estimator) in SCALED and off_scale(seen):
        yield f"the weights add up to {seen.mass:.3g} of the population, not to 1, and {found.estimator} needs that"


def _leaked(found: Evidence, winner: str) -> Iterator[str]:
    if winner in found.leaks:
        yield f"the predictions of {winner} are the log's own ratings, a leak"


def _contradictions(found: Evidence, winner: str) -> Iterator[str]:
    """Debiased estimators, and an open loop, that have a pair the other way round, significantly."""
    for estimator in found.witnesses:
        for c in found.contrasts[found.metric, estimator]:
            if _against(found, c, winner):
                yield (
                    f"the estimators disagree: {found.estimator} has {winner} ahead of {_other(c, winner)}, "
                    f"{estimator} the reverse, by {_size(found, c)}"
                )
    for c in () if found.open_loop is None else found.open_loop.contrasts.get(found.metric, ()):
        if _against(found, c, winner):
            yield f"the open loop has {_other(c, winner)} ahead of {winner}, by {_size(found, c)}"


def _against(found: Evidence, c: Contrast, winner: str) -> bool:
    if winner not in c.models or not c.pvalue < 1 - found.result.level:
        return False
    return not found.ahead(c.of(winner).value)


def _against_most(found: Evidence, winner: str) -> Iterator[str]:
    """A stratum that is most of the population, and prefers another model.

    Rows that are many because they are the likeliest to be seen do not speak for the others.
    """
    named: set[str] = set()
    for table in found.strata:
        for line, share in _largest(table) if table.metric == found.metric else ():
            for other in (m for m in found.result.models if m != winner and m not in named):
                gap = line.difference(winner, other)
                if testable(gap) < 1 - found.result.level and found.ahead(-gap.value):
                    named.add(other)
                    yield (
                        f"{line.name} of {table.by}, {share}, has {other} ahead of {winner}"
                        f"{_paradox_words(found, winner, other)}"
                    )


def _largest(table: StrataTable) -> Iterator[tuple[StrataLine, str]]:
    """The stratum with over half of the population; of the rows, where shares are not known."""
    rows = sum(line.rows for line in table.lines if line.kind == "stratum")
    for line in table.strata:
        share = line.rows / rows if line.share is None else line.share
        if share > 0.5:
            yield line, f"{percent(share)} of the {'rows' if line.share is None else 'population'}"


def _paradox_words(found: Evidence, winner: str, other: str) -> str:
    paradox = any({p.pair.a, p.pair.b} == {winner, other} for p in _own_paradoxes(found))
    return ", a paradox" if paradox else ""


# -- the sentences -------------------------------------------------------------------------------------------


def _pairs(found: Evidence, winner: str, verb: str) -> Iterator[str]:
    """A sentence for each other model, the closest first."""
    rest = [m for m in found.result.ranking(*found.family) if m != winner]
    for number, other in enumerate(rest):
        c = found.between(winner, other)
        parts = [
            f"{winner} {verb} {other} on {_named(found.family)} by {_size(found, c)}",
            *_strata_words(found, winner, other),
            *_gamma_words(c),
            *([] if number else _sample_words(found.result[winner, *found.family])),
        ]
        yield "; ".join(parts) + "."


def _strata_words(found: Evidence, winner: str, other: str) -> Iterator[str]:
    for table in found.strata:
        if table.metric == found.metric and len(table.strata) > 1:
            values = [line.difference(winner, other).value for line in table.strata]
            tied = sum(value == 0 for value in values)
            held = [line for line, value in zip(table.strata, values, strict=True) if found.ahead(value)]
            share = round(sum(line.share or 0.0 for line in held), 9)  # shares add up to 1 but for rounding
            beside = [f"{percent(share)} of the population"] if held and held[0].share is not None else []
            beside += [f"tied in {tied}"] if tied else []
            brackets = f" ({', '.join(beside)})" if beside else ""
            yield f"holds in {len(held)} of {len(values)} strata of {table.by.partition(' (')[0]}{brackets}"
            return


def _gamma_words(c: Contrast) -> Iterator[str]:
    if c.gamma == math.inf:
        yield "no error in the propensities could flip it"
    elif c.gamma is not None:
        yield f"could flip once propensities are off by more than {times(c.gamma)}"


def _sample_words(e: Estimate) -> Iterator[str]:
    if e.diagnostics.effective_size is not None:
        yield f"effective sample {e.diagnostics.effective_size:,.0f} of {e.diagnostics.n:,}"


def _context(found: Evidence, winner: str) -> Iterator[str]:
    """What is taken for granted, how often it is best, who agrees, what the plain average says, and paradoxes."""
    if found.assumes:
        yield f"This rests on propensities by which {found.assumes}."
    share = found.best.get(found.family, {}).get(winner)
    if share is not None and math.isfinite(share) and found.seen().users > 1:
        yield f"Among users like these, {winner} comes out best in {percent(share)} of bootstrap samples."
    yield from _open_loop_words(found, winner)
    yield from _agreement(found, winner)
    yield from (
        f"Mind: {flag}." for flag in found.seen().flags if not flag.startswith(("support too", "only ", "one "))
    )
    yield from _paradoxes(found)
    for metric in found.result.metrics:
        if (metric, found.estimator) in found.contrasts and metric != found.metric:
            yield from _elsewhere(found, winner, metric)


def _open_loop_words(found: Evidence, winner: str) -> Iterator[str]:
    sample = found.open_loop
    if sample is None or found.metric not in sample.contrasts:
        return
    first = sample.result.ranking(found.metric, "naive")[0]
    right = next((s for s in sample.scores if (s.metric, s.estimator) == found.family), None)
    pairs = (
        "" if right is None else f"; {found.estimator} has {right.right} of {counted(right.pairs, 'pair')} in its order"
    )
    first_too = f"has {winner} first too" if first == winner else f"has {first} first"
    yield f"The open loop, {counted(sample.rows, 'row')} that nobody chose, {first_too}{pairs}."


def _paradoxes(found: Evidence) -> Iterator[str]:
    """The first few, each pair once, by the first grouping that shows it; all of them are in the audit."""
    own = list({(p.pair.a, p.pair.b): p for p in reversed(_own_paradoxes(found))}.values())[::-1]
    yield from (f"{p}." for p in own[:MANY])
    if len(own) > MANY:
        yield f"Simpson's paradox also concerns {counted(len(own) - MANY, 'more pair')} of models."


def _own_paradoxes(found: Evidence) -> list[Paradox]:
    return [p for p in found.paradoxes if p.pair.metric == found.metric]


def _agreement(found: Evidence, winner: str) -> Iterator[str]:
    """Whether the other estimators have the same model first; a tie is no vote."""
    firsts = {e: found.first(e) for e in found.witnesses}
    same = [e for e, first in firsts.items() if first == winner]
    if same:
        yield f"{joined(same)} {'has' if len(same) == 1 else 'have'} {winner} first too."
    yield from (f"{e} has {first} first." for e, first in firsts.items() if first not in (None, winner))
    yield from _plain_average(found, winner)


def _plain_average(found: Evidence, winner: str) -> Iterator[str]:
    if found.estimator in BIASED or (found.metric, "naive") not in found.contrasts:
        return
    top = found.first("naive")
    if found.equal(found.estimator, "naive"):
        yield f"{found.estimator} gives every model the plain average here."
    elif top is not None:
        yield f"The plain average has {top} first too." if top == winner else f"The plain average would pick {top}."


def _elsewhere(found: Evidence, winner: str, metric: str) -> Iterator[str]:
    """Other models that beat the winner by another metric."""
    family = metric, found.estimator
    ahead = [c.better for c in found.contrasts[family] if winner in c.models and c.better not in (None, winner)]
    if ahead:
        names = joined([m for m in found.result.ranking(*family) if m in ahead])
        yield f"On {_named(family)} {names} {'beats' if len(ahead) == 1 else 'beat'} {winner}."


# -- pieces --------------------------------------------------------------------------------------------------


def _other(c: Contrast, model: str) -> str:
    return c.b if c.a == model else c.a


def _named(family: Family) -> str:
    return f"{family[1]}-{family[0]}"


def _size(found: Evidence, c: Contrast) -> str:
    """The size of a difference with its unadjusted interval and adjusted p, of the sign that the words have."""
    low, high = (c.low, c.high) if c.value >= 0 else (-c.high, -c.low)
    size = f"{abs(c.value):.3g}"
    if not math.isfinite(low):
        return f"{size} (one user gives no interval)"
    return f"{size} ({level_of(found.result.level)} {low:.3g} to {high:.3g}, Holm p {chance(c.holm)})"
