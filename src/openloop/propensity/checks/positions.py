"""Checks of an impression log: do items above matter, do ranks react to clicks, is there one θ for all items?"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from openloop.core.feedback import Array, Floats
from openloop.core.impressions import Impressions
from openloop.core.totals import freedom
from openloop.core.weights import effective_size
from openloop.errors import AlignmentError, UndefinedError
from openloop.kernels.harvesting import sorted_order
from openloop.propensity.solvers.grouping import by_user_item, combined, per_cluster, sums
from openloop.propensity.solvers.harvesting import ThetaCurve
from openloop.propensity.solvers.randomising import shuffled_rows
from openloop.support.atomic import Recorded
from openloop.support.wording import chance

LEVEL = 0.05  # two-sided
PRIOR = 20.0  # impressions at position 1 that an item's q̂ is shrunk by
CELL_ROWS = 10  # in the mean: with fewer, rows are compared within bins of q̂ rather than within items
BINS = 20
FEW = 30  # clusters: with fewer a check is not made
CHECKED_ROWS = 2**23  # of a larger log, every n-th user is checked for reactions


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionCheck:
    """One check of an impression log: its statistic, its p-value, and what it means in words.

    Attributes:
        name: The name of the check.
        statistic: z, or χ² with `df` degrees of freedom.
        pvalue: The p-value.
        df: The degrees of freedom.
        clusters: How many users, or requests, the check is based on.
        meanings: What a rejection means, and what no rejection means.
        letter: "z" or "χ²".
        tries: Of how many tests this is the smallest p-value, which was multiplied by their number.

    Examples:
        >>> from openloop.propensity import PositionCheck
        >>> words = "rewards depend on the items above", "no sign that they do"
        >>> found = PositionCheck(name="above", statistic=2.5, pvalue=0.012, df=80, clusters=81, meanings=words)
        >>> found.rejects
        True
        >>> print(found.words)
        rewards depend on the items above (z +2.5, p = 0.012)
    """

    name: str
    statistic: float
    pvalue: float
    df: float
    clusters: int
    meanings: tuple[str, str]
    letter: str = "z"
    tries: int = 1  # whose least p-value this is, times their number

    @property
    def words(self) -> str:
        """What the check means, with its numbers."""
        tries = "" if self.tries == 1 else f" after {self.tries} tries"
        value = f"{self.statistic:+.1f}" if self.letter == "z" else f"{self.statistic:.1f} with {self.df:g}"
        return f"{self.meanings[0 if self.rejects else 1]} ({self.letter} {value}, p {chance(self.pvalue)}{tries})"

    def one_of(self, tests: int) -> PositionCheck:
        """The same check as the smallest p-value of several tests (Bonferroni's correction).

        Args:
            tests: The number of tests.

        Returns:
            The check with its p-value times `tests`, at most 1.
        """
        return replace(self, pvalue=min(1.0, self.pvalue * tests), tries=tests)

    @property
    def rejects(self) -> bool:
        """Whether the p-value is below 5 %."""
        return self.pvalue < LEVEL


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminationChecks(Recorded):
    """The checks of an impression log that could be made, and the reasons why others could not.

    Attributes:
        checks: Each `PositionCheck` by name.
        not_computed: The reason for each check that could not be made, by name.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.click_world(users=60, items=6, depth=3).observe(rng=0)
        >>> exam = ol.propensity.Examination(by="known", theta=[1, 0.5, 0.3]).fit(log)
        >>> found = exam.check(log)
        >>> sorted([*found.checks, *found.not_computed])
        ['items above', 'one theta', 'reaction']
    """

    checks: dict[str, PositionCheck] = field(default_factory=dict[str, PositionCheck])
    not_computed: dict[str, str] = field(default_factory=dict[str, str])

    def __getitem__(self, name: str) -> PositionCheck:
        return self.checks[name]

    @property
    def rejects(self) -> tuple[str, ...]:
        """The names of the checks that reject."""
        return tuple(name for name, found in self.checks.items() if found.rejects)

    def __str__(self) -> str:
        made = [f"{name}: {found.words}" for name, found in self.checks.items()]
        return "\n".join(made + [f"{name}: not computed, {why}" for name, why in self.not_computed.items()])

    def records(self) -> dict[str, Any]:
        """All checks as plain values.

        Returns:
            A dictionary with `checks` and `not_computed`.
        """
        made = {
            name: asdict(found) | {"rejects": found.rejects, "words": found.words}
            for name, found in self.checks.items()
        }
        return {"checks": made, "not_computed": self.not_computed}


# -- items above do not matter ----------------------------------------------------------------------------------


def items_above_check(log: Impressions, ranks: Array | None = None) -> PositionCheck:
    """Whether a reward depends on the items above it, from shuffled requests, where the items above are random.

    Rewards at position k, demeaned within the item's own label and position, are regressed on the mean q̂ of the items
    above; q̂ of a label is fitted on other users. Where requests have candidates of their own, the mean q̂ of all other
    items of the request is subtracted from the mean q̂ above.

    Args:
        log: Impressions that name their requests.
        ranks: The label of each row: its rank under a model (n,), 0 where the model does not rank it. None takes the
            rank under the first arm of the log, or the rank of largest exposure, or else the item itself, which is the
            least powerful label where tastes differ.

    Returns:
        The check, as z over users.

    Raises:
        UndefinedError: The log names no requests, some requests are incomplete, or too few users or requests have
            informative rows.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.click_world(users=200).observe(rng=0)
        >>> found = ol.propensity.items_above_check(log)
        >>> found.name, found.rejects
        ('items above', False)
    """
    if log.requests is None:
        raise UndefinedError(
            "items above: the log names no requests, so the items above are unknown; read it with request=."
        )
    if not log.whole:
        raise UndefinedError("items above: some requests lack rows above others, so the items above are unknown.")
    rows = shuffled_rows(log)
    label = _label(log, ranks)
    q, fold = quality(log, label, _shuffled_theta(log, rows)), per_cluster(log, rows) % 2
    h, above = _above(log, rows, q)
    position = log.position[rows]
    cell = combined(_alike(label[rows], q[rows], 2 * log.depth), position, fold)[above]
    x = _within(cell, log.reward[rows][above]) * _within(cell, h[above])
    return _by_cluster(
        "items above", x, per_cluster(log, rows[above]), log.n_clusters,
        ("rewards depend on the items above, as in a cascade: values by position and item alone are biased",
         "no sign that rewards depend on the items above"),
    )  # fmt: skip


def _label(log: Impressions, ranks: Array | None) -> Array:
    """A model's ranks, or what the log itself says of how good an item is for a request: its rankers know the user."""
    if ranks is not None:
        return _checked(log, ranks)
    if log.arms is not None:
        return log.arms[:, 0]
    if log.exposure is not None:
        ranked = log.exposure.max(axis=1) > log.exposure.min(axis=1)
        return np.where(ranked, log.exposure.argmax(axis=1) + 1, 0)
    return log.item


def _checked(log: Impressions, ranks: Array) -> Array:
    given = np.asarray(ranks)
    if given.shape != (len(log),) or given.dtype.kind not in "iu" or int(given.min()) < 0:
        raise AlignmentError(
            f"ranks must be {len(log):,} whole numbers from 0, one for each row of the log, got shape {given.shape} of "
            f"{given.dtype}; 0 is for rows that the model does not rank."
        )
    return given


def _above(log: Impressions, rows: Array, q: Floats) -> tuple[Floats, Array]:
    """The mean q̂ of the items above each row, and which rows have any."""
    first = np.flatnonzero(np.diff(log.request[rows], prepend=-1))  # (requests,) rows of a request follow one another
    sizes = np.diff(np.append(first, len(rows)))
    before = np.cumsum(q[rows]) - q[rows]
    before -= np.repeat(before[first], sizes)
    place = np.arange(len(rows)) - np.repeat(first, sizes)  # rows above
    h = before / np.maximum(place, 1)
    if not _common_candidates(log, rows):
        total = np.repeat(np.add.reduceat(q[rows], first), sizes)
        h -= (total - q[rows]) / np.maximum(np.repeat(sizes, sizes) - 1, 1)
    return h, place > 0


def _common_candidates(log: Impressions, rows: Array) -> bool:
    """Whether every shuffled request drew from the same items."""
    if log.pool is None or log.shuffled is None:
        return False
    return bool(np.all(log.pool[log.shuffled] == np.count_nonzero(np.bincount(log.item[rows]))))


def _alike(label: Array, q: Floats, times: int) -> Array:
    """What rows are compared within: the label, or bins of its q̂ where labels have few rows; `times` cells each."""
    if len(label) >= CELL_ROWS * times * np.count_nonzero(np.bincount(label)):
        return label
    return np.searchsorted(np.quantile(q, np.arange(1, BINS) / BINS), q)


def _shuffled_theta(log: Impressions, rows: Array) -> Floats:
    """Reward rates by position of shuffled requests, by the first: enough to compare items that were shown anywhere."""
    rate = np.bincount(log.position[rows] - 1, log.reward[rows], minlength=log.depth)
    rate /= np.maximum(np.bincount(log.position[rows] - 1, minlength=log.depth), 1)
    return rate / rate[0] if rate[0] > 0 else np.ones(log.depth)


def quality(log: Impressions, label: Array, theta: Floats) -> Floats:
    """q̂ of each row's label, Σc/Σθ shrunk to the mean, from the users of the other half; (n,)."""
    fold, size, found = log.cluster[log.request] % 2, int(label.max()) + 1, np.empty(len(log))
    seen = theta[log.position - 1]
    for half in (0, 1):
        other = fold != half
        top, bottom = sums(label[other], log.reward[other], size), sums(label[other], seen[other], size)
        mean = top.sum() / max(bottom.sum(), 1e-300)
        found[~other] = ((top + PRIOR * mean) / (bottom + PRIOR))[label[~other]]
    return found


# -- ranks do not react to clicks -------------------------------------------------------------------------------


def reaction_check(log: Impressions) -> PositionCheck:
    """Whether the position of an item reacts to its user's clicks: forward minus backward.

    Of three successive showings of an item to a user, the reward at the second, demeaned by position, must go with the
    log position of the third as it goes with that of the first. Their order is that of `time`. Of very
    large logs, every n-th user is taken.
    """
    key = by_user_item(log)
    rows = _in_time(log)
    stride = -(-len(log) // CHECKED_ROWS)
    if stride > 1:
        rows = rows[per_cluster(log, rows) % stride == 0]
    rows = rows[sorted_order(key[rows])]
    own = key[rows]
    middle = np.flatnonzero(own[2:] == own[:-2]) + 1
    before, now, after = rows[middle - 1], rows[middle], rows[middle + 1]
    moved = np.log(log.position[after]) - np.log(log.position[before])
    k = log.position[now]
    x = _within(k, log.reward[now]) * _within(k, moved)
    return _by_cluster(
        "reaction", x, per_cluster(log, now), log.n_clusters,
        ("ranks react to clicks: within a user and an item the position is not as good as random",
         "no sign that ranks react to clicks"),
    )  # fmt: skip


def _in_time(log: Impressions) -> Array:
    if log.time is None:  # the order of the input may be any
        raise UndefinedError("reaction: the log has no times, so what follows a click is unknown; read it with time=")
    return np.argsort(log.time, kind="stable")


# -- better and worse items have one θ --------------------------------------------------------------------------


def better_items(log: Impressions, theta: Floats, ranks: Array | None = None) -> Array:
    """Whether each row's label is among the better, which have half of the rewards; (n,).

    The label is as in `items_above_check`, and its q̂ is fitted without these users.
    """
    q, fold = quality(log, _label(log, ranks), theta), log.cluster[log.request] % 2
    better = np.zeros(len(log), np.bool_)
    for half in (0, 1):
        on = np.flatnonzero(fold == half)
        if len(on):
            values, at = np.unique(q[on], return_inverse=True)
            rewards = np.cumsum(np.bincount(at, log.reward[on]))
            better[on] = q[on] >= values[np.searchsorted(rewards, rewards[-1] / 2)]
    return better


def one_theta_check(better: ThetaCurve, worse: ThetaCurve) -> PositionCheck:
    """Whether log θ of better and of worse items differ: Hotelling's T², which is χ² with K − 1 for many users."""
    from scipy.special import fdtrc

    d = np.log(better.theta[1:] / worse.theta[1:])
    psi = (better.parts - worse.parts)[:, 1:]  # (U, K − 1)
    m, U, p = int(np.count_nonzero(psi.any(axis=1))), len(psi), len(d)
    if m < max(FEW, 2 * p):
        raise UndefinedError(
            f"one theta: {m} users or requests inform θ of better or worse items; {max(FEW, 2 * p)} are needed"
        )
    squared = float(d @ np.linalg.solve(psi.T @ psi / U / (U - 1), d))
    pvalue = float(fdtrc(p, m - p, squared * (m - p) / (p * (m - 1))))
    return PositionCheck(
        name="one theta", statistic=squared, pvalue=pvalue, df=float(p), clusters=m, letter="χ²",
        meanings=("better and worse items have different θ, as under trust bias: the reward is not θ_k·q_i",
                  "no sign that better and worse items differ in θ"),
    )  # fmt: skip


# -- what they share --------------------------------------------------------------------------------------------


def _within(cell: Array, values: Array) -> Floats:
    """Values less the mean of their cell."""
    n = np.bincount(cell)
    return values - (np.bincount(cell, values) / np.maximum(n, 1))[cell]


def _by_cluster(name: str, x: Floats, cluster: Array, size: int, words: tuple[str, str]) -> PositionCheck:
    """Whether Σx is 0: z over clusters, against t."""
    from scipy.special import stdtr

    parts = sums(cluster, x, size) if len(x) else np.zeros(0)
    parts = parts[parts != 0]
    m = len(parts)
    if m < FEW:
        raise UndefinedError(f"{name}: {m} users or requests have informative rows; {FEW} are needed")
    error = math.sqrt(m / (m - 1) * float(np.square(parts - parts.mean()).sum()))
    z = float(parts.sum()) / error
    df = float(freedom(m, effective_size(np.square(parts)), math.inf))
    pvalue = float(2 * stdtr(df, -abs(z)))
    return PositionCheck(
        name=name, statistic=z, pvalue=pvalue, df=df, clusters=m,
        meanings=words,
    )  # fmt: skip
