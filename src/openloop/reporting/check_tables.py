"""The tables of a propensity `Check`, behind its figures."""

from __future__ import annotations

from openloop.propensity.checks.checking import Check
from openloop.reporting.blocks import TableBlock
from openloop.reporting.page_tables import name, value
from openloop.reporting.words import number, signed
from openloop.support.wording import percent


def calibration(check: Check) -> TableBlock:
    """The bins of a calibration curve."""
    found = check.calibration
    rows = tuple(
        (value(b.predicted), value(b.observed), value(b.stderr), value(b.n, f"{b.n:,}"))
        for b in (() if found is None else found.curve)
    )
    columns = ("predicted", "observed", "± error", "cells")
    return TableBlock(caption="Chance to be in the held-out fold", columns=columns, rows=rows)


def balance(check: Check) -> TableBlock:
    """Standardised differences of covariates."""
    rows = tuple(
        (name(d.name), value(d.before, signed(d.before)), value(d.after, signed(d.after)))
        for d in check.balance
        if d.before is not None and d.after is not None
    )
    columns = ("covariate", "rows as they are", "rows weighted by 1/p")
    return TableBlock(caption="Rows − grid, in standard deviations of the grid", columns=columns, rows=rows)


def balancing(check: Check) -> TableBlock:
    """The means that were balanced."""
    moved = () if check.balancing is None else check.balancing.moved
    rows = tuple(
        (name(m.name), *(value(x, number(x, 3)) for x in (m.rows, m.before, m.after, m.target))) for m in moved
    )
    columns = ("mean of", "rows as they are", "weighted by the model", "balanced", "population")
    return TableBlock(caption="What was balanced", columns=columns, rows=rows)


def overlap(check: Check) -> TableBlock:
    """The histogram of p over rows and cells."""
    found = check.overlap
    grid = found.grid or (None,) * len(found.observed)
    rows = tuple(
        (
            value(low, f"{number(low, 3)} … {number(high, 3)}"),
            value(o, percent(o)),
            value(g, "–" if g is None else percent(g)),
        )
        for low, high, o, g in zip(found.edges, found.edges[1:], found.observed, grid, strict=False)
    )
    columns = ("propensity", "share of rows", "share of all cells")
    return TableBlock(caption="Propensities of rows and of all cells", columns=columns, rows=rows)


def margins(check: Check) -> TableBlock:
    """Σp against counts."""
    rows = tuple(
        (
            name(f"{m.side}s"), value(m.expected, number(m.expected)), value(m.count, number(m.count)),
            value(m.off, percent(m.off)), value(m.chance, percent(m.chance)), value(m.empty, f"{m.empty:,}"),
        )
        for m in check.margins
    )  # fmt: skip
    columns = ("over", "Σp", "rows", "off by", "by chance", "without rows")
    return TableBlock(caption="Sums of propensities against counts", columns=columns, rows=rows)
