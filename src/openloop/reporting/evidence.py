"""The sections about what estimates rest on: weights, open loop, data and computation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from openloop.audits.positions import Positions
from openloop.audits.results import OpenLoop, Setting
from openloop.core.weights import WeightSummary
from openloop.propensity.checks.checking import Check
from openloop.reporting import check_tables
from openloop.reporting import page_tables as tables
from openloop.reporting.audit_figures import critical_difference_chart
from openloop.reporting.blocks import Bullets, Code, Fold, Heading, Section, Terms, Text, figures
from openloop.reporting.comparison_text import flags_of
from openloop.reporting.figures import balancing_plot, calibration_curve, love_plot, margins_plot, overlap_plot
from openloop.reporting.sections import Subject
from openloop.reporting.weight_figures import (
    carried_by,
    concentration_chart,
    ratings_chart,
    weights_chart,
)
from openloop.reporting.words import about_estimator, about_metric, moment, number
from openloop.support.wording import chance, counted, joined, level_of, percent

MANY_MODELS = 6  # from here on Friedman's summary has a section

READING = (
    "An estimate is about all users and items, as if all had been observed; its interval is over users like these.",
    "Models may differ although their intervals overlap; look at the paired differences.",
    "All estimators but naive rely on the propensities. Γ* says how wrong these must be to reverse the order.",
    "The effective sample says how many equally weighted rows the log is worth. When it is small, a few rows decide.",
    "A model that wins only under naive may merely resemble the system that made the log.",
)


SHOWN = (
    "An estimate is about requests like these, if the model had made the lists; its interval is over users like these.",
    READING[1],
    "Each estimator assumes something about what a click depends on; the checks show whether the log contradicts it.",
    "Estimators with the same assumption err together, so their agreement proves little.",
)


def weights(of: Subject) -> Iterator[Section]:
    """Propensities and weights, and the check of the model that they come from."""
    audit = of.audit
    if audit is None:
        return
    blocks: list[Any] = []
    if audit.weights is None or audit.weights.n == 0:
        blocks.append(Text(text="There are no weights: the estimates here are plain averages."))
    else:
        blocks += _weights(audit.weights)
    blocks.append(Heading(text="Check of the propensities"))
    if audit.check is None:
        reason = "It needs a propensity model that this audit fits and refits; ol.propensity.check does the same."
        blocks.append(Text(text=f"No check on held-out cells was made. {reason}"))
    else:
        blocks += _check(audit.check)
    yield Section(id="weights", title="Propensities and weights", blocks=tuple(blocks))


def _weights(summary: WeightSummary) -> Iterator[Any]:
    heavy = percent(carried_by(summary, 0.01))
    yield Text(
        text=f"A row observed with probability p has the weight 1/p. The {counted(summary.n, 'row')} are worth "
        f"{summary.effective_size:,.0f} equally weighted ones; the largest weight is {number(summary.largest, 3)}, "
        f"{percent(summary.largest_share)} of their sum."
    )
    alt = (
        f"Histogram of the propensities of the rows, from {number(summary.smallest_propensity, 3)} on. Half of the "
        f"rows have a weight 1/p below {number(summary.quantile(0.5), 3)}, one in a hundred above "
        f"{number(summary.quantile(0.99), 3)}."
    )
    yield from figures(weights_chart(summary), [alt], [tables.histogram(summary)])
    alt = (
        f"Share of all weight that the heaviest rows carry: the heaviest 1 % carry {heavy}, the heaviest 10 % "
        f"{percent(carried_by(summary, 0.1))}."
    )
    yield from figures(concentration_chart(summary), [alt], [tables.heaviest(summary)])


def _check(check: Check) -> Iterator[Any]:
    trust = f"{counted(len(check.flags), 'flag')}." if check.flags else "No flags."
    yield Text(text=f"{check.model} on {counted(check.rows, 'row')}. {trust}")
    if check.flags:
        yield Bullets(title="To mind", items=check.flags)
    for part, why in check.not_computed.items():
        yield Text(text=f"{part.capitalize()}, not computed: {why.rstrip('.')}.")
    if (found := check.calibration) is not None:
        alt = (
            f"Observed against predicted shares in {len(found.curve)} bins of held-out cells: expected calibration "
            f"error {number(found.error, 2)}, of which about {number(found.chance, 2)} is chance."
        )
        yield from figures(calibration_curve(check), [alt], [check_tables.calibration(check)])
    if check.balancing is not None:
        worth = tuple(map(number, (check.balancing.effective_before, check.balancing.effective_after)))
        alts = [
            f"The {len(check.balancing.moved)} balanced means, before and after.",
            f"Weights before balancing (worth {worth[0]} equally weighted rows) and after (worth {worth[1]}).",
        ]
        yield from figures(balancing_plot(check.balancing), alts, [check_tables.balancing(check)])
    balance = check_tables.balance(check)
    if balance.rows:
        off = [d.name for d in check.balance if abs(d.after or 0.0) > 0.1]
        words = f"outside ±0.1 with weights: {joined(off[:8])}" if off else "with weights all lie within ±0.1"
        alt = f"Standardised differences of {len(balance.rows)} covariates between rows and grid; {words}."
        yield from figures(love_plot(check), [alt], [balance])
    common = check.overlap.coefficient
    words = "" if common is None else f"; the two overlap by {percent(common)}"
    least = number(check.overlap.smallest, 2)
    alt = f"Propensities of the rows and of all cells; the smallest of a row is {least}{words}."
    yield from figures(overlap_plot(check), [alt], [check_tables.overlap(check)])
    if check.margins:
        alts = [
            f"Σp against the number of rows of each {m.side}: off by {percent(m.off)}, of which about "
            f"{percent(m.chance)} is chance."
            for m in check.margins
        ]
        yield from figures(margins_plot(check), alts, [check_tables.margins(check)])


def open_loop(of: Subject) -> Iterator[Section]:
    """Each estimator against a uniformly collected sample."""
    if of.audit is None or of.audit.open_loop is None:
        return
    found = of.audit.open_loop
    own = [s for s in found.scores if s.metric == of.metric]
    nearest = min(own, key=lambda s: s.error, default=None)
    words = "" if nearest is None else f" By {of.metric} the nearest estimator is {nearest.estimator}, on average "
    words += "" if nearest is None else f"{number(nearest.error, 3)} away."
    intro = Text(
        text=f"A uniform sample of {counted(found.rows, 'row')} shows the models without selection. Each estimator is "
        f"compared with it; its values are in the charts above as “open loop”.{words}"
    )
    note = Text(
        text="Pairs right: pairs of models that the estimator orders as the open loop does, of all pairs and of those "
        "that differ significantly in the open loop."
    )
    folds = [Fold(summary=m, blocks=_against(of, found, m)) for m in of.metrics[1:] if m in found.result.metrics]
    first = _against(of, found, of.metric) if of.metric in found.result.metrics else ()
    yield Section(id="open-loop", title="Against the open loop", blocks=(intro, *first, note, *folds))


def _against(of: Subject, found: OpenLoop, metric: str) -> tuple[Any, ...]:
    return tables.scores(found, metric), tables.beside(of.result, found.result, metric)


def friedman(of: Subject) -> Iterator[Section]:
    """Mean ranks of many models."""
    found = None if of.audit is None else of.audit.friedman
    if found is None or len(found.ranks) < MANY_MODELS:
        return
    words = (
        f"Friedman's test over {counted(found.users, 'user')}: χ² = {number(found.statistic)}, "
        f"p {chance(found.pvalue)}. "
        f"Mean ranks must lie {number(found.critical_difference, 3)} apart to differ ({level_of(found.level)})."
    )
    spoken = "; ".join(f"{m} {number(rank, 3)}" for m, rank in sorted(found.ranks.items(), key=lambda x: x[1])[:10])
    drawn = figures(critical_difference_chart(found), [f"Mean ranks: {spoken}."], [tables.mean_ranks(found.ranks)])
    yield Section(id="ranks", title="Ranks within users", blocks=(Text(text=words), *drawn))


def data(of: Subject) -> Iterator[Section]:
    """What was audited."""
    if of.audit is None:
        return
    s = of.audit.setting
    if of.shown is not None:
        yield _impressions(s, of.shown)
        return
    density = s.rows / (s.users * s.items) if s.users and s.items else 0.0
    excluded = "nothing" if s.excluded is None else counted(s.excluded, "row")
    items = [
        ("log", s.log, ""),
        ("rows", f"{s.rows:,}", f"({percent(density)} of all {s.users * s.items:,} cells)"),
        ("users", f"{s.users:,}", f"({s.scored_users:,} with scored rows)"),
        ("items", f"{s.items:,}", ""),
        ("propensities", s.propensity or "none", ""),
        ("relevant from rating", f"{s.threshold:g}", ""),
        ("left out of rankings", excluded, ""),
    ]
    blocks: list[Any] = [Terms(items=tuple(items))]
    if s.ratings:
        counts = "; ".join(f"{rating:g}: {n:,}" for rating, n in s.ratings[:20])
        chart = ratings_chart(s.ratings, s.threshold)
        blocks += figures(chart, [f"Number of rows by rating: {counts}."], [tables.ratings(s.ratings)])
    yield Section(id="data", title="Data", blocks=tuple(blocks))


def _impressions(s: Setting, shown: Positions) -> Section:
    items = (
        ("log", s.log, ""),
        ("rows", f"{s.rows:,}", "" if shown.in_engine else f"(of {counted(shown.requests, 'request')})"),
        (shown.clusters, f"{s.users:,}", "(what intervals are over)"),
        *(() if shown.in_engine else (("items", f"{s.items:,}", ""),)),
        *(() if shown.in_engine else (("rewards", f"{number(s.span[0])} to {number(s.span[1])}", ""),)),
        ("examination", s.propensity, ""),
    )
    return Section(id="data", title="Data", blocks=(Terms(items=items),))


def left_out(of: Subject) -> Section:
    """What is missing, what was assumed, and flags of estimates."""
    result = of.result
    skipped = tuple(f"{m}, {e}: {reason}" for (m, e), reason in result.skipped.items())
    absent, own = ({}, ()) if of.audit is None else (of.audit.not_computed, of.audit.notes)
    uncomputed = tuple(f"{part}: {why}" for part, why in absent.items())
    notes = tuple(dict.fromkeys((*result.notes, *own)))
    found = [
        ("Left out", skipped), ("Not computed", uncomputed), ("Notes", notes), ("To mind", tuple(flags_of(result))),
    ]  # fmt: skip
    blocks = tuple(Bullets(title=title, items=items) for title, items in found if items)
    nothing = Text(text="Nothing was left out, and there is nothing to note.")
    return Section(id="notes", title="Left out, and notes", blocks=blocks or (nothing,))


def computed(of: Subject) -> Section:
    """How to repeat it, and what the words mean."""
    blocks: list[Any] = [] if of.audit is None else list(_computed(of.audit.setting))
    result = of.result
    about = [(m, result.own_metrics.get(m) or about_metric(m), "") for m in of.metrics]
    about += [(e, result.own_estimators.get(e) or about_estimator(e), "") for e in result.estimators]
    blocks += [Heading(text="Definitions"), Terms(items=tuple(item for item in about if item[1]))]
    reading = READING if of.shown is None else SHOWN
    blocks += [Heading(text="How to read this report"), Bullets(items=reading)]
    return Section(id="method", title="How it was computed", blocks=tuple(blocks))


def _computed(s: Setting) -> Iterator[Any]:
    if s.command:
        yield Text(text="The command that made this report:")
        yield Code(text=s.command)
    items = [("date", moment(s.created), ""), ("computing time", f"{s.seconds:.1f} s" if s.seconds else "", "")]
    items.append(("versions", ", ".join(f"{package} {v}" for package, v in s.versions.items()), ""))
    yield Terms(items=tuple(item for item in items if item[1]))
