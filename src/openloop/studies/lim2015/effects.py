r"""Effects of the parts of MF-ADG: contrasts of the factorial experiment's arms, paired by user.

A sign is + where a cell is as MF-ADG, − where it is as MF-AUC. With y the mean of a measure, a part's main effect is
Σ ±y/4 over the eight cells, an interaction the same with the product of its signs, and exactly

    y(MF-ADG) − y(MF-AUC, equal updates) = [y(MF-AUC, equal steps) − y(MF-AUC, equal updates)]
                                         + the three main effects + the interaction of all three,

as the interactions of two have the same sign in both corners. In the half of the design a main effect would be mixed
with the interaction of the other two parts. There, MF-AUC with one part of MF-ADG is compared with MF-AUC, and the rest
of the gain is what the parts do together:

    y(MF-ADG) − y(MF-AUC) = Σ_part [y(MF-AUC with the part) − y(MF-AUC)] + the rest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

from openloop.audits.contrasts import holm
from openloop.core.feedback import Floats
from openloop.kernels.pair_design import PairCell
from openloop.studies.lim2015.designs import CELLS, EQUAL_UPDATES, OF_ADG, OF_AUC, Arm, ArmFits
from openloop.studies.lim2015.protocol import LEVEL
from openloop.studies.lim2015.published import MEASURES

ITEMS, WEIGHT, UNTIL = "items from I∖i⁺", "rank weight", "until a violator"
PARTS = (ITEMS, WEIGHT, UNTIL)  # in the order of a cell's switches
ALL_THREE = " × ".join(PARTS)
ALONE = tuple(f"{part} alone" for part in PARTS)  # added to MF-AUC, with nothing else changed
TOGETHER = "parts together, beyond each alone"
WEIGHT_WITHIN_UNTIL = "rank weight, within until a violator"
EQUAL_STEPS_GAIN, EQUAL_UPDATES_GAIN = "gain at equal steps", "gain at equal updates"
MORE_STEPS = "more steps"  # MF-AUC with as many steps as MF-ADG, less MF-AUC with as many updates
LESS_HALF = " − ½ "

Weights = Mapping[Arm, float]


def signs(cell: PairCell) -> tuple[int, ...]:
    """+1 for each part that a cell has of MF-ADG, −1 for each that it has of MF-AUC."""
    return tuple(1 if a == b else -1 for a, b in zip(cell, OF_ADG, strict=True))


def is_whole(cells: Sequence[PairCell]) -> bool:
    """Whether these are all cells of the design, not its half."""
    return set(cells) == set(CELLS)


def parts_of(cells: Sequence[PairCell]) -> tuple[str, ...]:
    """The effects of the three parts, and the rest: they add up to the gain at equal steps."""
    return (*PARTS, ALL_THREE) if is_whole(cells) else (*ALONE, TOGETHER)


def over_half(part: str, gain: str) -> str:
    """The name of the contrast that is above 0 where a part is over half of a gain."""
    return f"{part}{LESS_HALF}{gain}"


def factorial_effects(cells: Sequence[PairCell]) -> dict[str, Weights]:
    """Main effects, and in the whole design the interactions: contrasts that are orthogonal.

    In the half they are mixed with interactions, so they serve only to see how fits vary.
    """
    whole = is_whole(cells)
    used = cells if whole else [cell for cell in cells if cell != OF_AUC]  # AUC is beside the half, not in it
    orders = (1, 2, 3) if whole else (1,)
    subsets = [s for order in orders for s in combinations(range(3), order)]
    return {
        " × ".join(PARTS[k] for k in s): {c: 2 * math.prod(signs(c)[k] for k in s) / len(used) for c in used}
        for s in subsets
    }


def weight_within_until() -> Weights:
    """The effect of the rank weight where it can act: with one draw, C is a constant."""
    within = [cell for cell in CELLS if cell.until]
    return {cell: 2 * signs(cell)[PARTS.index(WEIGHT)] / len(within) for cell in within}


def single_effects() -> dict[str, Weights]:
    """Of each part added to MF-AUC alone; and the rest of the gain, which needs several parts."""
    singles = [OF_AUC._replace(**{switch: getattr(OF_ADG, switch)}) for switch in PairCell._fields]
    alone: dict[str, Weights] = {name: {cell: 1.0, OF_AUC: -1.0} for name, cell in zip(ALONE, singles, strict=True)}
    rest: Weights = {OF_ADG: 1.0, OF_AUC: 2.0, **dict.fromkeys(singles, -1.0)}
    return {**alone, TOGETHER: rest}


def contrasts_of(cells: Sequence[PairCell]) -> dict[str, Weights]:
    """Every contrast that is tested."""
    whole = is_whole(cells)
    effects = factorial_effects(cells) | {WEIGHT_WITHIN_UNTIL: weight_within_until()} if whole else single_effects()
    steps: Weights = {OF_AUC: 1.0, EQUAL_UPDATES: -1.0}
    by_steps: Weights = {OF_ADG: 1.0, OF_AUC: -1.0}
    by_updates: Weights = {OF_ADG: 1.0, EQUAL_UPDATES: -1.0}
    found = {EQUAL_UPDATES_GAIN: by_updates, MORE_STEPS: steps, EQUAL_STEPS_GAIN: by_steps, **effects}
    *parts, _ = parts_of(cells)
    halves = [*((part, EQUAL_UPDATES_GAIN) for part in (MORE_STEPS, *parts)), (parts[-1], EQUAL_STEPS_GAIN)]
    return found | {over_half(part, gain): _less_half(found[part], found[gain]) for part, gain in halves}


def _less_half(part: Weights, gain: Weights) -> Weights:
    return {arm: part.get(arm, 0.0) - 0.5 * gain.get(arm, 0.0) for arm in {**part, **gain}}


class Effect(NamedTuple):
    """A contrast of a measure on a data set and number of positives; `holm` is adjusted over all that are tested."""

    data: str
    level: int
    name: str
    measure: str
    value: float
    stderr: float
    df: float
    base: float  # MF-AUC's measure, at equal steps
    holm: float = 1.0

    @property
    def pvalue(self) -> float:
        """Two-sided, by Student's t."""
        return float(2 * stdtr(self.df, -abs(self.value) / self.stderr)) if self.stderr > 0 else float(self.value == 0)

    @property
    def sure(self) -> bool:
        """Significantly above 0."""
        return self.value > 0 and self.holm < LEVEL

    @property
    def below(self) -> bool:
        """Significantly below 0."""
        return self.value < 0 and self.holm < LEVEL

    def interval(self, tests: int = 1) -> tuple[float, float]:
        """At 95 %, together with that of all `tests` (Bonferroni)."""
        t = float(stdtrit(self.df, 1 - LEVEL / 2 / tests))
        return self.value - t * self.stderr, self.value + t * self.stderr


