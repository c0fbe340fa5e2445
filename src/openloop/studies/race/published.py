"""What the debiasing papers since 2016 print for Coat, and how their protocol differs from the race's."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from openloop.studies.kit.results import Cell, Table, Value


class Printed(NamedTuple):
    """A row of the papers' tables on Coat, labels from 3 stars on."""

    auc: float
    ndcg: float  # nDCG@5, users without positives counted as 1


PRINTED: dict[str, Printed] = {
    "Naive": Printed(0.703, 0.605),
    "IPS": Printed(0.717, 0.617),
    "SNIPS": Printed(0.714, 0.614),
    "DR-JL": Printed(0.723, 0.629),
    "MRDR": Printed(0.727, 0.627),
    "DR-MSE": Printed(0.727, 0.631),
    "TDR-JL": Printed(0.731, 0.639),
    "StableDR": Printed(0.735, 0.640),
    "DR-V2": Printed(0.734, 0.639),
    "AKBDR": Printed(0.745, 0.645),
    "Cali-MR": Printed(0.741, 0.658),
    "UPO": Printed(0.749, 0.691),
    "D-DR": Printed(0.780, 0.667),
}

PUBLISHED: dict[str, Any] = {"coat": {name: row._asdict() for name, row in PRINTED.items()}}

DIFFERS = (
    "What differs in the papers behind the bracketed numbers, which are of labels from 3 stars on: their factor models "
    "have no offsets for users and items; they learn the label, not the rating; their propensities are naive Bayes "
    "from a part of the test labels; settings were tuned on the test set, or the papers do not say on what; their "
    "“doubly robust” loss subtracts ê where the estimator subtracts ê/p; and a user without positives counts as nDCG "
    "1. So bracketed numbers are shown beside ours and not judged; the items `as_published` and `leaks` examine the "
    "differences one by one."
)


def printed_step() -> float:
    """The median step from one printed AUC to the next better one."""
    return float(np.median(np.diff(sorted(row.auc for row in PRINTED.values()))))


def beside(name: str, metric: str, value: float, error: float | None = None) -> Value:
    """A number of ours beside a printed one; they are not compared, since protocols differ. No `name`: alone."""
    printed = getattr(PRINTED[name], metric) if name else None
    return Value(value=value, error=error, published=printed, judged=False)


def printed_table(without: set[str]) -> Table:
    """The printed rows of methods that do not run here."""
    rows: list[tuple[Cell, ...]] = [
        (name, Value(value=None, published=row.auc), Value(value=None, published=row.ndcg))
        for name, row in PRINTED.items()
        if name not in without
    ]
    return Table(
        name="race-elsewhere",
        caption="Methods that are not run here: their published numbers on Coat, labels from 3 stars on",
        columns=("", "AUC", "nDCG@5, without positives 1"),
        rows=tuple(rows),
    )
