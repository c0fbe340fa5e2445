"""Paired differences of the methods in Table 1 of Lim et al. 2015, over users and over folds, with a figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from openloop.audits.contrasts import holm
from openloop.studies.kit.charts import intervals
from openloop.studies.kit.results import Cell, Figure, Table, Value
from openloop.studies.kit.statistics import Mean
from openloop.studies.lim2015.protocol import LEVEL, Competitor, Fits, over_folds, over_users
from openloop.studies.lim2015.published import ADG, AUC, MEASURES, SHOWN, TABLE1

NORMAL = 1.96  # standard errors of a 95 % interval


class PairedDifference(NamedTuple):
    """A paired difference a − b of two methods on a data set: over users and over folds, each with Holm's p-value."""

    data: str
    a: Competitor
    b: Competitor
    measure: str
    users: Mean
    folds: Mean
    base: float  # the measure of b
    holm: float = 1.0
    holm_folds: float = 1.0

    @property
    def better(self) -> bool:
        """Whether a is significantly better."""
        return self.holm < LEVEL and self.users.value > 0

    @property
    def worse(self) -> bool:
        """Whether a is significantly worse."""
        return self.holm < LEVEL and self.users.value < 0

    def value(self) -> Value:
        """As a cell of a table."""
        mark = ("*" if self.holm < LEVEL else "") + ("†" if self.holm_folds < LEVEL else "")
        return Value(value=self.users.value, error=self.users.stderr, digits=4, mark=mark)


def all_contrasts(data: Sequence[Fits]) -> list[PairedDifference]:
    """Every pair on every measure, p-values adjusted over all."""
    found = [contrast(d, a, b, measure) for d in data for a, b in _pairs(d) for measure in MEASURES]
    users, folds = holm([c.users.pvalue for c in found]), holm([c.folds.pvalue for c in found])
    return [c._replace(holm=float(p), holm_folds=float(q)) for c, p, q in zip(found, users, folds, strict=True)]


def _pairs(d: Fits) -> tuple[tuple[Competitor, Competitor], ...]:
    auc, adg, svd = d.methods
    return (adg, auc), (svd, auc), (svd, adg), (d.longer[1], d.longer[0])


def contrast(d: Fits, a: Competitor, b: Competitor, measure: str) -> PairedDifference:
    """The paired difference of two methods, not yet adjusted."""
    of_a, of_b = d.users(a, measure), d.users(b, measure)  # (folds, U)
    base = over_folds(of_b).value
    return PairedDifference(d.name, a, b, measure, over_users(of_a, of_b), over_folds(of_a - of_b), base)


def listed(contrasts: Sequence[PairedDifference]) -> str:
    """The differences of a pair in a line."""
    c = contrasts[0]
    numbers = ", ".join(f"{SHOWN[c.measure]} {c.users.value:+.4f} ± {c.users.stderr:.4f}" for c in contrasts)
    return f"{c.a} − {c.b}: {numbers}"


def differences_table(contrasts: Sequence[PairedDifference]) -> Table:
    """A row for each pair on each data set."""
    rows: dict[str, list[Cell]] = {}
    for c in contrasts:
        updates = f", {c.a.updates:,} updates" if c.b.updates is not None and c.a.updates is not None else ""
        rows.setdefault(f"{c.data}, {c.a} − {c.b}{updates}", []).append(c.value())
    return Table(
        name="table1-differences",
        caption=f"Paired differences; * p < 0.05 over users, † over folds, each by Holm over all {len(contrasts)}",
        columns=("data, methods", *SHOWN.values()),
        rows=tuple((name, *cells) for name, cells in rows.items()),
        error_is="standard error over users",
    )


# -- the figure ----------------------------------------------------------------------------------------------


def differences_figure(contrasts: Sequence[PairedDifference]) -> Figure:
    """MF-ADG − MF-AUC in per cent of MF-AUC: ours, and what the paper prints of its data."""
    ours = [
        _row(c.data, c.measure, f"{c.a.updates:,} updates", (c.users.value, c.users.stderr), c.base)
        for c in contrasts
        if (c.a.learner, c.b.learner) == (ADG, AUC)
    ]
    theirs = [
        _row(f"{name} (published)", measure, "published, not rerun", _printed(name, at), TABLE1[name, AUC][at][0])
        for name in dict.fromkeys(name for name, _ in TABLE1)
        for at, measure in enumerate(MEASURES)
    ]
    rows = ours + theirs
    chart = intervals(
        rows, "percent", "measure", series="fit", facet="data", low="low", high="high",
        x_title=f"{ADG} − {AUC}, % of {AUC}",
    )  # fmt: skip
    caption = (
        f"{ADG} − {AUC} in % of {AUC}, with 95 % intervals, not adjusted: over users for ours; the published ones are "
        "from both printed standard errors over four folds, which are not paired"
    )
    return Figure(name="table1", caption=caption, rows=tuple(rows), chart=chart)  # pyright: ignore[reportArgumentType]


def _printed(name: str, at: int) -> tuple[float, float]:
    """The published difference and its error."""
    (a, error_a), (b, error_b) = TABLE1[name, ADG][at], TABLE1[name, AUC][at]
    return a - b, math.hypot(error_a, error_b)


def _row(data: str, measure: str, fit: str, difference: tuple[float, float], base: float) -> dict[str, Any]:
    percent, half = (100 * x / base for x in (difference[0], NORMAL * difference[1]))
    return {
        "data": data, "measure": SHOWN[measure], "fit": fit,
        "percent": percent, "low": percent - half, "high": percent + half,
    }  # fmt: skip
