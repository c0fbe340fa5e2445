"""Table 1: Simpson's paradox in medicine, from counts, and in recommendation, as printed."""

from __future__ import annotations

from typing import Any

import numpy as np

from openloop.audits.paradox import Pair, Part, find, marginal
from openloop.studies.jadidinejad2021.published import PUBLISHED
from openloop.studies.kit.results import Claim, Result, Table, Value
from openloop.studies.kit.running import Run
from openloop.support.wording import joined

SAME_PAIR = "Table 1b shows Table 2's pair, BPR10 and WMF10, with shares rounded to 99 and 1 %."

Counts = tuple[tuple[int, int], tuple[int, int]]  # successes and patients of A, and of B


def table1(run: Run) -> Result:  # noqa: ARG001, every item takes one
    """The kidney stones from their counts, and the illustration from its printed means.

    No chance is involved: its claims are arithmetic on printed numbers, and count in no tally.
    """
    stones = kidney_stones()
    claims = (_stones_claim(stones), _illustration_claim())
    return Result(
        item="table1", title="Simpson's paradox in medicine and in recommendation",
        tables=(_stones_table(stones), _illustration_table()), claims=claims,
        notes=(_rounded_note(stones), SAME_PAIR),
    )  # fmt: skip


def kidney_stones() -> Pair:
    """Table 1a, which takes every difference for granted."""
    counts: dict[str, Counts] = PUBLISHED["table1"]["counts"]
    both = tuple(np.sum([counts[size][side] for size in counts], axis=0) for side in (0, 1))
    parts = [_stones(size, found) for size, found in (*counts.items(), ("both", both))]
    return Pair(a="A", b="B", aggregate=parts[-1], strata=tuple(parts[:-1]), metric="success", by="stone size")


def _stones(name: str, counts: Any) -> Part:
    (x, n), (y, m) = counts
    return Part(name=name, a=x / n, b=y / m, rows=n + m, significant=True)


def _stones_table(stones: Pair) -> Table:
    printed = PUBLISHED["table1"]
    rows = [
        (
            part.name,
            *(Value(value=100 * x, published=p, digits=0) for x, p in zip((part.a, part.b), percents, strict=True)),
            int(part.rows),
        )
        for part, percents in zip((*stones.strata, stones.aggregate), printed["percent"].values(), strict=True)
    ]  # fmt: skip
    expected = [Value(value=x, published=p) for x, p in zip(marginal(stones.strata), printed["expected"], strict=True)]
    return Table(
        name="table1a", caption="Kidney stones: success of treatments A and B in percent, and Eq. 5.",
        columns=("stones", "A", "B", "patients"),
        rows=(*rows, ("expected (Eq. 5), pooled shares", *expected, int(stones.rows))),
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


def _illustration_claim() -> Claim:
    found = find([_illustration()])
    a, b = marginal(_illustration().strata)
    return Claim(
        text="Eq. 4 resolves the illustration in favour of B, which Q1 prefers (section 5)",
        holds=[p.preferred for p in found] == ["B"] and b > a, found=f"E(A) = {a:.4f}, E(B) = {b:.4f}",
        counted=False,
    )  # fmt: skip
