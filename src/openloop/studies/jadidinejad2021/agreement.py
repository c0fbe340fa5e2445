"""Agreement with the open loop: Kendall's τ over models, by split, target and weighting of users."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist

import numpy as np

from openloop.audits.rankings import compare_tau, pair_signs, steiger, tau_b, tau_of_signs, williams
from openloop.core.feedback import Floats
from openloop.studies.jadidinejad2021 import as_coded
from openloop.studies.jadidinejad2021.open_loop import TARGETS
from openloop.studies.jadidinejad2021.scores import Mask, Scores

LEVEL = 0.95
LIMIT = NormalDist().inv_cdf((1 + LEVEL) / 2)  # 1.96
REPLICATES = 200
HALVES = 50

EVERY = "every sense"  # of the open loop: the mean over TARGETS


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Weightings:
    """Weights of users, (W, U): first all alike, then bootstrap draws, then random halves, each with its other half."""

    values: Floats
    draws: int

    @property
    def bootstrap(self) -> slice:
        """Where the draws are."""
        return slice(1, 1 + self.draws)

    @property
    def halves(self) -> tuple[slice, slice]:
        """Where the halves are, and the other halves."""
        first = 1 + self.draws
        middle = first + (len(self.values) - first) // 2
        return slice(first, middle), slice(middle, None)


def weightings(n_users: int, rng: np.random.Generator, draws: int = REPLICATES, halves: int = HALVES) -> Weightings:
    """The weightings of users, the same for all methods, splits and targets, so that all is paired."""
    drawn = rng.multinomial(n_users, np.full(n_users, 1 / n_users), size=draws)
    half = np.array([rng.permutation(n_users) < n_users // 2 for _ in range(halves)], bool).reshape(halves, n_users)
    return Weightings(values=np.vstack([np.ones((1, n_users)), drawn, half, ~half]).astype(np.float64), draws=draws)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Agreement:
    """τ of every method with every one of the `targets`: `values` (methods, targets, splits, weightings).

    `halves` (targets,) is the mean τ of a target with itself, between half of the users and the other half: what
    chance in the open loop leaves to agree with. NaN where no halves were drawn.
    """

    methods: tuple[str, ...]
    values: Floats
    weighted: Weightings
    halves: Floats
    targets: tuple[str, ...] = TARGETS

    @property
    def ours(self) -> list[str]:
        """The methods of ours."""
        return [name for name in self.methods if name.startswith("ours")]

    @property
    def theirs(self) -> list[str]:
        """The published methods, as coded and as printed."""
        return [name for name in self.methods if not name.startswith("ours")]

    def by_split(self, method: str, target: str) -> Floats:
        """τ in each split, all users alike, (R,); with EVERY target, the mean over targets."""
        return self._of(method, target)[:, 0]

    def mean(self, method: str, target: str) -> Floats:
        """The mean over splits, (W,)."""
        return self._of(method, target).mean(axis=0)

    def _of(self, method: str, target: str) -> Floats:
        found = self.values[self.methods.index(method)]  # (T, R, W)
        return found.mean(axis=0) if target == EVERY else found[self.targets.index(target)]

    def error(self, method: str, target: str) -> float:
        """The standard error over users of the mean over splits: other users, in log and open loop alike."""
        return float(np.nanstd(self.mean(method, target)[self.weighted.bootstrap], ddof=1))

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
        drawn = mean[self.weighted.bootstrap]
        return Lead(value=float(mean[0]), drawn=drawn, won=int(np.sum(gap[:, 0] > 0)), splits=len(gap))

    def relative_gain(self, a: str, b: str, target: str) -> RelativeGain:
        """By which share τ of a is above that of b, of means over splits."""
        x, y = self.mean(a, target), self.mean(b, target)  # (W,)
        gain = np.divide(x, y, out=np.full(len(y), np.nan), where=y > 0) - 1
        return RelativeGain(value=float(gain[0]), drawn=gain[self.weighted.bootstrap])

    def best(self, methods: Sequence[str], target: str) -> str:
        """The method with the largest mean τ."""
        return max(methods, key=lambda m: self.mean(m, target)[0])

    def chosen_blind(self, target: str, rivals: Sequence[str] | None = None) -> BlindLead:
        """Pick our best and the best rival on half of the users, compare on the other half; over all halves.

        The rivals are all published methods, unless some are given.
        """
        ours = self.ours
        rows = np.array([self.mean(m, target) for m in (*ours, *(rivals or self.theirs))])  # (methods, W)
        rows[np.isnan(rows)] = -1.0  # a method that has nothing to say of these users
        one, other = self.weighted.halves
        gaps: list[Floats] = []
        winners: list[int] = []
        for pick, test in ((one, other), (other, one)):
            mine = np.argmax(rows[: len(ours), pick], axis=0)
            rival = len(ours) + np.argmax(rows[len(ours) :, pick], axis=0)
            at = np.arange(len(mine))
            gaps.append(rows[:, test][mine, at] - rows[:, test][rival, at])
            winners.extend(mine.tolist())
        gap = np.concatenate(gaps)
        most = max(set(winners), key=winners.count)
        return BlindLead(
            value=float(gap.mean()), error=float(gap.std(ddof=1)), picked=ours[most], times=winners.count(most),
            halves=len(winners),
        )  # fmt: skip


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


def doubt(leads: Sequence[Lead | BlindLead], enough: int | None = None) -> str:
    """Why intervals cannot decide whether `enough` of the leads, or all, are above 0; empty where they can.

    They decide for it where so many lower limits are above 0, and against it where too many upper limits are below.
    """
    wanted = len(leads) if enough is None else enough
    above, below = sum(lead.interval[0] > 0 for lead in leads), sum(lead.interval[1] < 0 for lead in leads)
    if above >= wanted or below > len(leads) - wanted:
        return ""
    unclear = len(leads) - above - below
    return "the interval contains 0" if len(leads) == 1 else f"{unclear} of {len(leads)} intervals contain 0"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindLead:
    """How far our pick is ahead of theirs on users who did not choose them, and what most `halves` picked.

    The error is the standard deviation over halves: of half-samples it is that of the whole (the jackknife that leaves
    out d = n/2 has the factor (n − d)/d = 1).
    """

    value: float
    error: float
    picked: str
    times: int
    halves: int

    @property
    def interval(self) -> tuple[float, float]:
        """Normal limits, at LEVEL."""
        return self.value - LIMIT * self.error, self.value + LIMIT * self.error

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:+.3f} ({low:+.3f} … {high:+.3f}, from half-samples)"


Scorers = Mapping[str, Callable[[], Scores]]  # each called when its turn comes


def agreement_of(
    splits: Iterable[tuple[Scorers, Scorers]], weighted: Weightings, among: tuple[str, ...] = TARGETS
) -> Agreement:
    """τ of methods with the targets `among` those, from the methods and the targets of each split."""
    one, other = weighted.halves
    names: tuple[str, ...] = ()
    values: list[list[list[Floats]]] = []  # (R, methods, T, W)
    halves: list[list[float]] = []  # (R, T)
    for methods, targets in splits:
        goal = [pair_signs(targets[t]().reweighted(weighted.values)) for t in among]
        with_itself = [tau_of_signs(g[one], g[other]) for g in goal]
        halves.append([float(np.nanmean(tau)) if len(tau) else np.nan for tau in with_itself])
        mine = (pair_signs(method().reweighted(weighted.values)) for method in methods.values())
        values.append([[tau_of_signs(m, g) for g in goal] for m in mine])
        names = tuple(methods)
    found = np.moveaxis(np.array(values), 0, 2)  # (methods, T, R, W)
    return Agreement(methods=names, values=found, weighted=weighted, halves=np.mean(halves, axis=0), targets=among)


# -- whether two methods differ ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodTests:
    """Whether two methods agree differently with the open loop, by three tests."""

    a: str
    b: str
    difference: float
    coded: float | None  # Williams' t for one tail on τ, which the paper calls Steiger's; None where undefined
    steiger: float | None  # Steiger's Z̄₁*, two-sided, on τ
    models: float  # bootstrap over models, two-sided


def pair_tests(scores: Mapping[str, Floats], target: Floats, rng: int) -> Iterator[MethodTests]:
    """The tests for every pair of methods; scores (M,) each."""
    for a, b in combinations(scores, 2):
        x, y = scores[a], scores[b]
        taus = [float(tau_b(p, q)) for p, q in ((x, target), (y, target), (x, y))]
        defined = max(map(abs, taus)) < 1
        yield MethodTests(
            a=a, b=b, difference=taus[0] - taus[1], models=compare_tau(x, y, target, rng=rng).pvalue,
            coded=williams(*taus, n=len(x)).pvalue / 2 if defined else None,
            steiger=steiger(*taus, n=len(x)).pvalue if defined else None,
        )  # fmt: skip


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
