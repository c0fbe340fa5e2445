"""How many instances of the paradox chance gives: Q2 is made up of items drawn at random.

A difference near the limit of significance may be significant in a part of the ratings and not in all of them, whatever
the part is. So instances are counted again with a Q2 of random items that has as many relevant ratings as the real one.
Items are drawn, not single ratings: a model ranks an item alike for many users, so the ratings of an item go together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openloop.audits.contrasts import holm
from openloop.core.feedback import Floats
from openloop.metrics.ranking import ideal_discount
from openloop.studies.jadidinejad2021.method_rows import CODED, HOLDOUT, LEVEL, STRATA, MethodRows, pair_pvalues
from openloop.studies.jadidinejad2021.methods import HeldOutCells
from openloop.studies.jadidinejad2021.models import USES
from openloop.studies.jadidinejad2021.scores import Ints, Mask, RankedCells, group_sums

DRAWS = 99


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChanceCounts:
    """The instances found in a split after Holm, and those with a Q2 of random items, (draws,)."""

    found: int
    drawn: Ints

    @property
    def pvalue(self) -> float:
        """How often draws have as many, with the real strata as one of the draws; one-sided."""
        return (1 + int(np.sum(self.drawn >= self.found))) / (1 + len(self.drawn))

    @property
    def more(self) -> bool:
        """Whether more instances are found than chance gives, at 5 %."""
        return self.pvalue <= 1 - LEVEL + 1e-12  # 5 of 100 are 5 %


def chance_counts(held: HeldOutCells, rows: MethodRows, found: int, rng: np.random.Generator) -> ChanceCounts:
    """The instances as coded, `found` of them after Holm, and with a Q2 of random items."""
    cells = held.cells.where(held.shown[held.relevant])
    size = int(np.sum(held.coded_strata(len(STRATA))[held.relevant[held.shown]] > 0))
    return ChanceCounts(found=found, drawn=drawn_counts(rows, cells, cells.discounts(CODED, None), size, rng))


def drawn_counts(
    rows: MethodRows, cells: RankedCells, gain: Floats, size: int, rng: np.random.Generator, draws: int = DRAWS
) -> Ints:
    """The instances with a Q2 of random items that has `size` cells, (draws,); `gain` are the discounts, (M, cells)."""
    found = [n_instances(rows, cells, gain, ~random_items(cells, size, rng)) for _ in range(draws)]
    return np.array(found, np.int64)


def chance(seed: int, split: int) -> np.random.Generator:
    """A stream of its own; `models.stream` is part of what names a trial, so it gets no new use."""
    return np.random.default_rng([seed, 1 + len(USES), split])


def random_items(cells: RankedCells, n: int, rng: np.random.Generator) -> Mask:
    """Which cells, (cells,), are of the items of a random order, down to the first with which they are n or more."""
    items, at = np.unique(cells.item, return_inverse=True)
    order = rng.permutation(len(items))
    size = np.cumsum(np.bincount(at)[order])
    taken = np.zeros(len(items), bool)
    taken[order[: 1 + int(np.searchsorted(size, n))]] = True
    return taken[at]


def n_instances(rows: MethodRows, cells: RankedCells, gain: Floats, tail: Mask) -> int:
    """Reversals and maskings after Holm where Q1 is `tail`, (cells,): as many as `audits.paradox.find` reports."""
    if len(np.unique(cells.user[tail])) < 2:  # no test
        return 0
    value, pvalue = tested(cells.where(tail), gain[:, tail])
    pairs = np.triu_indices(len(value), 1)
    whole = rows[HOLDOUT]
    clear, ruled = (holm(p[pairs]) < 1 - LEVEL for p in (whole.pvalue, pvalue))
    sides = [np.sign(x[pairs[0]] - x[pairs[1]]) for x in (whole.value, value)]
    reversal = clear & (sides[0] * sides[1] < 0)
    masking = ~clear & (sides[0] * sides[1] <= 0) & (sides[1] != 0)
    return int(np.sum(ruled & (reversal | masking)))


def tested(cells: RankedCells, gain: Floats) -> tuple[Floats, Floats]:
    """nDCG of the models, (M,), and the p-values of its differences, (M, M); `gain` are the discounts, (M, cells)."""
    user = cells.user.astype(np.int64)
    n = np.bincount(user, minlength=cells.n_users).astype(np.float64)
    total = group_sums(gain, user, cells.n_users)[:, n > 0]  # (M, users)
    value = total / ideal_discount(n[n > 0], None)
    mean = value.mean(axis=1)
    # Without a user the mean is (m·v̄ − v_u)/(m − 1): J_u = (v_u − v̄)/(m − 1), and ψ_u is in proportion to it.
    parts = (value - mean[:, None]) / (value.shape[1] - 1)
    return mean, pair_pvalues(mean, parts, parts, value.shape[1])
