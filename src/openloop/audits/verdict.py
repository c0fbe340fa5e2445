"""The verdict: which model beats which, under which assumption, and why the log may be unable to tell.

Each pair of models has its own answer: a verdict where the difference is significant under Holm's correction and no
rule speaks against it, conditional where only an assumption carries it, else none. A model wins when it beats all those
it was compared with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from openloop.audits import rules
from openloop.audits.answers import Assumption, Level, PairAnswer, Reason, Verdict
from openloop.audits.contrasts import Contrast, testable
from openloop.audits.evidence import Evidence, Rulebook
from openloop.audits.results import StrataLine, StrataTable
from openloop.audits.sentences import beaten_by_all, condition, context, pair_sentences, size
from openloop.audits.weight_rules import WEIGHT_RULES, cut
from openloop.estimators.estimands import PLAIN, SEEN
from openloop.support.wording import joined, percent

LEVELS: tuple[Level, ...] = ("none", "conditional", "verdict")


def decide(found: Evidence, book: Rulebook | None = None) -> Verdict:
    """The verdict on the evidence, by the rules for ratings unless others are given."""
    book = book or RATINGS
    everywhere = tuple(reason for rule in book.of_the_log for reason in rule(found))
    pairs = tuple(_answer(found, c, everywhere, book) for c in found.own)
    ahead = {m: _level(own) for m in found.result.ranking(*found.family) if _leads(m, own := _of(pairs, m))}
    level = LEVELS[max(map(LEVELS.index, ahead.values()), default=0)]
    leaders = tuple(m for m in ahead if ahead[m] == level)
    beaten = {m for p in pairs if p.level == "verdict" for m in p.models - {p.better}}
    unbeaten = tuple(m for m in found.result.ranking(*found.family) if m not in beaten)
    first = leaders[0] if leaders else _first(found)
    reasons = () if level == "verdict" else _reasons(_of(pairs, first), everywhere, many=len(pairs) > 1)
    return Verdict(
        level=level, unbeaten=unbeaten, pairs=pairs, reasons=reasons,
        winner=leaders[0] if level == "verdict" and len(leaders) == 1 else None,
        leader=leaders[0] if level != "none" and len(leaders) == 1 else None,
        headline=_headline(found, level, leaders, pairs, reasons),
        sentences=(*_sentences(found, leaders, pairs, unbeaten), *context(found, first)),
        remedy=f"What may help: {cure}." if (cure := rules.cheapest(reasons)) else "",
    )  # fmt: skip


def _of(pairs: Sequence[PairAnswer], model: str) -> list[PairAnswer]:
    return [pair for pair in pairs if model in pair.models]


def _leads(model: str, own: Sequence[PairAnswer]) -> bool:
    return bool(own) and all(pair.better == model for pair in own)


def _level(own: Sequence[PairAnswer]) -> Level:
    return LEVELS[min(LEVELS.index(pair.level) for pair in own)]


def _first(found: Evidence) -> str:
    """The best ranked of the models that no other is significantly ahead of."""
    behind = {m for c in found.own if c.better is not None for m in c.models - {c.better}}
    ranking = found.result.ranking(*found.family)
    return next((m for m in ranking if m not in behind), ranking[0])


def _reasons(own: Sequence[PairAnswer], everywhere: Sequence[Reason], *, many: bool) -> tuple[Reason, ...]:
    """What speaks against the leading model, each once; what concerns one pair of several says which."""
    named = [
        replace(r, about=f"{p.a} and {p.b}") if many and r.code in rules.OF_A_PAIR else r
        for p in own
        for r in p.reasons
    ]
    return tuple(dict.fromkeys((*everywhere, *named)))


# -- one pair ------------------------------------------------------------------------------------------------


def _answer(found: Evidence, c: Contrast, everywhere: Sequence[Reason], book: Rulebook) -> PairAnswer:
    """The answer for two models; the better one first where there is one."""
    if c.better is None:
        reasons: tuple[Reason, ...] = (*everywhere, *_untold(found, c, sound=not everywhere))
        return PairAnswer(a=c.a, b=c.b, better=None, level="none", estimand=c.estimand, reasons=reasons)
    c = c.of(c.better)
    reasons = (*everywhere, *(reason for rule in book.of_pairs for reason in rule(found, c)))
    assumed = _assumption(found, c, reasons)
    hard = [r for r in reasons if not _assumable(r)]
    level: Level = "none" if hard else "conditional" if reasons else "verdict"
    return PairAnswer(
        a=c.a, b=c.b, better=c.a, level=level, estimand=c.estimand, assumption=assumed, reasons=reasons
    )  # fmt: skip


def _assumable(reason: Reason) -> bool:
    """Whether an assumption can take the place of a reason: one under which the order holds for more than nothing."""
    base = {str(name): value for name, value in rules.BASE.items()}.get(reason.code)
    return base is not None and reason.value is not None and reason.value > base + rules.TELLING


def _assumption(found: Evidence, c: Contrast, reasons: Sequence[Reason]) -> Assumption | None:
    """What the order rests on. Each is enough by its own kind of error; Γ, which is about any, comes first."""
    c = _tilted(found, c)
    if found.basis.clicks:
        return rules.assumption("kappa", c.kappa, c.kappa_low)
    if any(reason.code == "gamma" for reason in reasons):
        return rules.assumption("gamma", c.gamma, c.gamma_low)
    return rules.assumption("rho", c.rho, c.rho_low) if _needs_rho(found) else None


def _tilted(found: Evidence, c: Contrast) -> Contrast:
    """The contrast whose weights are tilted by ratings: that of snips, also beside another estimator of its order."""
    snips = found.between(c.a, c.b, "snips")
    return c if snips is None or c.rho_low is not None or not found.ahead(snips.value) else snips


def _needs_rho(found: Evidence) -> bool:
    """Whether p does not see the rating, nor was balanced by enough ratings drawn at random."""
    few = found.basis.balanced and found.basis.sample is not None and found.basis.sample < rules.SAMPLE
    return (found.basis.blind or few) and not found.basis.clicks


def _untold(found: Evidence, c: Contrast, *, sound: bool) -> Iterator[Reason]:
    """Two models that cannot be told apart; `sound`: nothing else speaks against the log."""
    if c.value == c.stderr == 0:
        yield Reason(code="same", text="the two have the same value for every user")
        return
    yield Reason(
        code="untold", value=c.holm, limit=1 - found.result.level, remedy=_telling(found, c, sound=sound),
        text=f"they differ by {size(found, c)}",
    )  # fmt: skip


def _telling(found: Evidence, c: Contrast, *, sound: bool) -> str:
    """What may tell two models apart: fewer pairs where Holm's correction alone is in the way.

    Weights that ignore the rating may hide a difference, also in a longer log.
    """
    if c.pvalue < 1 - found.result.level:
        return rules.FEWER
    return rules.RATINGS if sound and _needs_rho(found) else rules.LONGER


# -- rules about the log -------------------------------------------------------------------------------------


def doubts(found: Evidence) -> Iterator[Reason]:
    """Reasons that were given beforehand."""
    yield from (doubt if isinstance(doubt, Reason) else Reason(code="doubt", text=doubt) for doubt in found.doubts)


def _overlap(found: Evidence) -> Iterator[Reason]:
    yield from rules.overlap(found.mass, rare=found.rare)


def _support(found: Evidence) -> Iterator[Reason]:
    seen = found.seen()
    yield from rules.support(seen.users, seen.n, seen.effective_size, seen.largest_share, rare=found.rare)


def _biased(found: Evidence) -> Iterator[Reason]:
    """The plain average, by name or in all but name; of positives it is unbiased for some metrics."""
    if found.basis.clicks:
        if found.estimand == SEEN and found.ranked:
            yield Reason(
                code="estimand", remedy=rules.LIKED,
                text=f"{found.metric} of positives describes what was seen, whatever share of popularity is exposure",
            )  # fmt: skip
    elif found.estimator in PLAIN or (
        found.equal(found.estimator, "naive") and not found.evenly_weighted and not found.constant
    ):
        yield Reason(
            code="biased", remedy=rules.ESTIMATOR,
            text=f"{found.estimator} does not correct for selection: an average over what was observed rewards models "
            "that copy the old system",
        )  # fmt: skip


def _liked(found: Evidence) -> Iterator[Reason]:
    """Errors of predictions where only what was liked has a rating."""
    if found.basis.positives and not found.ranked:
        yield Reason(
            code="positives", remedy=rules.LIKED,
            text=f"this log has positives only, so {found.metric} is known for liked items only",
        )  # fmt: skip


def _undebiased(found: Evidence) -> Iterator[Reason]:
    """A metric that no weights debias."""
    if found.estimand == SEEN and found.estimator not in (*PLAIN, *found.result.own_estimators):
        yield Reason(
            code="estimand", remedy=rules.METRIC,
            text=f"{found.metric} describes what was seen: its ideal depends on what was not seen, and no weights fix "
            "that",
        )  # fmt: skip


def _claimed(found: Evidence) -> Iterator[Reason]:
    """An estimator of your own: no rule knows how wrong propensities affect it."""
    if found.estimator in found.result.own_estimators:
        yield Reason(
            code="own-estimator", remedy=rules.OURS,
            text=f"{found.estimator} is your own estimator: what it estimates was not verified, and how far wrong "
            "propensities would move it is unknown",
        )  # fmt: skip


def _corrected(found: Evidence) -> Iterator[Reason]:
    seen = found.seen()
    yield from rules.corrected(seen.kept_weight, seen.coarse_share, seen.typical_relevant)


# -- rules about a pair, the better model first --------------------------------------------------------------


def influential(found: Evidence, c: Contrast) -> Iterator[Reason]:
    """A difference that rests on one user."""
    yield from rules.influential(c.holm_without, found.result.level)


def _leaked(found: Evidence, c: Contrast) -> Iterator[Reason]:
    if c.a in found.leaks:
        yield Reason(
            code="leak", remedy=rules.UNSEEING, text=f"the predictions of {c.a} are the log's own ratings, a leak"
        )


def _trained(found: Evidence, c: Contrast) -> Iterator[Reason]:
    if c.a in found.trained and c.a not in found.leaks:
        yield Reason(code="leak", remedy=rules.UNSEEING, text=f"{c.a} was trained on the rows that it is judged by")


def _filled(found: Evidence, c: Contrast) -> Iterator[Reason]:
    """A model that is behind where it predicts nothing. Where the model ahead predicts less, its lead is certain."""
    if not found.ranked:
        yield from rules.filled((c.a, c.b), found.filled.get(c.b, 0.0))


def _own_lists(found: Evidence, c: Contrast) -> Iterator[Reason]:
    """Clicks on what a model itself showed: no weights by item see what it showed to whom."""
    if found.basis.clicks and c.a == found.running:
        yield Reason(
            code="own-lists", remedy=rules.EXPOSURE,
            text=f"{c.a} is in production, so the clicks are on lists that it chose, which favours it whatever share "
            "of popularity is exposure",
        )  # fmt: skip


def _per_user(found: Evidence, c: Contrast) -> Iterator[Reason]:
    """Users or relevant items, where it matters which of them count once."""
    once = "it depends on whether users or relevant items count once"
    if found.basis.clicks and c.kappa == 0:  # κ tilts the mean over relevant items, which has the other order already
        text = f"{once}: {c.estimand} {c.a} is ahead, per relevant item {c.b} is"
        yield Reason(code="per-user", value=0.0, text=text)
    other = {"per relevant item": "snips_user", "per user": "snips"}.get(c.estimand)
    theirs = None if other is None else found.between(c.a, c.b, other)
    if theirs is not None and against(found, theirs):
        yield Reason(
            code="per-user", value=theirs.value, remedy=rules.PER_USER,
            text=f"{once}: {c.estimand} {c.a} is ahead, {theirs.estimand} {c.b} is, by {size(found, theirs)}",
        )  # fmt: skip


def _assumed(found: Evidence, c: Contrast) -> Iterator[Reason]:
    c = _tilted(found, c)
    if found.basis.clicks:
        yield from rules.clicks(c.kappa, c.kappa_low)
    elif _needs_rho(found):
        yield from rules.blind(c.rho, c.rho_low)
        if found.ranked and found.basis.blind:
            yield from rules.fitted(c.gamma, c.gamma_low)


def _shown_more(found: Evidence, c: Contrast) -> Iterator[Reason]:
    """Lists that the weighted log does not treat equally."""
    if c.a in found.listed and c.b in found.listed and c.estimand != SEEN:
        liked = [found.result[m, *found.family].value for m in (c.a, c.b)]
        seen = [found.listed[m] for m in (c.a, c.b)]
        shares = c.estimand != "per cell"
        if shares and found.gains is not None:  # where a mean lies between the gains of the worst and the best rank
            worst, best = found.gains
            if not abs(best - worst) > 0:  # no rank gains more than another, or the gains of ranks are unknown
                yield from rules.unlike_lists()
                return
            liked, seen = ([(value - worst) / (best - worst) for value in values] for values in (liked, seen))
        elif found.gains is not None and found.gains[0] != 0:
            yield from rules.unlike_lists()
            return
        yield from rules.lists((c.a, c.b), (liked[0], liked[1]), (seen[0], seen[1]), odds=shares,
                               balanced=found.basis.balanced)  # fmt: skip


def contradicted(found: Evidence, c: Contrast, witnesses: Sequence[str], remedy: str) -> Iterator[Reason]:
    """Other estimators of the same that have the pair the other way round, significantly."""
    for estimator in witnesses:
        theirs = found.between(c.a, c.b, estimator)
        if theirs is not None and against(found, theirs):
            yield Reason(
                code="estimators", remedy=remedy,
                text=f"the estimators disagree: {found.estimator} has {c.a} ahead of {c.b}, {estimator} has the "
                f"reverse, by {size(found, theirs)}",
            )  # fmt: skip


def _contradicted(found: Evidence, c: Contrast) -> Iterator[Reason]:
    """Other debiased estimators of the same, and an open loop, that have the pair the other way round."""
    yield from contradicted(found, c, found.witnesses, rules.RATINGS)
    for other in () if found.open_loop is None else found.open_loop.contrasts.get(found.metric, ()):
        if other.models == c.models and against(found, other.of(c.a)):
            yield Reason(
                code="open-loop", remedy=rules.RATINGS,
                text=f"the open loop has {c.b} ahead of {c.a}, by {size(found, other)}",
            )  # fmt: skip


def against(found: Evidence, c: Contrast) -> bool:
    """Whether the first model is behind, significantly."""
    return c.pvalue < 1 - found.result.level and not found.ahead(c.value)


def _against_most(found: Evidence, c: Contrast) -> Iterator[Reason]:
    """A stratum that is most of the population, and prefers the other model.

    A stratum with many rows because its cells are likely to be seen does not represent the others.
    """
    for table in found.strata:
        for line, share in _largest(table) if table.metric == found.metric else ():
            gap = line.difference(c.a, c.b)
            if testable(gap) < 1 - found.result.level and found.ahead(-gap.value):
                yield Reason(
                    code="stratum", value=line.share, limit=0.5, remedy=rules.RATINGS,
                    text=f"{line.name} of {table.by}, {share}, has {c.b} ahead of {c.a}{_paradox_words(found, c)}",
                )  # fmt: skip
                return


def _largest(table: StrataTable) -> Iterator[tuple[StrataLine, str]]:
    """The stratum with over half of the population; of the rows, where shares are not known."""
    rows = sum(line.rows for line in table.lines if line.kind == "stratum")
    for line in table.strata:
        share = line.rows / rows if line.share is None else line.share
        if share > 0.5:
            yield line, f"{percent(share)} of the {'rows' if line.share is None else 'population'}"


def _paradox_words(found: Evidence, c: Contrast) -> str:
    own = (p for p in found.paradoxes if p.pair.metric == found.metric)
    return ", a paradox" if any(frozenset((p.pair.a, p.pair.b)) == c.models for p in own) else ""


RATINGS = Rulebook(
    of_the_log=(
        doubts, _liked, _biased, _undebiased, _claimed, _corrected, _support, _overlap, *WEIGHT_RULES,
    ),
    of_pairs=(
        _leaked, _trained, _filled, influential, cut, _own_lists, _per_user, _contradicted, _against_most, _shown_more,
        _assumed,
    ),
)  # fmt: skip


# -- in words ------------------------------------------------------------------------------------------------


def _headline(
    found: Evidence, level: Level, leaders: Sequence[str], pairs: Sequence[PairAnswer], reasons: Sequence[Reason]
) -> str:
    if level == "none":
        return f"This log cannot tell {_not_told(found, leaders, pairs)}: {reasons[0].text}."
    rivals = [m for m in found.result.ranking(*found.family) if m not in leaders]
    met = [m for m in rivals if any(m in p.models for a in leaders for p in _of(pairs, a))]
    one = len(leaders) == 1
    if level == "verdict":
        return f"{joined(leaders)} {'beats' if one else 'beat'} {joined(met)} on {found.subject}."
    verb = f"{'is' if one else 'are'} ahead of"
    weakest = [p.assumption for a in leaders for p in _of(pairs, a) if p.level == "conditional" and p.assumption]
    stays = condition(min(weakest, key=rules.carried))
    return f"{joined(leaders)} {verb} {joined(met)} on {found.subject}, {stays}."


def _not_told(found: Evidence, leaders: Sequence[str], pairs: Sequence[PairAnswer]) -> str:
    """Which models the log cannot tell apart: "mf from bpr"."""
    first = leaders[0] if leaders else _first(found)
    untold = [p for p in _of(pairs, first) if p.level == "none"]
    rest = [m for m in found.result.ranking(*found.family) if m != first and any(m in p.models for p in untold)]
    return f"{first} from {joined(rest)} on {found.subject}"


def _sentences(
    found: Evidence, leaders: Sequence[str], pairs: Sequence[PairAnswer], unbeaten: Sequence[str]
) -> Iterator[str]:
    answers = {pair.models: pair for pair in pairs}
    for leader in leaders:
        yield from pair_sentences(found, leader, answers, alone=len(pairs) == 1)
    if not leaders:
        yield from beaten_by_all(found, answers, unbeaten)
