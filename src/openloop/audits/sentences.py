"""The sentences beside a headline: sizes, conditions, sensitivity, who agrees, and paradoxes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from openloop.audits.answers import Assumption, PairAnswer
from openloop.audits.contrasts import Contrast
from openloop.audits.evidence import Evidence
from openloop.audits.paradox import Paradox
from openloop.audits.planning import confirmation
from openloop.core.estimate import Estimate
from openloop.core.weights import support_flags
from openloop.estimators.estimands import PLAIN
from openloop.support.wording import chance, counted, joined, level_of, percent, three_digits, times

MANY = 3  # paradoxes that have a sentence each
Answers = Mapping[frozenset[str], PairAnswer]


# -- pairs ---------------------------------------------------------------------------------------------------


def pair_sentences(found: Evidence, leader: str, answers: Answers, *, alone: bool) -> Iterator[str]:
    """A sentence for each other model, the closest first; `alone`: the headline has the only pair's condition."""
    how = ", every row counted once" if found.basis.clicks else f" by {found.estimator}"
    for number, c in enumerate(found.of(leader)):
        answer = answers[c.models]
        verb = "beats" if answer.level == "verdict" else "is ahead of"
        given = answer.assumption if answer.level == "conditional" and not alone else None
        parts = [
            f"{leader} {verb} {c.b} by {size(found, c)}{how}",
            *([] if given is None else [f"this holds {condition(given)}"]),
            *_strata_words(found, leader, c.b),
            *_gamma_words(c),
            *([] if number else _sample_words(found.result[leader, *found.family])),
        ]
        yield "; ".join(parts) + "."
    closest = found.of(leader)[0]
    if answers[closest.models].level != "none":
        yield from filter(None, [confirmation(closest)])
    yield from _required_words([answers[c.models] for c in found.of(leader)])


def _required_words(own: Sequence[PairAnswer]) -> Iterator[str]:
    """What a conditional finding lacks to be a verdict."""
    for given in (p.assumption for p in own if p.level == "conditional" and p.assumption is not None):
        times_likelier = f"up to {given.required:g} times"
        needed = "for any share of popularity that is exposure" if given.name == "kappa" else times_likelier
        yield f"For a verdict it would have to hold {needed}."
        return


def beaten_by_all(found: Evidence, answers: Answers, first: Sequence[str]) -> Iterator[str]:
    """The models that every leading one beats."""
    rest = [m for m in found.result.models if m not in first]
    beaten = [m for m in rest if all(_beats(answers, a, m) for a in first)]
    if beaten:
        verb = "beats" if len(first) == 1 else "each beat"
        yield f"{joined(first)} {verb} {joined(beaten)} on {found.subject}."


def _beats(answers: Answers, a: str, b: str) -> bool:
    answer = answers.get(frozenset((a, b)))
    return answer is not None and answer.better == a and answer.level == "verdict"


def condition(given: Assumption) -> str:
    """The condition under which an order holds, and where it reverses."""
    turns = math.isfinite(given.flips_at)
    if given.name == "kappa":
        where = (
            f"the order reverses near {percent(given.flips_at)}"
            if turns
            else "beyond that the order is uncertain, but never reverses"
        )
        return f"if at most {percent(given.holds_to)} of popularity is exposure; {where}"
    near = f"the order reverses near {given.flips_at:.2f} times"
    if given.name == "gamma":
        off = f"if propensities are off by at most {given.holds_to:.2f} times, either way"
        return f"{off}; {near if turns else 'beyond that it is uncertain'}"
    return (
        f"if each extra star makes being observed at most {given.holds_to:.2f} times likelier than the propensities "
        f"say; {near if turns else 'beyond that the order is uncertain, but did not reverse in the tested range'}"
    )


def size(found: Evidence, c: Contrast) -> str:
    """The size of a difference with its unadjusted interval and adjusted p, of the sign that the words have."""
    low, high = (c.low, c.high) if c.value >= 0 else (-c.high, -c.low)
    text = three_digits(abs(c.value))
    if not math.isfinite(low):
        return f"{text} (one user gives no interval)"
    return (
        f"{text} ({level_of(found.result.level)} {three_digits(low)} to {three_digits(high)}, Holm p {chance(c.holm)})"
    )


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
        yield "no reweighting of the scored rows could reverse it"
    elif c.gamma is not None:
        yield f"could reverse once propensities are off by more than {times(c.gamma)}"


