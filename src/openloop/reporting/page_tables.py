"""The tables of a page: what a result holds, as rows of cells."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from openloop.audits.contrasts import Contrast, estimators_of
from openloop.audits.results import Curve, OpenLoop, StrataLine, StrataTable
from openloop.core.comparison import Comparison
from openloop.core.estimate import Estimate
from openloop.core.weights import WeightSummary
from openloop.reporting.audit_figures import OPEN_LOOP, facing, ranks
from openloop.reporting.blocks import Cell, TableBlock
from openloop.reporting.comparison_text import flags_of
from openloop.reporting.sensitivity_figures import TILTS
from openloop.reporting.weight_figures import carried_by, propensity_bins
from openloop.reporting.words import decimals_of, direction, fixed, number, outcome, rounded, span
from openloop.support.wording import TURNS, critical, estimands, joined, level_of, percent, pvalue

CONTRASTS = 400  # in a table, at most
GAMMAS = 9  # lines of a table of bounds
SAME = 1e-9  # relative: means that are equal but for rounding
HEAVIEST = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5)


def name(text: str) -> Cell:
    """A name from the data."""
    return Cell(text=text, name=True)


def value(x: float | None, text: str | None = None, detail: str = "") -> Cell:
    """A number that is sorted by its value."""
    known = x is not None and not math.isnan(x)
    return Cell(text=number(x) if text is None else text, detail=detail, value=x if known else math.inf)


def leaderboard(
    result: Comparison, metric: str, estimator: str, found: Sequence[Contrast], best: Mapping[str, float]
) -> TableBlock:
    """Models by estimators; best first by one of them, with the tests of that one beside."""
    names = estimators_of(result, metric)
    wins = {m: sum(c.better == m for c in found) for m in result.models}
    rivals = {m: sum(m in c.models for c in found) for m in result.models}
    rows = tuple(
        (
            name(model),
            *(estimated(result[model, metric, e], result.level) for e in names),
            *([value(wins[model], f"{wins[model]} of {rivals[model]}")] if len(wins) > 1 else []),
            *([value(best[model], percent(best[model]))] if best else []),
        )
        for model in result.ranking(metric, estimator)
    )
    lower = direction(result, metric) == "lower"
    tests = ["how many other models each one is significantly ahead of"] * (len(wins) > 1) + [
        "its probability of being best"
    ] * bool(best)
    return TableBlock(
        caption=f"{metric}, {'lower' if lower else 'higher'} is better; in small print, {level_of(result.level)} "
        f"intervals over users{f'; by {estimator}, {joined(tests)}' if tests else ''}. What is estimated: "
        f"{estimands({e: result[result.models[0], metric, e].estimand for e in names})}",
        columns=(
            "model",
            *names,
            *(["ahead of"] if len(wins) > 1 else []),
            *(["probability of being best"] if best else []),
        ),
        rows=rows,
        order=(names.index(estimator) + 1, "ascending" if lower else "descending"),
        notes=tuple(f"† {flag}" for flag in flags_of(result, metric)),
    )


def estimated(e: Estimate, level: float) -> Cell:
    """An estimate over its interval, with a mark where it has flags."""
    text, interval = rounded(e.value, *e.limits(level))
    return value(e.value, text + (" †" if e.diagnostics.flags else ""), interval)


def differences(result: Comparison, metric: str, estimator: str, found: Sequence[Contrast]) -> TableBlock:
    """All pairs under one metric and estimator."""
    shown, left = facing(result, metric, estimator, found)
    turning = [k for k in TURNS if any(getattr(c, k) is not None for c in found)] or ["gamma"]
    rows = tuple(
        (
            name(c.a), name(c.b), value(c.value, *rounded(c.value, c.low, c.high, sign=True)),
            value(c.pvalue, pvalue(c.pvalue)), value(c.holm, pvalue(c.holm)),
            value(c.effect, fixed(c.effect, 2)),
            *(value(getattr(c, k), critical(k, getattr(c, k))) for k in turning), Cell(text=outcome(c)),
        )
        for c in shown[:CONTRASTS]
    )  # fmt: skip
    return TableBlock(
        caption=f"Paired differences in {metric} under {estimator}, {_estimand(found)}first − second, with unadjusted "
        f"{level_of(result.level)} intervals over users",
        columns=(
            "first",
            "second",
            "difference",
            "p",
            "Holm p",
            "effect size",
            *(TURNS[k] for k in turning),
            "outcome",
        ),
        rows=rows,
        notes=(f"{left} pairs without the best ranked model are left out.",) if left else (),
    )


def _estimand(found: Sequence[Contrast]) -> str:
    return f"{found[0].estimand}, " if found and found[0].estimand else ""


def places(result: Comparison, metric: str, open_loop: Comparison | None) -> TableBlock:
    """Each model's place under each estimator; equal values share one."""
    found = ranks(result, metric, open_loop)
    rows = tuple(
        (name(m), *(_place(result, open_loop, metric, e, m) for e in found)) for m in next(iter(found.values()))
    )
    return TableBlock(caption=f"Places by {metric}, 1 is best", columns=("model", *found), rows=rows)


