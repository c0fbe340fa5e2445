"""What balanced weights must bring about: shares of groups of rows, and means of functions of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from openloop.core.covariates import Covariates
from openloop.core.feedback import Array, Feedback, Floats
from openloop.core.levels import LevelSample, spread
from openloop.core.vocabulary import Int64s
from openloop.errors import BalanceError, InputError, listing
from openloop.propensity.cell_means import CellMeans
from openloop.propensity.samples import plain
from openloop.propensity.solvers.calibration import REACHED, Raked, calibrate, rake
from openloop.support.arguments import is_number

ROUNDING = 1e-6  # by which shares may miss 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shares:
    """Rows in groups by code, and the share of the population's cells that each group has."""

    names: tuple[str, ...]
    means: Floats  # (K,)
    codes: Callable[[Feedback], Int64s]

    def columns(self, feedback: Feedback) -> Floats:
        """1 in the column of each row's group, (n, K)."""
        return (self.codes(feedback)[:, None] == np.arange(len(self.names))).astype(np.float64)

    def tilt(self, feedback: Feedback, mu: Floats) -> Floats:
        """μᵀh of each row."""
        return mu[self.codes(feedback)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KnownMean:
    """A function of users, items and ratings, and its mean over the population."""

    names: tuple[str, ...]
    means: Floats  # (1,)
    function: Callable[[Any, Any, Any], Any]

    def columns(self, feedback: Feedback) -> Floats:
        """h of each row, (n, 1)."""
        h = np.asarray(self.function(feedback.user, feedback.item, feedback.rating), np.float64)
        if h.shape != (len(feedback),) or not np.isfinite(h).all():
            raise InputError(
                f"Balanced: functions[{self.names[0]!r}] must give a finite number for each of {len(feedback):,} rows, "
                f"got shape {h.shape}; take the codes of users and items, and the ratings, as arrays."
            )
        return h[:, None]

    def tilt(self, feedback: Feedback, mu: Floats) -> Floats:
        """μᵀh of each row."""
        return self.columns(feedback)[:, 0] * mu[0]


Target = Shares | KnownMean | CellMeans


def moved(targets: Sequence[Target], feedback: Any, w: Floats, block: Array | None = None) -> Raked:
    """The w′ of the rows nearest to w that meet all targets, or as near to them as the search came."""
    if len(targets) == 1 and isinstance(targets[0], Shares):  # rows of one block and group move together
        return rake(w, targets[0].codes(feedback), targets[0].means, block)
    H = np.hstack([target.columns(feedback) for target in targets])  # (n, K)
    return calibrate(w, H, np.concatenate([target.means for target in targets]), block)


def refuse_unreached(targets: Sequence[Target], found: Raked, rows: int) -> None:
    """An error that names the means which no weights of so many rows have."""
    if found.converged:
        return
    names = np.concatenate([target.names for target in targets])
    means = np.concatenate([target.means for target in targets])
    far = np.abs(found.off) > REACHED
    missed = [f"{name} ({mean:g})" for name, mean in zip(names[far], means[far], strict=True)]
    raise BalanceError(
        f"Balanced: no weights of these {rows:,} rows have the means {listing(missed, 10)}; they may contradict each "
        "other, or be out of the range of the rows; correct them, or leave some out."
    )


def level_shares(sample: LevelSample, present: Any) -> Shares:
    """The shares of rating levels that a uniform sample says, over the levels that the log has."""
    names = tuple(f"rating {r:g}" for r in plain(sample.levels))
    return Shares(names=names, means=spread(sample.shares, present), codes=partial(_by_rating, sample))


def margins_of(
    given: Mapping[str, Mapping[Any, float]], user: Covariates | None, item: Covariates | None
) -> Iterator[Shares]:
    """The shares of a column's levels, column by column; `ol.covariates` names a level "column=level"."""
    for column, shares in given.items():
        _check_shares(column, shares)
        side, table = _side_of(column, user, item)
        names = tuple(f"{column}={level}" for level in shares)
        known = [name for name in table.names if name.startswith(f"{column}=")]
        if set(names) != set(known):
            raise InputError(
                f"Balanced: margins[{column!r}] must have a share for each level of the column, which are "
                f"{listing(known, 20)}, got {listing(names, 20)}; name all of them."
            )
        of_id = table.values[:, [table.names.index(name) for name in names]].argmax(axis=1)
        yield Shares(names=names, means=np.array(list(shares.values()), np.float64), codes=partial(_by_id, side, of_id))


def means_of(given: Mapping[str, Any]) -> Iterator[KnownMean]:
    """Functions with their means."""
    for name, pair in given.items():
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not callable(pair[0]) or not is_number(pair[1]):
            raise InputError(
                f"Balanced: functions[{name!r}] must be a function of users, items and ratings and its mean, got "
                f"{pair!r:.60}; write {{{name!r}: (h, mean)}}."
            )
        yield KnownMean(names=(name,), means=np.array([pair[1]], np.float64), function=pair[0])


def _by_rating(sample: LevelSample, feedback: Feedback) -> Int64s:
    return sample.codes(feedback.rating)


def _by_id(side: str, of_id: Int64s, feedback: Feedback) -> Int64s:
    return of_id[feedback.user if side == "user" else feedback.item]


def _side_of(column: str, user: Covariates | None, item: Covariates | None) -> tuple[str, Covariates]:
    for side, table in (("user", user), ("item", item)):
        if table is not None and any(name.startswith(f"{column}=") for name in table.names):
            return side, table
    known = [name for table in (user, item) if table is not None for name in table.names]
    raise InputError(
        f"Balanced: margins[{column!r}]: neither user_features nor item_features has levels of such a column, they "
        f"have {listing(known, 20) or 'none'}; give fit the ol.covariates of a table that has it, as text."
    )


def _check_shares(column: str, shares: Mapping[Any, float]) -> None:
    total = sum(shares.values())
    if abs(total - 1) > ROUNDING or min(shares.values()) < 0:
        raise InputError(
            f"Balanced: margins[{column!r}] must be shares of the population, which add up to 1, got {total:g} for "
            f"{listing(list(shares))}; divide them by their sum."
        )