def _sample_words(e: Estimate) -> Iterator[str]:
    if e.diagnostics.effective_size is not None:
        yield f"effective sample {e.diagnostics.effective_size:,.0f} of {e.diagnostics.n:,}"


# -- beside the pairs ----------------------------------------------------------------------------------------


def context(found: Evidence, winner: str) -> Iterator[str]:
    """Assumptions, how often the model is best, who agrees, what the plain average says, and paradoxes."""
    if found.basis.clicks:
        yield (
            "This log has positives only and says nothing about what was shown: every row counts once, as if all of "
            "popularity were liking."
        )
        if found.running is None:
            yield (
                "The log does not say which items each user was shown. If one of the models chose them, name it with "
                "running=, because clicks on its own lists favour it."
            )
    if found.assumes:
        yield f"The propensities assume that {found.assumes}."
    elif found.weighted and found.basis.bare and found.seen().effective_size is not None and not found.evenly_weighted:
        yield (
            "This takes the propensities as known, as if your system had logged them. If they come from a fitted "
            "model, name it with propensity_model=. A verdict then needs more."
        )
    share = found.best.get(found.family, {}).get(winner)
    if share is not None and math.isfinite(share) and found.seen().users > 1:
        yield f"Among users like these, {winner} comes out best in {percent(share)} of bootstrap samples."
    yield from _open_loop_words(found, winner)
    yield from _agreement(found, winner)
    seen = found.seen()
    told = support_flags(seen.n, seen.users, seen.effective_size, seen.largest_share)  # the rules speak of these
    yield from (f"Note: {flag}." for flag in seen.flags if flag not in told)
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
        ""
        if right is None
        else f"; {found.estimator} orders {right.right} of {counted(right.pairs, 'pair')} as it does"
    )
    first_too = f"ranks {winner} first, too" if first == winner else f"ranks {first} first"
    yield f"The open loop ({counted(sample.rows, 'row')} collected uniformly) {first_too}{pairs}."
    if sample.gamma_min is not None and sample.gamma_min > 1:
        yield f"The ratings of the open loop show that some weights are off by at least {times(sample.gamma_min)}."


def _paradoxes(found: Evidence) -> Iterator[str]:
    """The first few, each pair once, by the first grouping that shows it; all of them are in the audit."""
    shown = [p for p in found.paradoxes if p.pair.metric == found.metric]
    own: list[Paradox] = list({(p.pair.a, p.pair.b): p for p in reversed(shown)}.values())[::-1]
    yield from (f"{p}." for p in own[:MANY])
    if len(own) > MANY:
        yield f"Simpson's paradox also concerns {counted(len(own) - MANY, 'more pair')} of models."


def _agreement(found: Evidence, winner: str) -> Iterator[str]:
    """Whether the other estimators have the same model first; a tie is not a vote."""
    firsts = {e: found.first(e) for e in found.witnesses}
    same = [e for e, first in firsts.items() if first == winner]
    if same:
        yield f"{joined(same)} {'ranks' if len(same) == 1 else 'rank'} {winner} first, too."
    yield from (f"{e} ranks {first} first." for e, first in firsts.items() if first not in (None, winner))
    yield from _plain_average(found, winner)


def _plain_average(found: Evidence, winner: str) -> Iterator[str]:
    if found.estimator in PLAIN or (found.metric, "naive") not in found.contrasts:
        return
    top = found.first("naive")
    if found.constant:
        yield f"Each model has the same {found.metric} in every row, so weights change nothing here."
    elif found.equal(found.estimator, "naive"):
        yield f"{found.estimator} gives every model the plain average here."
    elif top is not None:
        yield f"The plain average ranks {top} first, too." if top == winner else f"The plain average would pick {top}."


def _elsewhere(found: Evidence, winner: str, metric: str) -> Iterator[str]:
    """Other models that are significantly ahead of the winner by another metric."""
    family = metric, found.estimator
    own = found.contrasts[family]
    ahead = [c.better for c in own if winner in c.models and c.better not in (None, winner)]
    if ahead:
        names = joined([m for m in found.result.ranking(*family) if m in ahead])
        what = f"{metric}, {own[0].estimand}," if own[0].estimand else metric
        yield f"On {what} {names} {'is' if len(ahead) == 1 else 'are'} ahead of {winner}."