def _place(result: Comparison, open_loop: Comparison | None, metric: str, estimator: str, model: str) -> Cell:
    source = open_loop if estimator == OPEN_LOOP and open_loop is not None else result
    method = "naive" if estimator == OPEN_LOOP else estimator
    own = source[model, metric, method].value
    others = [source[m, metric, method].value for m in source.models]
    before = sum(x < own if direction(result, metric) == "lower" else x > own for x in others)
    return value(before + 1, f"{before + 1}{'=' if others.count(own) > 1 else ''}")


def strata(table: StrataTable, level: float) -> TableBlock:
    """A table like Tables 2 to 5 of Jadidinejad et al. (2021): * for a model that beats all others in its line."""
    models = list(dict.fromkeys(m for line in table.lines for m in line.estimates))
    total = max((line.rows for line in table.lines if line.kind != "open loop"), default=0)
    rows = tuple(
        (
            name(line.name),
            *_starred(line, models, level),
            value(line.rows, f"{line.rows:,}", percent(line.rows / total) if line.kind == "stratum" and total else ""),
            value(line.items, "–" if line.items is None else f"{line.items:,}"),
            value(line.share, "–" if line.share is None else percent(line.share)),
            _limits(line),
        )
        for line in _with_plain(table)
    )
    return TableBlock(
        caption=f"{table.metric} by {table.by}; * marks a model that beats every other one in its line "
        f"(paired over users, Holm, {level_of(level)}); share is the part of the population that the "
        "metric averages over. Means inside a stratum are weighted, and a verdict may use them; those marked plain are "
        "unweighted, as in the paper on Simpson's paradox",
        columns=("evaluation", *models, "rows", "items", "share", "propensity"),
        rows=rows,
    )


def _with_plain(table: StrataTable) -> Iterator[StrataLine]:
    """The lines, and behind each stratum its plain means where they are others."""
    for line in table.lines:
        yield line
        if not all(math.isclose(e.value, line.estimates[m].value, rel_tol=SAME) for m, e in line.plain.items()):
            yield replace(line, name=f"{line.name}, plain", estimates=line.plain, best=None)


def _limits(line: StrataLine) -> Cell:
    if line.limits is None:
        return value(None)
    low, high = (number(p, 3) for p in line.limits)
    return value(line.limits[0], low if low == high else f"{low} … {high}")


def _starred(line: StrataLine, models: Sequence[str], level: float) -> Iterator[Cell]:
    for model in models:
        e = line.estimates.get(model)
        if e is None:
            yield value(None)
        else:
            text, interval = rounded(e.value, *e.limits(level))
            yield value(e.value, text + ("*" if model == line.best else ""), interval)


