"""The IDCG that Lim et al. 2015 print: what it would do to NDCG, and why they cannot have used it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from openloop.metrics.ranking import ideal_discount
from openloop.studies.kit.results import Cell, Claim, Table, Value
from openloop.studies.kit.statistics import Mean
from openloop.studies.lim2015.protocol import Competitor, Fits, over_folds
from openloop.studies.lim2015.published import MEASURES, TABLE1

LEAST_RATIO = math.log2(3)  # of NDCG as printed to ADG, for any model and any user: that of one relevant item

NOTE = (
    "The paper's IDCG sums 1/log2(j + 2) from j = 1, where ranks from 0 need j = 0: a perfect ranking would have an "
    f"NDCG above 1. Ours is the textbook's. As printed, NDCG is at least log2(3) = {LEAST_RATIO:.3f} times ADG "
    "whatever the model. The paper's numbers for Amazon Games and last.FM are below that, so they were not computed "
    "as printed."
)


def as_printed(d: Fits, method: Competitor) -> Mean:
    """NDCG over the IDCG that is printed."""
    # IDCG(n) = Σ_{j=1}^{n} 1/log2(j + 2), which is the textbook's of n + 1 less its first term
    relevant = d.chosen(method)[0].outcome["relevant"].astype(np.float64)  # the same in every fold
    factor = relevant / np.where(relevant > 0, ideal_discount(relevant + 1, None) - 1, 1.0)
    return over_folds(d.users(method, "adg") * factor)


def ndcg_table(data: Sequence[Fits]) -> Table:
    """NDCG both ways, and its ratios to ADG."""
    ours = [_ratios(d, method) for d in data for method in d.methods[:2]]
    ndcg, theirs = MEASURES.index("ndcg"), published_ratios()
    rows = [
        (f"{name}, {learner}", _printed(TABLE1[name, learner][ndcg][0]), None, _printed(ratio), None)
        for (name, learner), ratio in theirs.items()
    ]
    return Table(
        name="table1-ndcg",
        caption="NDCG, and what it would be over the IDCG that is printed; their ratios to ADG",
        columns=("data, method", "NDCG", "NDCG as printed", "NDCG / ADG", "as printed / ADG"),
        rows=(*ours, *rows),
        appendix=True,
    )


def _ratios(d: Fits, method: Competitor) -> tuple[Cell, ...]:
    adg, ndcg = (over_folds(d.users(method, m)).value for m in ("adg", "ndcg"))
    printed = as_printed(d, method).value
    numbers = (ndcg, printed, ndcg / adg, printed / adg)
    return (f"{d.name}, {method}", *(Value(value=x, digits=4) for x in numbers))


def _printed(number: float) -> Value:
    return Value(value=None, published=number, digits=4)


def published_ratios() -> dict[tuple[str, str], float]:
    """NDCG / ADG of the paper's Table 1."""
    ndcg, adg = MEASURES.index("ndcg"), MEASURES.index("adg")
    return {key: row[ndcg][0] / row[adg][0] for key, row in TABLE1.items()}


def textbook_claim() -> Claim:
    """About numbers that the paper prints: it counts in no tally."""
    below = {f"{name}, {learner}": r for (name, learner), r in published_ratios().items() if r < LEAST_RATIO}
    listed = ", ".join(f"{ratio:.3f} ({name})" for name, ratio in below.items())
    return Claim(
        text="The published NDCG was computed over the textbook's IDCG, not over the one that is printed",
        holds=bool(below),
        found=f"NDCG / ADG would be at least {LEAST_RATIO:.3f}; "
        + (f"it is {listed}" if below else "no published ratio is below that"),
        counted=False,
    )
