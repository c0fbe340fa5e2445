"""Agreement with the open loop: Kendall's τ over models, by split, target and weighting of users."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from openloop.audits.rankings import compare_tau, steiger, williams
from openloop.core.feedback import Array, Floats
from openloop.studies.jadidinejad2021 import as_coded
from openloop.studies.jadidinejad2021.methods import Cells, Scored, holdout

LEVEL = 0.95
LIMIT = NormalDist().inv_cdf((1 + LEVEL) / 2)  # 1.96
REPLICATES = 200
HALVES = 50

# What "the open loop" is. The published code fits each model again, on the whole log, leaves training items in the
# ranking, and counts cells that are in the log as well; "printed" takes the models of the split, and leaves the same.
TARGETS = ("published", "unseen", "printed", "candidates")
EVERY = "every sense"


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
    half = np.array([rng.permutation(n_users) < n_users // 2 for _ in range(halves)]).reshape(halves, n_users)
    return Weightings(values=np.vstack([np.ones((1, n_users)), drawn, half, ~half]).astype(np.float64), draws=draws)


def tau(x: Floats, y: Floats) -> Floats:
    """Kendall's τ-b of rows over models, (W, M) each, to (W,); NaN where a row is constant."""
    a, b = signs(x), signs(y)
    return tau_of_signs(a, b)


def signs(x: Floats) -> npt.NDArray[np.float32]:
    """Which of two models is ahead, for each pair, (W, pairs)."""
    i, j = np.triu_indices(x.shape[1], 1)
    return np.sign(x[:, i] - x[:, j]).astype(np.float32)


def tau_of_signs(a: Array, b: Array) -> Floats:
    """τ-b = Σab/√(Σa²·Σb²) over pairs of models."""
    both, one, other = (np.einsum("wp,wp->w", s, t, dtype=np.float64) for s, t in ((a, b), (a, a), (b, b)))
    root = np.sqrt(one * other)
    return np.divide(both, root, out=np.full(len(root), np.nan), where=root > 0)


def targets(own: Cells, refitted: Cells, in_log: Array, in_train: Array, k: int | None) -> dict[str, Scored]:
    """The open loop's verdict in each sense of TARGETS; `in_log`, `in_train`: which of its cells are there as well."""
    return {
        "published": holdout(refitted, "coded", k),
        "unseen": holdout(refitted.where(~in_log), "coded", k),
        "printed": holdout(own, "all", k),
        "candidates": holdout(own.where(~in_train), "outside", k),
    }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Agreement:
    """τ of every method with every target: `values` (methods, targets, splits, weightings).

    `halves` (targets,) is the mean τ of a target with itself, between half of the users and the other half: what
    chance in the open loop leaves to agree with.
    """

    methods: tuple[str, ...]
    values: Floats
    weighted: Weightings
    halves: Floats

    def by_split(self, method: str, target: str) -> Floats:
        """τ in each split, all users alike, (R,); with EVERY target, the mean over targets."""
        return self._of(method, target)[:, 0]

    def mean(self, method: str, target: str) -> Floats:
        """The mean over splits, (W,)."""
        return self._of(method, target).mean(axis=0)

    def _of(self, method: str, target: str) -> Floats:
        found = self.values[self.methods.index(method)]  # (T, R, W)
        return found.mean(axis=0) if target == EVERY else found[TARGETS.index(target)]

    def error(self, method: str, target: str) -> float:
        """The standard error over users of the mean over splits: other users, in log and open loop alike."""
        return float(np.nanstd(self.mean(method, target)[self.weighted.bootstrap], ddof=1))

    def ahead(self, a: str, b: str, target: str) -> Ahead:
        """How far one method is ahead of another."""
        gap = self.mean(a, target) - self.mean(b, target)
        won = int(np.sum(self.by_split(a, target) > self.by_split(b, target)))
        error = float(np.nanstd(gap[self.weighted.bootstrap], ddof=1))
        return Ahead(value=float(gap[0]), error=error, won=won, splits=self.values.shape[2])

    def best(self, methods: Sequence[str], target: str) -> str:
        """The method with the largest mean τ."""
        return max(methods, key=lambda m: self.mean(m, target)[0])

    def chosen_blind(self, ours: list[str], theirs: list[str], target: str) -> Blind:
        """Pick our best and theirs on half of the users, compare on the other half; over all halves."""
        rows = np.array([self.mean(m, target) for m in (*ours, *theirs)])  # (methods, W)
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
        return Blind(value=float(gap.mean()), error=float(gap.std(ddof=1)), picked=ours[most])


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """A paired difference of τ: mean over splits, standard error over users, and in how many splits it is positive."""

    value: float
    error: float
    won: int
    splits: int

    @property
    def interval(self) -> tuple[float, float]:
        """Normal limits, at LEVEL."""
        return self.value - LIMIT * self.error, self.value + LIMIT * self.error

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:+.3f} ({low:+.3f} … {high:+.3f}), ahead in {self.won} of {self.splits} splits"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blind:
    """How far our pick is ahead of theirs on users who did not choose them, and what we picked most often.

    The error is the standard deviation over halves: of half-samples it is that of the whole (the jackknife that leaves
    out d = n/2 has the factor (n − d)/d = 1).
    """

    value: float
    error: float
    picked: str

    def __str__(self) -> str:
        low, high = self.value - LIMIT * self.error, self.value + LIMIT * self.error
        return f"{self.value:+.3f} ({low:+.3f} … {high:+.3f}, from half-samples)"


