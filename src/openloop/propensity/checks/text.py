"""A `Check` as text: aligned tables, under a hundred columns wide."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from openloop.propensity.checks.balance import Margin, Point

if TYPE_CHECKING:
    from openloop.propensity.checks.checking import Check

WIDTH = 80  # columns of a terminal
COVARIATES = 15  # shown, the furthest first
NAME = 26  # characters of a name or an id


def render(check: Check) -> str:
    """The whole check."""
    parts = (_calibration, _margins, _balance, _balancing, _weights, _overlap)
    title = f"{check.model} on {check.rows:,} rows of {check.users:,} users × {check.items:,} items"
    written = (list(part(check)) for part in parts)
    lines = [title, *(line for part in written if part for line in ("", *part))]
    tail = [*(f"note: {note}" for note in check.notes), *(f"mind: {flag}" for flag in check.flags)]
    return "\n".join([*lines, *([""] if tail else []), *(line for text in tail for line in _wrapped(text))])


def _calibration(check: Check) -> Iterator[str]:
    found = check.calibration
    if found is None:
        yield from _missing("calibration on held-out cells", check.not_computed["calibration"])
        return
    yield f"calibration on held-out cells ({found.folds} folds, {found.cells:,} cells): chance to be in the fold"
    rows = [(number(b.predicted), number(b.observed), number(b.stderr), f"{b.n:,}") for b in found.curve]
    yield from _table([("predicted", "observed", "± error", "cells"), *rows])
    yield (
        f"  expected calibration error {number(found.error)}, about {number(found.chance)} by chance; "
        f"mean {number(found.mean_predicted)} for {number(found.mean_observed)} observed"
    )
    yield f"  log-likelihood per cell {found.log_likelihood:.5f}, with a constant p {found.uniform:.5f}"


def _margins(check: Check) -> Iterator[str]:
    if not check.margins:
        yield from _missing("sums of p against counts", check.not_computed["margins"])
        return
    yield "sums of p against counts"
    header = ("", "Σp", "rows", "correlation", "off by", "by chance", "without rows")
    yield from _table([header, *(_margin(m) for m in check.margins)], left=(0,))
    for m in check.margins:
        yield f"  furthest {m.side} {_point(m.furthest)}; by ratio {_point(m.furthest_relative)}"


def _margin(m: Margin) -> tuple[str, ...]:
    correlation = "–" if m.correlation is None else f"{m.correlation:.3f}"
    sums = number(m.expected), number(m.count)
    return (f"{m.side}s", *sums, correlation, f"{m.off:.1%}", f"{m.chance:.1%}", f"{m.empty:,}")


def _point(point: Point) -> str:
    return f"{_short(point.id, 16)}: {number(point.expected)} for {number(point.count)}"


def _balance(check: Check) -> Iterator[str]:
    yield "balance: means, and rows minus grid in sd of the grid, without and with weights"
    moving = [d for d in check.balance if d.after is not None]
    furthest = sorted(moving, key=lambda d: -abs(d.after or 0.0))
    rows = [
        (_short(d.name, 40), *map(number, (d.grid, d.observed, d.weighted)), f"{d.before:+.3f}", f"{d.after:+.3f}")
        for d in furthest[:COVARIATES]
    ]
    if rows:
        yield from _table([("covariate", "of grid", "of rows", "weighted", "without", "with"), *rows], left=(0,))
    if len(moving) > COVARIATES:
        yield f"  and {len(moving) - COVARIATES} with smaller differences"
    own = [f"{d.name} {d.own:+.3f}" for d in moving if d.own >= 0.0005]
    if own:
        yield from _wrapped(f"of this, due to a row's own count, whatever p is: {', '.join(own)}", indent="  ")
    constant = [_short(d.name) for d in check.balance if d.after is None]
    if constant:
        yield from _wrapped(f"constant, so without a difference: {', '.join(constant)}", indent="  ")


def _balancing(check: Check) -> Iterator[str]:
    found = check.balancing
    if found is None:
        return
    yield "balancing: means of the rows, weighted by the inner model, balanced, and of the population"
    rows = [(_short(m.name, 40), *map(number, (m.rows, m.before, m.after, m.target))) for m in found.moved]
    yield from _table([("", "rows", "model", "balanced", "target"), *rows], left=(0,))
    yield f"  effective rows {number(found.effective_before)} before, {number(found.effective_after)} after"


def _weights(check: Check) -> Iterator[str]:
    w = check.weights
    mass = "mass not computed: no share" if w.mass is None else f"mass Σw/(U·I) {w.mass:.3f}"
    yield f"weights: {number(w.effective_size or 0.0)} effective of {w.n:,} rows; {mass}"
    quantiles = ", ".join(f"{q:.0%} {number(v)}" for q, v in w.quantiles.items())
    raised = "" if w.clipped_share is None else f"; a floor raises the p of {w.clipped_share:.1%}"
    yield f"  quantiles {quantiles}{raised}"
    rows = [(_short(h.user), _short(h.item), number(h.p), number(h.weight), f"{h.share:.2%}") for h in check.heaviest]
    yield from _table([("heaviest user", "item", "p", "weight", "share"), *rows], left=(0, 1))


def _overlap(check: Check) -> Iterator[str]:
    found = check.overlap
    if found.grid is None or found.coefficient is None or found.below is None:
        yield from _missing("overlap", check.not_computed["overlap"])
        return
    some = "" if found.cells == check.users * check.items else f" (from {found.cells:,} cells)"
    yield f"overlap: the p of rows and the p of the grid overlap by {found.coefficient:.1%}{some}"
    yield f"  {found.below:.2%} of the grid have a p below {number(found.smallest)}, the smallest of a row"


def _missing(what: str, reason: str) -> Iterator[str]:
    yield from _wrapped(f"{what}: not computed: {reason}")


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent + "  ")


def _short(value: Any, most: int = NAME) -> str:
    text, half = str(value), most // 2
    return text if len(text) <= most else f"{text[: half - 1]}…{text[-half:]}"


def number(x: float) -> str:
    """Three digits, or a whole number with commas; what rounding leaves of 0 is 0."""
    x = 0.0 if abs(x) < 1e-12 else x
    return f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.3g}"


def _table(rows: Sequence[tuple[str, ...]], left: tuple[int, ...] = ()) -> Iterator[str]:
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.ljust(width) if c in left else cell.rjust(width)
            for c, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield ("  " + "  ".join(cells)).rstrip()
