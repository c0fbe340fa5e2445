"""Table 1: Simpson's paradox in medicine, from counts, and in recommendation, as printed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from openloop.audits.paradox import Pair, Part, find, marginal
from openloop.studies.jadidinejad2021.method_rows import HOLDOUT, STRATA
from openloop.studies.jadidinejad2021.published import PUBLISHED
from openloop.studies.kit.results import Claim, Result, Table, Value
from openloop.studies.kit.running import Run
from openloop.support.wording import chance, joined, pvalue

SAME_PAIR = "Table 1b shows Table 2's pair, BPR10 and WMF10, with shares rounded to 99 and 1 %."

Counts = tuple[tuple[int, int], tuple[int, int]]  # successes and patients of A, and of B


def table1(run: Run) -> Result:  # noqa: ARG001, every item takes one
    """The kidney stones from their counts, and the illustration from its printed means.

    No chance is involved: its claims are arithmetic on printed numbers, and count in no tally.
    """
    stones, starred = kidney_stones(tested=True), kidney_stones(tested=False)
    claims = (_stones_claim(starred), _illustration_claim(), _tables_claim(), _marginals_claim())
    return Result(
        item="table1", title="Simpson's paradox in medicine and in recommendation",
        tables=(_stones_table(stones), _illustration_table()), claims=claims,
        notes=(_rounded_note(stones), _tests_note(stones), SAME_PAIR),
    )  # fmt: skip


def kidney_stones(*, tested: bool) -> Pair:
    """Table 1a; with the tests of its counts, or taking every difference for granted."""
    counts: dict[str, Counts] = PUBLISHED["table1"]["counts"]
    both = tuple(np.sum([counts[size][side] for size in counts], axis=0) for side in (0, 1))
    parts = [_stones(size, found, tested=tested) for size, found in (*counts.items(), ("both", both))]
    return Pair(a="A", b="B", aggregate=parts[-1], strata=tuple(parts[:-1]), metric="success", by="stone size")


def _stones(name: str, counts: Any, *, tested: bool) -> Part:
    (x, n), (y, m) = counts
    given: dict[str, Any] = {"pvalue": two_rates(x, n, y, m)} if tested else {"significant": True}
    return Part(name=name, a=x / n, b=y / m, rows=n + m, **given)


def two_rates(x: int, n: int, y: int, m: int) -> float:
    """The two-sided p of x/n = y/m, by the normal test with the pooled rate."""
    pooled = (x + y) / (n + m)
    z = (x / n - y / m) / math.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
    return math.erfc(abs(z) / math.sqrt(2))


def mantel_haenszel(tables: Sequence[Counts]) -> tuple[float, float]:
    """The common odds ratio of A over strata, and the two-sided p of its being 1 (Mantel & Haenszel 1959)."""
    top = bottom = gap = variance = 0.0
    for (x, n), (y, m) in tables:
        total, successes = n + m, x + y
        top, bottom = top + x * (m - y) / total, bottom + y * (n - x) / total
        gap += x - n * successes / total
        variance += n * m * successes * (total - successes) / (total**2 * (total - 1))
    return top / bottom, math.erfc(abs(gap) / math.sqrt(2 * variance))


def _stones_table(stones: Pair) -> Table:
    printed = PUBLISHED["table1"]
    rows = [
        (
            part.name,
            *(Value(value=100 * x, published=p, digits=0) for x, p in zip((part.a, part.b), percents, strict=True)),
            int(part.rows), pvalue(part.pvalue or 0.0),
        )
        for part, percents in zip((*stones.strata, stones.aggregate), printed["percent"].values(), strict=True)
    ]  # fmt: skip
    expected = [Value(value=x, published=p) for x, p in zip(marginal(stones.strata), printed["expected"], strict=True)]
    test = pvalue(mantel_haenszel(list(printed["counts"].values()))[1])
    return Table(
        name="table1a", caption="Kidney stones: success of treatments A and B in percent, and Eq. 5.",
        columns=("stones", "A", "B", "patients", "p of the difference"),
        rows=(*rows, ("expected (Eq. 5), pooled shares", *expected, int(stones.rows), f"{test} (Mantel-Haenszel)")),
    )  # fmt: skip


def _illustration() -> Pair:
    printed = PUBLISHED["table1"]
    shares = printed["shares"] | {"both": 1.0}
    parts = [
        Part(name=name, a=a, b=b, rows=shares[name], significant=star)
        for name, (a, b, star) in printed["models"].items()
    ]
    return Pair(a="A", b="B", aggregate=parts[-1], strata=tuple(parts[:-1]), metric="ndcg")


def _illustration_table() -> Table:
    pair, printed = _illustration(), PUBLISHED["table1"]["marginal"]
    given = [
        (part.name, Value(value=part.a), Value(value=part.b), 100 * part.rows)
        for part in (*pair.strata, pair.aggregate)
    ]
    expected = [Value(value=x, published=p) for x, p in zip(marginal(pair.strata), printed, strict=True)]
    return Table(
        name="table1b", caption="The illustration: nDCG of models A and B as printed, and what Eq. 4 makes of it.",
        columns=("stratum", "A", "B", "share of the feedback, %"),
        rows=(*given, ("expected (Eq. 4)", *expected, 100.0)),
    )  # fmt: skip


def _stones_claim(stones: Pair) -> Claim:
    found = find([stones])
    return Claim(
        text="the success rates reverse when the stone size is taken into account (section 4)",
        holds=[p.kind for p in found] == ["reversal"], found="; ".join(map(str, found)) or "no paradox", counted=False,
    )  # fmt: skip


def _rounded_note(stones: Pair) -> str:
    """Where the published expectations come from."""
    printed = PUBLISHED["table1"]
    shares = {part.name: round(part.rows / stones.rows, 2) for part in stones.strata}
    rounded = [
        " + ".join(f"{printed['percent'][name][side] / 100:.2f}·{share:.2f}" for name, share in shares.items())
        for side in (0, 1)
    ]
    exact = marginal(stones.strata)
    return (
        f"The published {printed['expected'][0]} and {printed['expected'][1]} come from the rounded percentages of "
        f"Table 1a ({rounded[0]} and {rounded[1]}). From the counts, with the pooled shares "
        f"{joined([f'{part.rows:.0f}/{stones.rows:.0f}' for part in stones.strata])}, Eq. 5 gives {exact[0]:.4f} and "
        f"{exact[1]:.4f}."
    )


def _tests_note(stones: Pair) -> str:
    odds, p = mantel_haenszel(list(PUBLISHED["table1"]["counts"].values()))
    tests = ", ".join(f"{part.name} p {chance(part.pvalue or 0.0)}" for part in (*stones.strata, stones.aggregate))
    detected = "finds the reversal" if find([stones]) else "reports nothing"
    return (
        f"By its counts no line of Table 1a need be more than chance ({tests}; stratified by size, A's odds are "
        f"{odds:.2f} times B's, p {chance(p)}): given these p-values the detector {detected}; the claim takes the "
        "rates as they are."
    )


def _illustration_claim() -> Claim:
    found = find([_illustration()])
    a, b = marginal(_illustration().strata)
    return Claim(
        text="Eq. 4 resolves the illustration in favour of B, which Q1 prefers (section 5)",
        holds=[p.preferred for p in found] == ["B"] and b > a, found=f"E(A) = {a:.4f}, E(B) = {b:.4f}",
        counted=False,
    )  # fmt: skip


def published_pair(item: str) -> Pair:
    """Tables 2 to 5 as printed, with their stars."""
    (a, b), lines = PUBLISHED[item]["pair"], PUBLISHED[item]["lines"]
    parts = {
        name: Part(name=name, a=x, b=y, rows=rows, significant=bool(star))
        for name, (x, y, star, rows, _) in lines.items()
    }
    return Pair(a=a, b=b, aggregate=parts[HOLDOUT], strata=tuple(parts[s] for s in STRATA), metric="ndcg", by=item)


def _tables_claim() -> Claim:
    kinds = {item: [p.kind for p in find([published_pair(item)])] for item in ("table2", "table3", "table4", "table5")}
    return Claim(
        text="by their printed numbers and stars Tables 2 to 5 are instances of the paradox (section 7.1)",
        holds=all(kinds.values()),
        found=", ".join(f"{item}: {''.join(kind) or 'none'}" for item, kind in kinds.items()), counted=False,
    )  # fmt: skip


def _marginals_claim() -> Claim:
    """Both sides are rounded to three digits, so they may differ by 0.001, itself to four digits."""
    gaps = [
        abs(x - printed)
        for item in ("table2", "table3", "table4", "table5")
        for x, printed in zip(
            marginal(published_pair(item).strata), PUBLISHED[item]["lines"]["Stratified"][:2], strict=True
        )
    ]
    return Claim(
        text="the line Stratified of Tables 2 to 5 follows from Q1 and Q2 by Eq. 4, up to rounding",
        holds=round(max(gaps), 4) <= 0.001, found=f"largest gap {max(gaps):.4f}", counted=False,
    )  # fmt: skip
