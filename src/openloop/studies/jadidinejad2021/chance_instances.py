"""How many instances of the paradox chance gives: which models are ahead on an item is dealt out anew.

A difference near the limit of significance may be significant in a part of the ratings and not in all of them, whatever
the part is. So instances are counted again where a model's gain on an item has nothing to do with the item's stratum:
the items' standardised mean gains change places, for all models alike, and Q1 and Q2 remain. An item keeps how much
models gain on it and how far they differ there: near the top of a ranking 1/log2(1 + rank) is steep, so models differ
more on popular items, whoever is ahead. A Q2 of other items would be another Q2: the real one has a few items with many
ratings each, as many others have few, and as many ratings are of many items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from openloop.audits.contrasts import holm
from openloop.core.feedback import Floats
from openloop.metrics.ranking import ideal_discount
from openloop.studies.jadidinejad2021.method_rows import CODED, LEVEL, STRATA, pair_pvalues
from openloop.studies.jadidinejad2021.methods import HeldOutCells
from openloop.studies.jadidinejad2021.models import USES
from openloop.studies.jadidinejad2021.scores import Ints, Mask, group_sums

DEALS = 99
PER_SPLIT = 0.025  # splits share a log: whatever they share, most of them are below by chance in 5 % at most


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChanceCounts:
    """The instances found in a split after Holm, and those with dealt gains, (deals,)."""

    found: int
    drawn: Ints

    @property
    def pvalue(self) -> float:
        """How often deals have as many, with the real gains as one of the deals; one-sided."""
        return (1 + int(np.sum(self.drawn >= self.found))) / (1 + len(self.drawn))


def more_in_most(splits: Sequence[ChanceCounts]) -> bool:
    """Whether most splits have more instances than chance gives.

    With p ≤ α in a split, at most a share α of all splits is expected below by chance, so that more than half of them
    are has a chance of 2α at most (Markov), however much the splits have in common.
    """
    return 2 * sum(counts.pvalue <= PER_SPLIT + 1e-12 for counts in splits) > len(splits)


def chance_counts(held: HeldOutCells, rng: np.random.Generator) -> tuple[ChanceCounts, ChanceCounts]:
    """The instances of a split as coded, and with dealt gains: of both kinds together, and reversals alone."""
    cells = held.cells.where(held.shown[held.relevant])
    tail = held.coded_strata(len(STRATA))[held.relevant[held.shown]] == 0
    gain = cells.discounts(CODED, None)
    found = n_instances(cells.user, gain, tail)
    drawn = np.array([n_instances(cells.user, dealt(gain, cells.item, rng), tail) for _ in range(DEALS)])  # (deals, 2)
    return (
        ChanceCounts(found=int(found.sum()), drawn=drawn.sum(axis=1)),
        ChanceCounts(found=int(found[0]), drawn=drawn[:, 0]),
    )


def null_stream(seed: int, split: int) -> np.random.Generator:
    """A stream of its own; `models.stream` is part of what names a trial, so it gets no new use."""
    return np.random.default_rng([seed, 1 + len(USES), split])


def dealt(gain: Floats, item: Ints, rng: np.random.Generator) -> Floats:
    """The gains, (M, cells), with z of the items' means in a random order, the same for all models; the rest remains.

    z is a model's mean gain on an item less the mean of all models there, over their standard deviation.
    """
    _, at, n = np.unique(item, return_inverse=True, return_counts=True)
    mean = group_sums(gain, at, len(n)) / n  # (M, items)
    apart, spread = mean - mean.mean(axis=0), mean.std(axis=0)
    z = np.divide(apart, spread, out=np.zeros_like(apart), where=spread > 0)
    return gain + (spread * z[:, rng.permutation(len(n))] - apart)[:, at]


def n_instances(user: Ints, gain: Floats, tail: Mask) -> Ints:
    """Reversals and maskings after Holm, (2,), where Q1 is `tail`, (cells,): as many as `audits.paradox.find` reports.

    `gain` are the discounts, (M, cells), of these users.
    """
    if len(np.unique(user[tail])) < 2:  # no test
        return np.zeros(2, np.int64)
    value, pvalue = zip(tested(user, gain), tested(user[tail], gain[:, tail]), strict=True)
    pairs = np.triu_indices(len(gain), 1)
    clear, ruled = (holm(p[pairs]) < 1 - LEVEL for p in pvalue)
    sides = [np.sign(x[pairs[0]] - x[pairs[1]]) for x in value]
    reversal = clear & (sides[0] * sides[1] < 0)
    masking = ~clear & (sides[0] * sides[1] <= 0) & (sides[1] != 0)
    return np.array([np.sum(ruled & reversal), np.sum(ruled & masking)], np.int64)


def tested(user: Ints, gain: Floats) -> tuple[Floats, Floats]:
    """nDCG of the models, (M,), and the p-values of its differences, (M, M); `gain` are the discounts, (M, cells)."""
    _, at, n = np.unique(user, return_inverse=True, return_counts=True)
    value = group_sums(gain, at, len(n)) / ideal_discount(n.astype(np.float64), None)  # (M, users)
    mean = value.mean(axis=1)
    # Without a user the mean is (m·v̄ − v_u)/(m − 1): J_u = (v_u − v̄)/(m − 1), and ψ_u is in proportion to it.
    parts = (value - mean[:, None]) / (value.shape[1] - 1)
    return mean, pair_pvalues(mean, parts, parts, value.shape[1])
