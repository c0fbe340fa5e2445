"""Ranks of models within users: Friedman's test and Nemenyi's critical difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from openloop.core.comparison import Comparison
from openloop.core.feedback import Floats
from openloop.errors import EmptyError, InputError, UndefinedError, listing
from openloop.support.arguments import check_level


@dataclass(frozen=True, slots=True, kw_only=True)
class Friedman:
    """Whether models differ in their ranks within users, and how far mean ranks must differ to count.

    Attributes:
        statistic: Friedman's χ².
        pvalue: Its p-value.
        users: The number of users.
        ranks: The mean rank of each model; 1 is best.
        critical_difference: Nemenyi's critical difference at `level`.
        level: The confidence level.
        left_out: The number of users without a value for some model.

    Examples:
        >>> found = ol.rankings.friedman([[3, 2, 1]] * 8 + [[3, 1, 2]] * 4, ["a", "b", "c"])
        >>> found.groups
        (('a',), ('b', 'c'))
    """

    statistic: float
    pvalue: float
    users: int
    ranks: dict[str, float]  # mean rank by model, 1 is best
    critical_difference: float  # Nemenyi's, at `level`
    level: float
    left_out: int = 0  # users without a value for some model

    def differ(self, a: str, b: str) -> bool:
        """Whether the mean ranks of models `a` and `b` differ by more than the critical difference."""
        return abs(self.ranks[a] - self.ranks[b]) > self.critical_difference

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The bars of a critical-difference diagram: the longest runs of models, best first, that do not differ."""
        order = sorted(self.ranks, key=self.ranks.__getitem__)
        ends = [max(j for j in range(i, len(order)) if not self.differ(order[i], order[j])) for i in range(len(order))]
        starts = [0, *(i for i, (before, end) in enumerate(pairwise(ends), 1) if end > before)]
        return tuple(tuple(order[i : ends[i] + 1]) for i in starts)


def friedman(values: npt.ArrayLike, models: Sequence[str], *, better: str = "higher", level: float = 0.95) -> Friedman:
    """Friedman's test of equal ranks within users, ties averaged, and Nemenyi's critical difference (Demšar 2006).

    Args:
        values: One value per user and model, (users, models). A user with NaN for any model is left out, and counted.
        models: The names of the models.
        better: Whether "higher" or "lower" values are better.
        level: The confidence level.

    Returns:
        The test, the mean ranks and the critical difference.

    Raises:
        EmptyError: Fewer than two users have a value for every model.
        UndefinedError: Every user has all models tied.

    Examples:
        >>> found = ol.rankings.friedman([[3, 2, 1]] * 8 + [[3, 1, 2]] * 4, ["a", "b", "c"])
        >>> found.ranks["a"], round(found.pvalue, 4)
        (1.0, 0.0001)
    """
    from scipy.special import chdtrc
    from scipy.stats import rankdata

    check_level("friedman", level)
    if better not in {"higher", "lower"}:
        raise InputError(f'friedman: better must be "higher" or "lower", got {better!r}.')
    values = _table(values, models)
    kept = values[~np.isnan(values).any(axis=1)]  # (N, k)
    N, k = kept.shape
    if N < 2:
        raise EmptyError(f"friedman: {N} of {len(values):,} users have a value for every model; at least 2 are needed.")
    ranks = rankdata(kept if better == "lower" else -kept, axis=1)  # (N, k)
    centred, means = ranks - (k + 1) / 2, ranks.mean(axis=0)
    if not centred.any():
        raise UndefinedError("friedman: every user has all models tied, so ranks say nothing; use another metric.")
    # With ties, Conover (1999) Eq. 5.8.8: (k−1)·Σ_j(Σ_u c_uj)²/Σ_uΣ_j c_uj², c = rank − (k+1)/2
    statistic = float((k - 1) * np.square(centred.sum(axis=0)).sum() / np.square(centred).sum())
    return Friedman(
        statistic=statistic, pvalue=float(chdtrc(k - 1, statistic)), users=N, left_out=len(values) - N,
        ranks=dict(zip(models, means.tolist(), strict=True)), critical_difference=nemenyi(k, N, level), level=level,
    )  # fmt: skip


def nemenyi(k: int, n: int, level: float = 0.95) -> float:
    """Nemenyi's critical difference of mean ranks, CD = q_α √(k(k+1)/(6n)) (Demšar 2006, section 3.2.2).

    Args:
        k: The number of models.
        n: The number of users.
        level: 1 − α.

    Returns:
        The difference.

    Examples:
        >>> round(ol.rankings.nemenyi(4, 14), 2)
        1.25
    """
    from scipy.stats import studentized_range

    # CD = q_α √(k(k+1)/(6N)), q_α the studentised range's quantile over √2
    q = float(studentized_range.ppf(level, k, np.inf)) / math.sqrt(2)
    return q * math.sqrt(k * (k + 1) / (6 * n))


def _table(values: npt.ArrayLike, models: Sequence[str]) -> Floats:
    table = np.asarray(values, np.float64)
    if table.ndim != 2 or table.shape[1] != len(models):
        raise InputError(f"friedman: values must be users × {len(models)} models, got shape {table.shape}.")
    if len(set(models)) < len(models) or len(models) < 2:
        raise InputError(f"friedman: at least 2 models with names of their own are needed, got {listing(models)}.")
    if np.isinf(table).any():
        raise InputError(f"friedman: {int(np.isinf(table).sum()):,} values are infinite; use NaN for a missing value.")
    return table


def ranks_within_users(result: Comparison, family: tuple[str, str]) -> Friedman | None:
    """Friedman's test on the users' own values of an estimate.

    Args:
        result: The estimates of all models.
        family: The metric and the estimator.

    Returns:
        The test. None where the estimate is not made of users' values, fewer than two users have them all, or all tie.

    Examples:
        >>> world = ol.simulate.movie_lovers()
        >>> result = ol.evaluate(world.predictions, world.observe(0), metrics=["mae"], estimators=["naive", "snips"])
        >>> ol.rankings.ranks_within_users(result, ("mae", "snips")).ranks
        {'Y1': 1.265, 'Y2': 1.885, 'Y3': 2.85}
    """
    estimates = {m: result[m, *family] for m in result.models}
    if any(e.columns.shape[1] != 2 for e in estimates.values()):
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.column_stack([e.columns[:, 0] / e.columns[:, 1] for e in estimates.values()])  # (U, models)
    scored = result[result.models[0], family[0], "naive"].columns[:, 1] > 0
    values = np.where(np.isfinite(values) & scored[:, None], values, np.nan)  # a user without a row has no value
    whole = values[np.isfinite(values).all(axis=1)]
    if len(whole) < 2 or not np.any(whole != whole[:, :1]):  # too few users, or all models are tied
        return None
    return friedman(values, result.models, better=result.better[family[0]], level=result.level)
