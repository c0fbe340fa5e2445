"""Agreement with the open loop: Kendall's τ over models, by split, target and weighting of users."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from openloop.audits.rankings import pair_signs, tau_b, tau_of_signs
from openloop.core.feedback import Floats
from openloop.studies.jadidinejad2021 import as_coded
from openloop.studies.jadidinejad2021.open_loop import TARGETS
from openloop.studies.jadidinejad2021.scores import Mask, Scores

LEVEL = 0.95
REPLICATES = 200


def weightings(n_users: int, rng: np.random.Generator, draws: int = REPLICATES) -> Floats:
    """Weights of users, (1 + draws, U): all alike, then bootstrap draws.

    They are the same for all methods, splits and targets, so that all is paired.
    """
    drawn = rng.multinomial(n_users, np.full(n_users, 1 / n_users), size=draws)
    return np.vstack([np.ones((1, n_users)), drawn]).astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Agreement:
    """τ of every method with every one of the `targets`: `values` (methods, targets, splits, weightings)."""

    methods: tuple[str, ...]
    values: Floats
    targets: tuple[str, ...] = TARGETS

    def mean(self, method: str, target: str) -> Floats:
        """The mean over splits, (W,)."""
        return self._of(method, target).mean(axis=0)

    def _of(self, method: str, target: str) -> Floats:
        return self.values[self.methods.index(method), self.targets.index(target)]  # (R, W)

    def error(self, method: str, target: str) -> float:
        """The standard error over users of the mean over splits: other users, in log and open loop alike."""
        return float(np.nanstd(self.mean(method, target)[1:], ddof=1))

    def ahead(self, a: str, b: str | Sequence[str], target: str) -> Lead:
        """How far one method is ahead of another, or of the mean of several."""
        rivals = [b] if isinstance(b, str) else b
        gap = self._of(a, target) - np.mean([self._of(rival, target) for rival in rivals], axis=0)  # (R, W)
        return self._lead(gap)

    def above_zero(self, method: str, target: str) -> Lead:
        """How far τ itself is above 0."""
        return self._lead(self._of(method, target))

    def _lead(self, gap: Floats) -> Lead:
        mean = gap.mean(axis=0)  # (W,)
        return Lead(value=float(mean[0]), drawn=mean[1:], won=int(np.sum(gap[:, 0] > 0)), splits=len(gap))

    def relative_gain(self, a: str, b: str, target: str) -> RelativeGain:
        """By which share τ of a is above that of b, of means over splits."""
        x, y = self.mean(a, target), self.mean(b, target)  # (W,)
        gain = np.divide(x, y, out=np.full(len(y), np.nan), where=y > 0) - 1
        return RelativeGain(value=float(gain[0]), drawn=gain[1:])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RelativeGain:
    """τ of one method over that of another, less 1; NaN where the other's is not above 0. `drawn` are of bootstraps."""

    value: float
    drawn: Floats

    @property
    def undefined(self) -> int:
        """How many draws have no relative gain."""
        return int(np.isnan(self.drawn).sum())

    @property
    def interval(self) -> tuple[float, float]:
        """Quantiles of the draws, at LEVEL."""
        return limits(self.drawn)


def limits(drawn: Floats) -> tuple[float, float]:
    """Quantiles of bootstrap draws, at LEVEL; an undefined draw is as low as can be, and as high.

    A difference and the relative gain that it makes have the same sign in every draw, so their limits have too.
    """
    low = np.quantile(np.nan_to_num(drawn, nan=-np.inf), (1 - LEVEL) / 2, method="lower")
    high = np.quantile(np.nan_to_num(drawn, nan=np.inf), (1 + LEVEL) / 2, method="higher")
    return float(low), float(high)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lead:
    """A paired difference of τ: its mean over splits, of bootstrap draws too, and in how many splits it is positive."""

    value: float
    drawn: Floats
    won: int
    splits: int

    @property
    def clear(self) -> bool:
        """Whether the lower limit is above 0."""
        return self.interval[0] > 0

    @property
    def interval(self) -> tuple[float, float]:
        """Quantiles of the draws, at LEVEL."""
        return limits(self.drawn)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:+.3f} ({low:+.3f} … {high:+.3f}), ahead in {self.won} of {self.splits} splits"


def doubt(leads: Sequence[Lead], enough: int | None = None) -> str:
    """Why intervals cannot decide whether `enough` of the leads, or all, are above 0; empty where they can.

    They decide for it where so many lower limits are above 0, and against it where too many upper limits are below.
    """
    wanted = len(leads) if enough is None else enough
    above, below = sum(lead.interval[0] > 0 for lead in leads), sum(lead.interval[1] < 0 for lead in leads)
    if above >= wanted or below > len(leads) - wanted:
        return ""
    unclear = len(leads) - above - below
    return "the interval contains 0" if len(leads) == 1 else f"{unclear} of {len(leads)} intervals contain 0"


Scorers = Mapping[str, Callable[[], Scores]]  # each called when its turn comes


def agreement_of(
    splits: Iterable[tuple[Scorers, Scorers]], weighted: Floats, among: tuple[str, ...] = TARGETS
) -> Agreement:
    """τ of methods with the targets `among` those, from the methods and the targets of each split."""
    names: tuple[str, ...] = ()
    values: list[list[list[Floats]]] = []  # (R, methods, T, W)
    for methods, targets in splits:
        goal = [pair_signs(targets[t]().reweighted(weighted)) for t in among]
        mine = (pair_signs(method().reweighted(weighted)) for method in methods.values())
        values.append([[tau_of_signs(m, g) for g in goal] for m in mine])
        names = tuple(methods)
    found = np.moveaxis(np.array(values), 0, 2)  # (methods, T, R, W)
    return Agreement(methods=names, values=found, targets=among)


# -- whether two methods differ ------------------------------------------------------------------------------


def ahead_as_coded(a: Floats, b: Floats, goal: Floats) -> Mask:
    """In which splits τ of a is above that of b by the test as coded, (R,); scores and goal (R, M) each."""
    x, y, between = tau_b(a, goal), tau_b(b, goal), tau_b(a, b)
    each = zip(x.tolist(), y.tolist(), between.tolist(), strict=True)
    return np.array([p > q and as_coded.differs(p, q, r, goal.shape[1]) for p, q, r in each])


def significance_marks(scores: Mapping[str, Floats], target: Floats) -> dict[str, str]:
    """For each method the numbers of those that it differs from by the test as coded, as Table 6 prints them."""
    with_target = {name: float(tau_b(values, target)) for name, values in scores.items()}

    def differ(a: str, b: str) -> bool:
        return as_coded.differs(with_target[a], with_target[b], float(tau_b(scores[a], scores[b])), len(target))

    return {a: "/".join(str(n) for n, b in enumerate(scores, 1) if b != a and differ(a, b)) for a in scores}