def all_effects(data: Sequence[ArmFits]) -> list[Effect]:
    """Every contrast on every data set, number of positives and measure, adjusted over all."""
    found = [effect for e in data for measure in MEASURES for effect in effects_of(e, measure)]
    return [x._replace(holm=float(p)) for x, p in zip(found, holm([x.pvalue for x in found]), strict=True)]


def effects_of(e: ArmFits, measure: str) -> list[Effect]:
    """Every contrast of a measure, with an error of users and fits: se² = a + b, a over users and b = Σw²·σ²/folds.

    Its degrees of freedom are Satterthwaite's, (a + b)²/(a²/(U − 1) + b²/df).
    """
    by_arm = {level: _by_arm(e, level, measure) for level in e.levels}
    noise, df = fit_noise(list(by_arm.values()), factorial_effects(e.cells))
    found: list[Effect] = []
    for level, values in by_arm.items():
        base = float(values[OF_AUC].mean())
        for name, weights in contrasts_of(e.cells).items():
            each = combined(values, weights)  # (folds, U)
            sample = each.mean(axis=0)  # a user counts once
            a = float(sample.var(ddof=1) / len(sample))
            b = sum(w * w for w in weights.values()) * noise / len(each)
            together = (a + b) ** 2 / (a**2 / (len(sample) - 1) + b**2 / df)
            found.append(Effect(e.name, level, name, measure, float(sample.mean()), math.sqrt(a + b), together, base))
    return found


def _by_arm(e: ArmFits, level: int, measure: str) -> dict[Arm, Floats]:
    """Each arm's measure of the users who have it in every fold, (folds, U)."""
    values = {arm: e.users(level, arm, measure) for arm in e.arms}
    known = ~np.isnan(values[OF_AUC]).any(axis=0)
    return {arm: x[:, known] for arm, x in values.items()}


def combined(values: Mapping[Arm, Floats], weights: Weights) -> Floats:
    """Σ of the arms' measures by their weights."""
    return sum((w * values[arm] for arm, w in weights.items()), np.zeros(()))


def fit_noise(levels: Sequence[Mapping[Arm, Floats]], effects: Mapping[str, Weights]) -> tuple[float, int]:
    """σ² of a fit's mean measure, pooled over orthogonal effects: how they vary from fold to fold; and its df.

    It holds what all users of a fit share, which no error over users sees: random draws and the choice of settings.
    It also holds each user's noise from other test items, which the error over users has already: it is too large.
    """
    parts = [
        (combined(values, w).mean(axis=1).var(ddof=1) / sum(x * x for x in w.values()), len(values[OF_AUC]) - 1)
        for values in levels
        for w in effects.values()
    ]
    return float(np.mean([variance for variance, _ in parts])), sum(df for _, df in parts)