def tilted(curves: Sequence[Curve]) -> TableBlock:
    """Each curve at some of its points: bounds against Γ, values with their intervals against ρ and κ."""
    first = curves[0]
    rows = tuple(
        (
            name(c.a if c.b is None else f"{c.a} − {c.b}"),
            value(c.at[k], critical(c.against, c.at[k])),
            *(value(x, number(x) if decimals is None else fixed(x, decimals + 1)) for x in _at(c, k)),
        )
        for c in curves
        for decimals in [decimals_of(min(c.low), max(c.high))]
        for k in sorted({round(n * (len(c.at) - 1) / (GAMMAS - 1)) for n in range(GAMMAS)})
    )
    of = f"{first.estimator} of {first.metric}"
    if first.against == "gamma":
        caption = f"Bounds of {of} when propensities are off by up to Γ either way"
        return TableBlock(caption=caption, columns=("of", "Γ", "lowest", "highest"), rows=rows)
    letter = TILTS[first.against].letter
    caption = f"Differences in {first.metric} against {letter}, with their intervals"
    return TableBlock(caption=caption, columns=("of", letter, "difference", "low", "high"), rows=rows)


def _at(c: Curve, k: int) -> tuple[float, ...]:
    """The value, if the curve has one, and the limits at one of its points."""
    return (*([c.value[k]] if c.value else []), c.low[k], c.high[k])


def histogram(summary: WeightSummary) -> TableBlock:
    """The propensities in bars."""
    rows = tuple(
        (
            value(b["from"], f"{number(b['from'], 3)} … {number(b['to'], 3)}"),
            value(b["share of rows"], percent(b["share of rows"])),
            value(b["share of weight"], percent(b["share of weight"])),
        )
        for b in reversed(propensity_bins(summary))
        if b["share of rows"] > 0
    )
    columns = ("propensity", "share of rows", "share of weight")
    return TableBlock(caption="Chances of the scored rows", columns=columns, rows=rows)


def heaviest(summary: WeightSummary) -> TableBlock:
    """What the heaviest rows carry."""
    rows = tuple(
        (value(x, percent(x)), value(y := carried_by(summary, x), percent(y))) for x in HEAVIEST if x * summary.n >= 1
    )
    return TableBlock(caption="Weight carried by the heaviest rows", columns=("rows", "share of weight"), rows=rows)


def scores(found: OpenLoop, metric: str) -> TableBlock:
    """Every estimator of a metric against the open loop."""
    rows = tuple(
        (
            name(s.estimator), value(s.error, number(s.error, 3)),
            value(None) if s.tau is None else value(s.tau.value, fixed(s.tau.value, 2), span(s.tau.low, s.tau.high, 2)),
            value(s.right / max(1, s.pairs), f"{s.right} of {s.pairs}"),
            value(s.separated_right / max(1, s.separated), f"{s.separated_right} of {s.separated}"),
        )
        for s in found.scores
        if s.metric == metric
    )  # fmt: skip
    columns = ("estimator", "mean error", "Kendall's τ", "pairs right", "of significant pairs")
    return TableBlock(
        caption=f"Each estimator of {metric} against the open loop, over the models", columns=columns, rows=rows
    )


def beside(result: Comparison, open_loop: Comparison, metric: str) -> TableBlock:
    """The open loop's values beside those of each estimator."""
    names = estimators_of(result, metric)
    rows = tuple(
        (
            name(model),
            estimated(open_loop[model, metric, "naive"], open_loop.level),
            *(estimated(result[model, metric, e], result.level) for e in names),
        )
        for model in open_loop.ranking(metric, "naive")
    )
    caption = f"{metric} in the open loop and as estimated, {direction(result, metric)} is better"
    return TableBlock(caption=caption, columns=("model", OPEN_LOOP, *names), rows=rows)


def ratings(counts: Sequence[tuple[float, int]]) -> TableBlock:
    """How often each rating was given."""
    total = sum(n for _, n in counts)
    rows = tuple((value(r, f"{r:g}"), value(n, f"{n:,}"), value(n / total, percent(n / total))) for r, n in counts)
    return TableBlock(caption="Ratings of the log", columns=("rating", "rows", "share"), rows=rows)


def mean_ranks(found: Mapping[str, float]) -> TableBlock:
    """Mean ranks within users."""
    rows = tuple((name(m), value(rank, number(rank, 3))) for m, rank in sorted(found.items(), key=lambda x: x[1]))
    return TableBlock(caption="Mean ranks within users, 1 is best", columns=("model", "mean rank"), rows=rows)