Round = tuple[Mapping[str, Callable[[], Scored]], Mapping[str, Scored]]


def agreement(rounds: Iterable[Round], weighted: Weightings) -> Agreement:
    """τ of methods with targets, each round being one split: its methods, scored when their turn comes, its targets."""
    one, other = weighted.halves
    names: tuple[str, ...] = ()
    values: list[list[list[Floats]]] = []  # (R, methods, T, W)
    halves: list[list[float]] = []  # (R, T)
    for methods, wanted in rounds:
        goal = [signs(wanted[t].value(weighted.values)) for t in TARGETS]
        halves.append([float(np.nanmean(tau_of_signs(g[one], g[other]))) for g in goal])
        mine = (signs(method().value(weighted.values)) for method in methods.values())
        values.append([[tau_of_signs(m, g) for g in goal] for m in mine])
        names = tuple(methods)
    found = np.moveaxis(np.array(values), 0, 2)  # (methods, T, R, W)
    return Agreement(methods=names, values=found, weighted=weighted, halves=np.mean(halves, axis=0))


# -- whether two methods differ -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """Whether two methods agree differently with the open loop, by four tests."""

    a: str
    b: str
    difference: float
    coded: float | None  # Williams' t for one tail on τ, which the paper calls Steiger's; None where undefined
    steiger: float | None  # Steiger's Z̄₁*, two-sided, on τ
    models: float  # bootstrap over models, two-sided


def verdicts(scores: Mapping[str, Floats], target: Floats, rng: int) -> Iterator[Verdicts]:
    """The tests for every pair of methods; scores (M,) each."""
    names = list(scores)
    for i, a in enumerate(names):
        for b in names[i + 1 :]:
            x, y = scores[a], scores[b]
            jk, jh, kh = (float(tau(p[None], q[None])[0]) for p, q in ((x, target), (y, target), (x, y)))
            defined = max(abs(jk), abs(jh), abs(kh)) < 1
            yield Verdicts(
                a=a, b=b, difference=jk - jh, models=compare_tau(x, y, target, rng=rng).pvalue,
                coded=williams(jk, jh, kh, len(x)).pvalue / 2 if defined else None,
                steiger=steiger(jk, jh, kh, len(x)).pvalue if defined else None,
            )  # fmt: skip


def marks(scores: Mapping[str, Floats], target: Floats) -> dict[str, str]:
    """For each method the numbers of those that the test as coded tells it apart from, as Table 6 prints them."""
    names = list(scores)
    with_target = {name: float(tau(scores[name][None], target[None])[0]) for name in names}

    def apart(a: str, b: str) -> bool:
        xy = float(tau(scores[a][None], scores[b][None])[0])
        return as_coded.differs(with_target[a], with_target[b], xy, len(target))

    return {a: "/".join(str(n) for n, b in enumerate(names, 1) if b != a and apart(a, b)) for a in names}
